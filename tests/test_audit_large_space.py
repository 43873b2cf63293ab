"""In a large space the audit lets fewer words be released, and misses nothing by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy import stats

from sottovoce import mechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy import word_samples
from sottovoce.privacy.auditing import audit
from sottovoce.privacy.auditing.fewer_outputs import (
    NEIGHBOURS,
    OTHERS,
    WORTH_IT,
    with_fewer_outputs,
)
from sottovoce.privacy.auditing.noise_checks import uneven
from sottovoce.randomness import Draws
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace

SIZE = WORTH_IT + 1000
WORDS = np.arange(0, SIZE, 300)


@pytest.fixture(scope="module")
def large() -> WordSpace:
    """Nine thousand words in thirty dimensions; one in four shares its place with another."""
    vectors = np.random.default_rng(5).standard_normal((SIZE, 30))
    vectors[1::4] = vectors[::4]
    return WordSpace.from_arrays([f"word{i}" for i in range(SIZE)], vectors, name="large")


def rng(seed=1):
    return Generator(PCG64(seed))


# What is released


def test_words_looked_at_stay_with_their_neighbours(large):
    chosen = mechanism("cmp", space=large, epsilon=7.0)
    narrow = with_fewer_outputs(chosen, WORDS, rng())
    near = word_samples.nearest_others(large, WORDS, range(1, NEIGHBOURS + 1))[0]
    kept = narrow.space.output.ids
    assert np.isin(WORDS, kept).all()
    assert np.isin(near, kept).all()
    assert OTHERS <= len(kept) <= OTHERS + WORDS.size * (NEIGHBOURS + 1)
    assert narrow.space.vectors is large.vectors or np.shares_memory(
        narrow.space.vectors, large.vectors
    )
    assert (narrow.epsilon, narrow.guarantee) == (chosen.epsilon, chosen.guarantee)
    points = [each.perturb(WORDS, Draws([(rng(3), len(WORDS))])) for each in (chosen, narrow)]
    assert np.array_equal(*points)


def test_what_may_not_be_released_still_may_not(large):
    output = OutputVocabulary("odd", np.arange(1, SIZE, 1), np.arange(1.0, SIZE))
    chosen = mechanism("cmp", space=large.with_output(output), prior=1.0)
    kept = with_fewer_outputs(chosen, WORDS, rng()).space.output
    assert 0 not in kept.ids
    assert np.array_equal(kept.popularity, kept.ids)


def test_what_is_cheap_or_cannot_be_done_is_left_as_it_is(large, small_space):
    many = tuple(1.0 for _ in range(OTHERS + len(WORDS) * (NEIGHBOURS + 2)))
    for chosen in (
        mechanism("cmp", space=small_space),
        mechanism("santext", space=large),
        mechanism("vickrey-cmp", space=large, weights=many),
    ):
        assert with_fewer_outputs(chosen, WORDS[:6], rng()) is chosen


# What is found


def broken(kind):
    return dataclass(frozen=True, repr=False, eq=False)(kind)


@broken
class SometimesTheOriginal(CMP):
    """One word in fifty comes back, whatever the noise."""

    def draw(self, ids, draws):
        drawn = super().draw(ids, draws)
        return np.where(draws.uniform() < 0.02, ids, drawn)


@broken
class OftenTheOriginal(CMP):
    def draw(self, ids, draws):
        return np.where(draws.uniform() < 0.2, ids, super().draw(ids, draws))


@broken
class NeverTheOriginal(CMP):
    def draw(self, ids, draws):
        near, _ = self.near(self.perturb(ids, draws), 2)
        return np.where(near[:, 0] == ids, near[:, 1], near[:, 0])


@broken
class OnlyAmongMany(OftenTheOriginal):
    """Is broken only as long as many words are released."""

    def draw(self, ids, draws):
        if len(self.space.output) > WORTH_IT:
            return super().draw(ids, draws)
        return CMP.draw(self, ids, draws)


@broken
class SharedNoise(CMP):
    def noise(self, draws):
        one = super().noise(Draws([(draws.units[0][0], 1)]))
        return np.repeat(one, draws.size, axis=0)


@broken
class Remembers(CMP):
    def draw(self, ids, draws):
        seen = self.__dict__.setdefault("seen", [0])
        seen[0] += len(ids)
        drawn = super().draw(ids, draws)
        return self.space.output.ids[(drawn + seen[0]) % len(self.space.output)]


@broken
class DependsOnTheOrder(CMP):
    """Is broken only as long as many words are released."""

    def draw(self, ids, draws):
        drawn = super().draw(ids, draws)
        return drawn[::-1] if len(self.space.output) > WORTH_IT else drawn


@broken
class OtherNumbersFirst(CMP):
    """Sound, but uses its random numbers otherwise than the noise alone would."""

    def draw(self, ids, draws):
        draws.uniform()
        return super().draw(ids, draws)


def refuted(chosen, seed=1):
    result = audit(chosen, draws=50_000, rng=seed, quick=True, words=20)
    return {finding.check for finding in result.findings if finding.verdict == "REFUTED"}


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (SometimesTheOriginal, "returned originals"),
        (OftenTheOriginal, "close pairs, sampled"),
        (NeverTheOriginal, "close pairs, sampled"),
        (OnlyAmongMany, "returned originals"),
        (SharedNoise, "batch independence"),
        (Remembers, "data dependence"),
        (DependsOnTheOrder, "order and seed"),
    ],
)
def test_a_broken_mechanism_is_caught_in_a_large_space(large, kind, check):
    assert check in refuted(kind(large, 15.0))


@pytest.mark.parametrize("kind", [CMP, OtherNumbersFirst])
def test_a_sound_mechanism_is_not_refuted_in_a_large_space(large, kind):
    for seed in range(3):
        assert not refuted(kind(large, 15.0), seed)


@pytest.mark.parametrize("spec", ["mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"])
def test_nor_are_the_others(large, spec):
    assert not refuted(mechanism(spec, space=large, epsilon=15.0))


def test_findings_say_how_many_words_were_released(large):
    result = audit(mechanism("cmp", space=large, epsilon=15.0), rng=1, quick=True, words=20)
    said = {finding.check: finding.sentence for finding in result.findings}
    for check in ("close pairs, sampled", "returned originals", "batch independence"):
        assert "words to be released" in said[check]
    assert "words to be released" not in said["line, sampled"]
    law = audit(mechanism("santext", space=large, epsilon=2.0), rng=1, quick=True, words=4)
    assert not any("to be released" in finding.sentence for finding in law.findings)


def test_a_seed_repeats_an_audit_of_a_large_space_on_any_number_of_threads(large):
    from sottovoce.threads import set_threads

    chosen, results = mechanism("cmp", space=large, epsilon=15.0), []
    try:
        for count in (1, 3):
            set_threads(count)
            results.append(audit(chosen, rng=7, quick=True, words=20).to_dict())
    finally:
        set_threads(None)
    assert results[0] == results[1]


# Numbers


@pytest.mark.parametrize("power", [1.0, 1.1, 1.5])
def test_uneven_shares_are_as_unlikely_as_scipy_says(power):
    shares = rng(int(10 * power)).random(2000) ** power
    exact = stats.kstest(shares, "uniform").pvalue
    assert exact <= uneven(shares) <= 2 * exact
    if exact < 0.01:
        assert uneven(shares) == pytest.approx(exact)
