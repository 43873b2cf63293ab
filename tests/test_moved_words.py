"""Words moved by common noise: the same answers as one search for each, and the same law."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from sottovoce import mechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy import word_draws
from sottovoce.privacy.plausible_deniability import deniability
from sottovoce.privacy.word_draws import CommonNoise, Sampler, sampler_for, usual_sharing
from sottovoce.privacy.word_samples import sample_words
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.moved_words import MovedWords
from sottovoce.spaces.space import OutputVocabulary, WordSpace


def same_as_the_search(space: WordSpace, words, shifts, k: int) -> None:
    ids, distances = MovedWords(space, words).nearest(shifts, k)
    sums = (shifts[None] + space.vectors[words][:, None]).astype(np.float32)
    places, far = space.nearest_output.top(sums.reshape(-1, space.dimension), k)
    assert np.array_equal(ids.reshape(-1, k), space.output.ids[places])
    assert np.allclose(distances.reshape(-1, k), far, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("size", [0.01, 1.0, 1000.0])
def test_every_sum_gets_the_words_that_a_search_finds(small_space, k, size):
    shifts = size * np.random.default_rng(k).standard_normal((70, 20))
    same_as_the_search(small_space, np.array([0, 3, 3, 1999]), shifts, k)


def test_words_that_only_rounding_tells_apart_are_decided_exactly():
    rng = np.random.default_rng(1)
    vectors = np.repeat(rng.standard_normal((20, 8)), 10, axis=0)
    vectors[100:] += 1e-7 * rng.standard_normal((100, 8))  # Below float32's steps, or near them.
    vectors[0] *= 1e4
    space = WordSpace.from_arrays([f"word{i}" for i in range(200)], vectors)
    same_as_the_search(space, np.array([5, 150]), rng.standard_normal((40, 8)), 3)
    with_zeros = np.concatenate([np.zeros((1, 8)), rng.standard_normal((4, 8))])
    same_as_the_search(space, np.arange(200), with_zeros, 1)


def test_only_words_of_the_output_come_out_also_for_words_outside_the_list(small_space):
    few = small_space.with_output(OutputVocabulary("few", np.arange(0, 2000, 7)))
    more = with_words(few, ["outside"], np.full((1, 20), 0.3))
    same_as_the_search(more, np.array([2000, 7, 8]), np.eye(20), 2)


def test_common_noise_draws_by_the_law_of_the_mechanism(toy):
    """Of five words each is drawn as often as by itself, with and without a choice."""
    for name in ("cmp", "vickrey-cmp"):
        built = mechanism(name, space=toy, epsilon=2)
        words, places = np.arange(5), np.arange(5)
        common = CommonNoise(name, words, 3, sharing=5).all(built, places, 4000)
        alone = Sampler(name, words, 4).all(built, places, 4000)
        for one, other in zip(common, alone, strict=True):
            counts = np.array([np.bincount(row, minlength=5) for row in (one, other)])
            assert chi2_contingency(counts[:, counts.any(axis=0)]).pvalue > 1e-4


def test_a_word_has_the_same_draws_whatever_is_drawn_beside_it(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    sampler = CommonNoise("cmp", sample_words(small_space, 12), 5, sharing=4)
    together = sampler.all(cmp, np.arange(12), 200)
    assert np.array_equal(together[3:5], sampler.all(cmp, np.array([3, 4]), 200))
    again = sampler.all(replace(cmp, epsilon=1e9), np.arange(12), 10)
    assert np.array_equal(again, np.repeat(sampler.words[:, None], 10, axis=1))


def test_as_many_words_share_their_noise_as_are_told_to(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    same = np.zeros(8, dtype=np.int64)
    rows = CommonNoise("cmp", same, 5, sharing=4).all(cmp, np.arange(8), 100)
    assert len(np.unique(rows[:4], axis=0)) == len(np.unique(rows[4:], axis=0)) == 1
    assert not np.array_equal(rows[0], rows[4])
    assert [usual_sharing(draws) for draws in (3, 100, 1000)] == [1, 3, 32]


def test_what_is_no_mere_noise_is_drawn_word_by_word(small_space, monkeypatch):
    """A subclass that changes how words are drawn must not be measured by what it does not do."""
    monkeypatch.setattr(word_draws, "WORTH_SHARING", 0)

    @dataclass(frozen=True, repr=False, eq=False)
    class Shy(CMP):
        def settle(self, points, draws):
            return np.zeros(len(points), dtype=np.int64)

    words = np.arange(3)
    kinds = {
        "cmp": mechanism("cmp", space=small_space, epsilon=3),
        "vickrey": mechanism("vickrey-mahalanobis", space=small_space, epsilon=3),
        "prior": mechanism("cmp", space=small_space, epsilon=3, prior=1.0),
        "shy": Shy(space=small_space, epsilon=3),
        "law": mechanism("santext", space=small_space, epsilon=3),
    }
    shared = {
        name: isinstance(sampler_for(built, words, 1, 3), CommonNoise)
        for name, built in kinds.items()
    }
    assert shared == {"cmp": True, "vickrey": True, "prior": False, "shy": False, "law": False}
    measured = deniability(kinds["shy"], words, draws=100, rng=1)
    assert measured.unchanged.tolist() == [1, 0, 0]
    alone = sampler_for(kinds["cmp"], words, 1, 1)
    assert not isinstance(alone, CommonNoise)
