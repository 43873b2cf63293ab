"""A word space is immutable, mapped, small to send, and knows its words both ways."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SpaceError, UsageError
from sottovoce.spaces import store
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.spaces.space_encoder import SpaceEncoder
from sottovoce.spaces.store import DuplicateWordError, SpaceWriter, hash_table, word_hashes
from sottovoce.types import UNKNOWN

WORDS = ["zebra", "Ångström", "中文", "a b", "naïve", "👩‍🔬", "x" * 300]
VECTORS = np.random.default_rng(1).standard_normal((len(WORDS), 4)).astype(np.float32)


def write(folder, words=WORDS, vectors=VECTORS, block=3):
    with SpaceWriter(folder, name="written", dimension=vectors.shape[1]) as writer:
        for start in range(0, len(words), block):
            writer.append(words[start : start + block], vectors[start : start + block])
        writer.commit()
    return WordSpace.open(folder)


def test_what_is_written_is_read(tmp_path):
    space = write(tmp_path / "space")
    assert space.size == len(space) == len(WORDS)
    assert space.dimension == 4
    assert space.words(np.arange(space.size)) == WORDS
    assert space.ids(WORDS).tolist() == list(range(len(WORDS)))
    assert np.array_equal(space.vectors, VECTORS)
    assert space.id("absent") == UNKNOWN
    assert "zebra" in space
    assert "absent" not in space


def test_the_hash_depends_on_content_alone(tmp_path):
    one = write(tmp_path / "one", block=1)
    other = write(tmp_path / "other", block=5)
    assert one.sha256 == other.sha256 == WordSpace.from_arrays(WORDS, VECTORS).sha256
    changed = VECTORS.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], np.float32(9))
    assert WordSpace.from_arrays(WORDS, changed).sha256 != one.sha256
    assert WordSpace.from_arrays([*WORDS[:-1], "other"], VECTORS).sha256 != one.sha256


def test_vectors_cannot_be_changed(tmp_path, toy):
    for space in (write(tmp_path / "space"), toy):
        with pytest.raises(ValueError, match="read-only"):
            space.vectors[0, 0] = 1


def test_a_stored_space_pickles_as_its_address(tmp_path):
    space = write(tmp_path / "space")
    assert len(space.output) == space.size  # Asking for it does not make the pickle larger.
    assert len(pickle.dumps(space)) < 1000
    assert pickle.loads(pickle.dumps(space)).sha256 == space.sha256


def test_a_pickle_refuses_a_space_that_changed_meanwhile(tmp_path):
    sent = pickle.dumps(write(tmp_path / "space"))
    write(tmp_path / "space", vectors=VECTORS + 1)
    loading = f"import pickle; pickle.loads({sent!r})"
    done = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True)
    assert done.returncode != 0
    assert "changed since" in done.stderr


def test_a_space_in_memory_pickles_whole(toy):
    copy = pickle.loads(pickle.dumps(toy))
    assert copy.words([0, 4]) == ["a", "f"]
    assert copy.sha256 == toy.sha256


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    broken = np.array([[1.0, 0.0], [np.nan, 0.0]])
    with pytest.raises(SpaceError, match="not finite"):
        write(tmp_path / "space", words=["good", "bad"], vectors=broken, block=1)
    assert list(tmp_path.iterdir()) == []


def test_a_duplicate_names_both_entries(tmp_path):
    with pytest.raises(DuplicateWordError) as caught:
        write(tmp_path / "space", words=["x", "y", "z", "y"], vectors=VECTORS[:4])
    assert (caught.value.first, caught.value.second) == (1, 3)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_space_is_refused(tmp_path):
    with (
        pytest.raises(SpaceError, match="at least one word"),
        SpaceWriter(tmp_path / "space", name="none", dimension=2) as writer,
    ):
        writer.commit()


def test_committing_again_replaces_the_space(tmp_path):
    first = write(tmp_path / "space")
    second = write(tmp_path / "space", vectors=VECTORS + 1)
    assert first.sha256 != second.sha256
    assert [path.name for path in tmp_path.iterdir()] == ["space"]


@pytest.mark.parametrize("file", ["space.json", "vectors.npy", "words.bin", "table.npy"])
def test_a_damaged_space_says_what_to_do(tmp_path, file):
    write(tmp_path / "space")
    (tmp_path / "space" / file).write_bytes(b"{}")
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(tmp_path / "space")


@pytest.mark.parametrize("scale", [1e15, 1e7, 1e-7, 1e-19, 1e-30])
@pytest.mark.parametrize("stated", [True, False])
def test_vectors_of_extreme_scale_are_refused(tmp_path, scale, stated, monkeypatch):
    """When they are written, and when a space is opened that an earlier version wrote."""
    words, vectors = ["a", "b", "c"], np.eye(3) * scale
    says = "too large" if scale > 1 else "too small"
    with pytest.raises(SpaceError, match=says):
        WordSpace.from_arrays(words, vectors)

    def write_it():
        with SpaceWriter(tmp_path / "space", name="extreme", dimension=3) as writer:
            writer.append(words, vectors)
            writer.commit()

    with pytest.raises(SpaceError, match=says):
        write_it()
    assert not (tmp_path / "space").exists()
    with monkeypatch.context() as earlier:
        earlier.setattr(store, "refuse_extreme", lambda median, largest: None)
        write_it()
    description = tmp_path / "space" / store.DESCRIPTION
    content = json.loads(description.read_text())
    assert content["norms"]["largest"] == pytest.approx(scale)
    if not stated:
        del content["norms"]
        description.write_text(json.dumps(content))
    with pytest.raises(SpaceError, match=f"{says}.*Multiply all numbers"):
        WordSpace.open(tmp_path / "space")


def test_one_very_long_vector_is_enough_and_zeros_have_no_scale():
    with pytest.raises(SpaceError, match="too large"):
        WordSpace.from_arrays(["a", "b", "c"], np.diag([1, 1, 2e6]))
    WordSpace.from_arrays(["a", "b", "c"], np.diag([0, 1e-9, 1]))
    WordSpace.from_arrays(["a", "b"], np.zeros((2, 2)))


def test_a_missing_space_says_what_to_do(tmp_path):
    with pytest.raises(SpaceError, match="sottovoce spaces add default"):
        WordSpace.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("words", "vectors"),
    [
        (["x", "x"], [[1.0], [2.0]]),
        (["x"], [[1.0], [2.0]]),
        (["x"], [[np.inf]]),
        ([], np.empty((0, 2))),
    ],
)
def test_impossible_spaces_are_refused(words, vectors):
    with pytest.raises(UsageError):
        WordSpace.from_arrays(words, vectors)


@given(st.lists(st.text(st.characters(codec="utf-8")), unique=True, max_size=200))
def test_the_hash_table_finds_every_word_and_no_other(words):
    table = hash_table(word_hashes(words))
    assert sorted(table[table >= 0].tolist()) == list(range(len(words)))
    if words:
        space = WordSpace.from_arrays(words, np.ones((len(words), 1)))
        assert space.ids(words).tolist() == list(range(len(words)))
        assert space.id("never" + max(words, key=len)) == UNKNOWN


def test_output_vocabularies_narrow_what_is_released(toy):
    narrow = toy.with_output(OutputVocabulary("two", np.array([4, 1, 1])))
    assert narrow.output.ids.tolist() == [1, 4]
    assert narrow.size == toy.size
    assert narrow.sha256 == toy.sha256
    positions, _ = narrow.nearest_output.top(toy.vectors, 1)
    assert narrow.words(narrow.output.ids[positions[:, 0]]) == ["b", "b", "b", "b", "f"]


def test_an_output_vocabulary_cannot_be_empty_or_foreign(toy):
    with pytest.raises(UsageError, match="nothing could ever be released"):
        OutputVocabulary("none", np.array([], dtype=np.int64))
    with pytest.raises(UsageError, match="outside the space"):
        toy.with_output(OutputVocabulary("far", np.array([99])))


def test_covariance_is_scaled_to_mean_variance_one(toy):
    expected = [[1.81792, -0.17061], [-0.17061, 0.18208]]
    np.testing.assert_allclose(toy.covariance, expected, atol=1e-5)
    flat = WordSpace.from_arrays(["x", "y"], [[1.0, 2.0], [1.0, 2.0]])
    with pytest.raises(UsageError, match="no shape"):
        _ = flat.covariance


def test_the_covariance_is_made_once_and_kept_beside_the_space(tmp_path, monkeypatch):
    made = write(tmp_path / "space").covariance
    with monkeypatch.context() as patch:
        patch.setattr(WordSpace, "_made_covariance", None)
        assert np.array_equal(WordSpace.open(tmp_path / "space").covariance, made)
    (kept,) = (tmp_path / "space").glob("covariance-*.npy")
    skewed = made.copy()
    skewed[0, 1] += 1
    for wrong in (0 * made, np.nan * made, 2 * made, skewed, made[:3, :3], made.astype(np.float32)):
        np.save(kept, wrong)
        assert np.array_equal(WordSpace.open(tmp_path / "space").covariance, made)
        assert np.array_equal(np.load(kept), made)
    kept.write_bytes(kept.read_bytes()[:200])
    assert np.array_equal(WordSpace.open(tmp_path / "space").covariance, made)


def test_a_space_that_takes_the_folder_has_a_covariance_of_its_own(tmp_path):
    first = write(tmp_path / "space")
    second = write(tmp_path / "space", vectors=VECTORS[:, ::-1])
    expected = first.covariance
    assert np.allclose(WordSpace.open(tmp_path / "space").covariance, expected[::-1, ::-1])
    assert np.allclose(second.covariance, expected[::-1, ::-1])


ENCODER = SpaceEncoder("light", "0123", 4)


def test_a_space_remembers_the_encoder_of_its_vectors(tmp_path):
    with SpaceWriter(tmp_path / "space", name="made", dimension=4, encoder=ENCODER) as writer:
        writer.append(WORDS, VECTORS)
        writer.commit()
    stored = WordSpace.open(tmp_path / "space")
    held = WordSpace.from_arrays(WORDS, VECTORS, encoder=ENCODER)
    for space in (stored, held):
        narrow = space.with_output(OutputVocabulary("two", np.array([0, 1])))
        more = with_words(space, ["new"], np.ones((1, 4)))
        for same in (space, narrow, more, *map(pickle.loads, map(pickle.dumps, (space, more)))):
            assert same.encoder == ENCODER
    assert write(tmp_path / "other").encoder is None


def test_what_vectors_were_projected_onto_is_kept_and_must_fit(tmp_path):
    axes = np.random.default_rng(3).standard_normal((9, 4))
    encoder = SpaceEncoder("light", "0123", 9)
    settings = {"name": "made", "dimension": 4, "encoder": encoder}
    with SpaceWriter(tmp_path / "space", axes=axes, **settings) as writer:
        writer.append(WORDS, VECTORS)
        writer.commit()
    assert np.array_equal(WordSpace.open(tmp_path / "space").axes, axes)
    np.save(tmp_path / "space" / store.AXES, axes[:8])
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(tmp_path / "space")
    (tmp_path / "space" / store.AXES).unlink()
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(tmp_path / "space")


def test_fewer_words_to_be_released_change_nothing_else():
    space = WordSpace.from_arrays(WORDS, VECTORS)
    some = OutputVocabulary("two", np.array([0, 1]))
    more = with_words(space, ["new"], np.ones((1, 4)))
    shape = more.covariance
    narrow = more.with_output(some)
    assert narrow.covariance is shape
    assert np.shares_memory(narrow.vectors, more.vectors)
    assert (narrow.id("new"), narrow.size, narrow.listed.size) == (7, 8, 7)
    assert narrow.listed.output is narrow.output is some
    assert set(narrow.nearest_output.top(more.vectors, 1)[0].ravel().tolist()) <= {0, 1}
    assert len(more.nearest_output) == space.size  # As it was.


def test_more_words_make_another_hash():
    space = WordSpace.from_arrays(WORDS, VECTORS)
    made = [(["new"], np.ones((1, 4))), (["new"], np.zeros((1, 4))), (["newer"], np.ones((1, 4)))]
    hashes = [with_words(space, *more).sha256 for more in made]
    assert len({space.sha256, *hashes}) == 4
    assert hashes[0] == with_words(space, *made[0]).sha256


def test_more_words_are_known_and_never_released(small_space):
    vectors = np.random.default_rng(5).standard_normal((2, small_space.dimension))
    narrow = small_space.with_output(OutputVocabulary("even", np.arange(0, 2000, 2)))
    for base in (small_space, narrow):
        more = with_words(base, ["new", "néw"], vectors)
        assert more.size == base.size + 2
        assert more.ids(["new", "word3", "néw", "none"]).tolist() == [2000, 3, 2001, UNKNOWN]
        assert more.words([2001, 3]) == ["néw", "word3"]
        assert more.word(2000) == "new"
        np.testing.assert_array_equal(more.vectors[2000:], vectors.astype(np.float32))
        np.testing.assert_array_equal(more.vectors[:2000], base.vectors)
        assert more.output.name == base.output.name
        np.testing.assert_array_equal(more.output.ids, base.output.ids)
        assert more.nearest_output is base.nearest_output
        assert more.covariance is base.covariance
        made = base.derived("test", 1, lambda: np.array([7]))
        assert more.derived("test", 1, lambda: np.array([8])) is made
        assert more.sha256 != base.sha256
        copy = pickle.loads(pickle.dumps(more))
        assert copy.sha256 == more.sha256
        assert copy.ids(["néw"]).tolist() == [2001]


def test_more_words_of_a_stored_space_travel_alone(tmp_path):
    space = write(tmp_path / "space", words=list(map(str, range(5000))), vectors=np.ones((5000, 3)))
    more = with_words(space, ["new"], [[1, 2, 3]])
    assert len(pickle.dumps(more)) < 1500
    copy = pickle.loads(pickle.dumps(more))
    assert copy.vectors[copy.id("new")].tolist() == [1, 2, 3]


def test_more_words_keep_other_choices_open(toy):
    more = with_words(with_words(toy, ["new"], [[0, 9]]), ["newer"], [[9, 9]])
    assert more.words([5, 6]) == ["new", "newer"]
    narrow = more.with_output(OutputVocabulary("two", np.array([1, 4])))
    assert narrow.output.ids.tolist() == [1, 4]
    assert narrow.ids(["newer"]).tolist() == [6]
    assert len(narrow.nearest_output) == 2
    with pytest.raises(UsageError, match="outside the space"):
        more.with_output(OutputVocabulary("new ones", np.array([5])))


@pytest.mark.parametrize(
    ("words", "vectors"),
    [
        (["a"], [[1, 2]]),
        (["x", "x"], [[1, 2], [1, 2]]),
        (["x"], [[1, 2, 3]]),
        (["x"], [[1, np.nan]]),
        (["x"], [[1, 2], [3, 4]]),
    ],
)
def test_words_that_cannot_be_added_are_refused(toy, words, vectors):
    with pytest.raises(UsageError):
        with_words(toy, words, vectors)
