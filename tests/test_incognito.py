"""Incognito replaces rare words, names and numbers, and says that it keeps all others."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import chisquare

from sottovoce import WordSpace, mechanism, obfuscate
from sottovoce.errors import UsageError
from sottovoce.mechanisms.incognito import NOTHING_RISKY
from sottovoce.text import TextPipeline

WORDS = ("doctor", "city", "river", "illness", "tree", "london", "melanoma", "1984", "birch")
PLACES = ((0, 0), (5, 0), (5, 3), (1, 1), (9, 9), (5, 1), (1, 1.5), (0, 9), (9, 8))


@pytest.fixture(scope="module")
def space():
    return WordSpace.from_arrays(WORDS, np.array(PLACES, dtype=float), name="nine")


@pytest.fixture(scope="module")
def incognito(space, wordnet):
    return mechanism("incognito:common=6", space=space, wordnet=wordnet)


def rewrite(incognito, text, n=1, seed=0):
    return incognito.rewrite(text, n, TextPipeline(), default_rng(seed))


def test_rare_words_names_and_numbers_are_risky(incognito):
    assert {word for word in WORDS if incognito.is_risky(word)} == {
        *("london", "melanoma", "1984", "birch")
    }


def test_risky_words_become_the_nearest_that_are_not_and_others_stay(incognito):
    result = rewrite(incognito, "Doctor for melanoma in London", 3)
    assert result.variants == ("doctor illness city",)
    assert result.kept == ("doctor",)
    assert set(result.unknown) == {"for", "in"}
    assert "only 1 of 3 variants exist" in result.caveats


def test_noise_draws_one_of_the_nearest_each_equally_likely(space, wordnet):
    noisy = mechanism("incognito:common=6,choices=3", space=space, wordnet=wordnet)
    drawn = Counter(rewrite(noisy, "melanoma", 1, seed).variants[0] for seed in range(900))
    assert set(drawn) == {"illness", "doctor", "city"}
    assert chisquare(list(drawn.values())).pvalue > 1e-4
    assert set(rewrite(noisy, "melanoma", 9).variants) == set(drawn)


def test_a_text_without_a_risky_word_is_not_released(incognito):
    result = rewrite(incognito, "river doctor")
    assert result.variants == ()
    assert NOTHING_RISKY in result.caveats
    assert obfuscate("river doctor", incognito) == []


def test_it_promises_nothing_and_says_that_words_stay(incognito):
    assert incognito.guarantee.notion == "none"
    assert any("released as they are" in caveat for caveat in incognito.guarantee.caveats)


def test_parameters_are_checked(space, wordnet):
    for wrong in ("common=1", "choices=0", "choices=2000"):
        with pytest.raises(UsageError, match="must"):
            mechanism(f"incognito:{wrong}", space=space, wordnet=wordnet)


def test_a_word_never_becomes_a_form_of_itself(default_space, wordnet):
    incognito = mechanism("incognito:choices=20", space=default_space, wordnet=wordnet)
    for word in ("telescopes", "melanoma", "marathons"):
        substitutes = incognito.substitutes(word)
        assert len(substitutes) == 20
        assert not any(other.startswith(word[:8]) for other in substitutes)
