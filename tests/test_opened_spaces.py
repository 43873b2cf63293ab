"""A space of given vectors, opened: vectors of other words are predicted from an encoder's."""

from __future__ import annotations

import numpy as np
import pytest
import wordfreq

from sottovoce import WordSpace
from sottovoce.encoders import load_encoder
from sottovoce.encoders.opened_spaces import fitted_axes, more_words, open_space, predicted
from sottovoce.encoders.word_spaces import misspelled, word_vectors
from sottovoce.errors import UsageError
from sottovoce.resources import catalogue, load_space
from sottovoce.spaces.space_encoder import projected
from sottovoce.types import UNKNOWN


@pytest.fixture(scope="module")
def english() -> WordSpace:
    """Frequent words whose vectors are a turned, shifted and noisy copy of the light encoder's."""
    words = [word for word in wordfreq.top_n_list("en", 3000) if word.isalpha()]
    rng = np.random.default_rng(4)
    turn = rng.standard_normal((256, 40))
    vectors = load_encoder("light").encode(words) @ turn + 3 + 0.1 * rng.standard_normal(40)
    return WordSpace.from_arrays(words, vectors, name="english")


@pytest.fixture(scope="module")
def opened(english, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOTTOVOCE_HOME", str(tmp_path_factory.mktemp("home")))
        return open_space(english, "english-open", "light")


def test_the_list_stays_and_other_words_are_predicted(english, opened):
    assert np.array_equal(opened.vectors, english.vectors)
    assert opened.sha256 == english.sha256
    truth = english.vectors[english.ids(["doctor", "hospital"])]
    encoder = load_encoder("light")
    guesses = projected(encoder.encode(["doctor", "hospital"]), opened.axes)
    assert np.linalg.norm(guesses - truth, axis=1).max() < 0.2 * np.linalg.norm(truth, axis=1).min()
    vectors, readable = word_vectors(opened, ["oncologist"])
    assert readable.all()
    assert vectors.shape == (1, english.dimension)


def test_predictions_differ_from_the_mean_as_much_as_the_list_does():
    rng = np.random.default_rng(1)
    encoded = rng.standard_normal((800, 30)).astype(np.float32)
    # Half of each vector does not follow from the encoder's: plain regression would shrink.
    vectors = encoded @ rng.standard_normal((30, 10)) + 6 * rng.standard_normal((800, 10)) + 5
    axes = fitted_axes(encoded, vectors.astype(np.float32))
    guesses = projected(encoded, axes)
    both = (vectors, guesses)
    spread, guessed = (np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean() for rows in both)
    assert guessed == pytest.approx(spread, rel=0.01)
    assert guesses.mean(axis=0) == pytest.approx(vectors.mean(axis=0), rel=0.01)


def test_words_of_a_donor_get_vectors_of_the_base():
    rng = np.random.default_rng(2)
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(500)]
    donor_vectors = rng.standard_normal((500, 12))
    turn = rng.standard_normal((12, 20))
    donor = WordSpace.from_arrays(words, donor_vectors, name="donor")
    base = WordSpace.from_arrays(words[:400], donor_vectors[:400] @ turn, name="base")
    more = more_words(base, donor, 450)
    assert more == words[400:450]
    truth = donor_vectors[400:450] @ turn
    assert np.abs(predicted(base, donor, more) - truth).max() < 0.05 * np.abs(truth).max()


def test_too_few_words_and_open_spaces_are_refused(opened, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="takes more than"):
        open_space(toy, "tiny-open", "light")
    with pytest.raises(UsageError, match="open already"):
        open_space(opened, "twice", "light")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        *(("govenment", "government"), ("goverrnment", "government"), ("govermment", "government")),
        *(("govrenment", "government"), ("hosp1tal", None), ("wrod", None), ("xyzzyxyz", None)),
    ],
)
def test_a_long_word_one_letter_off_is_taken_for_misspelled(opened, wrong, right):
    position = misspelled(opened, wrong)
    assert (None if position == UNKNOWN else opened.word(position)) == right
    if right is not None:
        vectors, _ = word_vectors(opened, [wrong])
        assert np.array_equal(vectors[0], opened.vectors[opened.id(right)])


def test_the_default_space_is_open_where_it_was_added():
    space = load_space(None)
    if space.name != catalogue.DEFAULT.name:
        pytest.skip("the default space was added without the strong encoder")
    assert space.size == catalogue.DEFAULT.words
    vectors, readable = word_vectors(space, ["ozempic", "melanomma"])
    assert readable.all()
    near = space.words(space.nearest_output.top(vectors[1:], 1)[0][0])
    assert near == ["melanoma"]
