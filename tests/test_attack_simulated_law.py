"""The law fitted on simulated draws: likely draws are likely, and it reads words off them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.optimize import check_grad

from sottovoce import mechanism
from sottovoce.privacy.attacks import simulated_law
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.pair_sums import log_sums, squared_distances
from sottovoce.privacy.attacks.simulated_law import (
    Features,
    Fit,
    SimulatedLaw,
    words_like_those_of_texts,
)
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.types import IntArray

NOISE = ["cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"]


def held_out(law: np.ndarray, drawn: IntArray) -> float:
    """The mean log-likelihood of draws (words, n) by log-probabilities (words, outputs)."""
    return float(np.take_along_axis(law, drawn, axis=1).mean())


def by_distance(space: WordSpace, words: IntArray, drawn: IntArray) -> float:
    """The best that exp(-a |w - y|^2) reaches on these very draws, over a grid of a."""
    squared = squared_distances(space.folded, words, np.arange(space.size)).astype(np.float64)
    reached = []
    for rate in np.geomspace(1e-3, 10, 60):
        scores = -rate * squared
        law = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        reached.append(held_out(law, drawn))
    return max(reached)


@pytest.mark.parametrize("spec", [*NOISE, "mahalanobis:compat=pypantera"])
@pytest.mark.parametrize("epsilon", [3.0, 6.0])
def test_draws_held_out_are_likelier_than_by_distance_alone(small_space, spec, epsilon):
    mech = mechanism(spec, space=small_space, epsilon=epsilon)
    law = evidence_for(mech, "independent", rng=1)
    assert isinstance(law, SimulatedLaw)
    rng = Generator(PCG64(5))
    words = rng.integers(small_space.size, size=100)
    drawn = mech.sample(words, 20, rng).T
    assert held_out(law.log_probabilities(words), drawn) > by_distance(small_space, words, drawn)


def test_a_surplus_is_what_was_seen_beside_what_was_expected(small_space):
    output = np.arange(0, small_space.size, 3)
    popularity = np.exp(2 * Generator(PCG64(6)).standard_normal(len(output)))
    released = small_space.with_output(OutputVocabulary("part", output, popularity))
    mech = mechanism("cmp", space=released, epsilon=1.5, prior=0.5)
    rng = Generator(PCG64(1))
    features = Features.of(mech, rng)
    law = SimulatedLaw(mech, features, np.zeros(8))  # All released words alike.
    surplus = law.surplus(rng)
    assert not surplus[np.setdiff1d(np.arange(small_space.size), output)].any()
    words = words_like_those_of_texts(small_space, 2000, rng)
    counts = np.bincount(mech.sample(words, 20, rng).ravel(), minlength=small_space.size)[output]
    often = counts > 200
    assert often.sum() > 20
    expected = np.log(counts[often] / counts.mean())
    np.testing.assert_allclose(surplus[output][often], expected, atol=0.4)
    law = SimulatedLaw(mech, features.with_surplus(surplus), np.array([*np.zeros(8), 1.0]))
    np.testing.assert_allclose(law.surplus(rng)[output][often], 0, atol=0.4)


@pytest.mark.parametrize("spec", NOISE)
def test_probabilities_add_up_to_one_and_rows_are_their_sums(small_space, spec):
    released = OutputVocabulary("part", np.arange(0, 2000, 3))
    mech = mechanism(spec, space=small_space.with_output(released), epsilon=6.0)
    law = SimulatedLaw.of(mech, rng=Generator(PCG64(1)))
    everything = law.log_probabilities(np.arange(2000))
    np.testing.assert_allclose(np.exp(everything).sum(axis=1), 1, atol=1e-3)
    places = list(mech.sample(np.arange(6), 5, Generator(PCG64(2))).T)
    columns = [np.searchsorted(released.ids, ids) for ids in places]
    expected = np.stack([everything[:, seen].sum(axis=1) for seen in columns])
    np.testing.assert_allclose(law.log_likelihood(places), expected, atol=1e-2)


@pytest.mark.parametrize("part", [1, 3])
def test_sums_over_pairs_equal_brute_force(small_space, part):
    released = np.arange(0, small_space.size, part)
    weights = Generator(PCG64(1)).standard_normal(len(released))
    distances = Distances(small_space, released).rows(np.arange(small_space.size))
    expected = np.log((np.exp(-0.7 * distances**2 + weights)).sum(axis=1))
    sums = log_sums(
        small_space.size,
        released,
        lambda words, outputs: -0.7 * squared_distances(small_space.folded, words, outputs),
        weights,
    )
    np.testing.assert_allclose(sums, expected, atol=1e-3)


def test_the_fit_has_the_right_derivatives_and_ends_where_they_vanish(small_space):
    mech = mechanism("mahalanobis", space=small_space, epsilon=6.0)
    rng = Generator(PCG64(3))
    words = rng.integers(2000, size=40)
    fit = Fit(Features.of(mech, rng), words, mech.sample(words, 10, rng).T, rng)
    start = np.array([-3.0, 0.5, 0.4, -0.2, 0.3, 0.1, 0.2, 0.1])
    assert check_grad(fit.loss, lambda c: fit.derivatives(c)[1], start, epsilon=1e-2) < 0.02
    step = 1e-2 * np.eye(8)
    rows = [(fit.derivatives(start + s)[1] - fit.derivatives(start - s)[1]) / 2e-2 for s in step]
    np.testing.assert_allclose(fit.derivatives(start)[2], np.stack(rows), atol=0.02)
    np.testing.assert_allclose(fit.derivatives(fit.coefficients())[1], 0, atol=1e-2)


def test_a_part_of_the_alternatives_gives_about_the_same_fit(small_space, monkeypatch):
    mech = mechanism("cmp", space=small_space, epsilon=8.0)
    whole = SimulatedLaw.of(mech, rng=Generator(PCG64(3)))
    monkeypatch.setattr(simulated_law, "ALTERNATIVES", 700)
    part = SimulatedLaw.of(mech, rng=Generator(PCG64(3)))
    assert not np.array_equal(whole.coefficients, part.coefficients)
    words = np.arange(0, 2000, 20)
    drawn = mech.sample(words, 20, Generator(PCG64(4))).T
    lost = [held_out(law.log_probabilities(words), drawn) for law in (whole, part)]
    assert lost[1] == pytest.approx(lost[0], abs=0.02)


def test_a_seed_decides_and_blocks_do_not(small_space, monkeypatch):
    mech = mechanism("vickrey-cmp", space=small_space, epsilon=8.0)
    places = list(mech.sample(np.arange(30), 6, Generator(PCG64(4))).T)
    places[3] = places[3][:0]
    evidence = evidence_for(mech, "independent", rng=2)
    rows = evidence.log_likelihood(places)
    assert not rows[3].any()
    np.testing.assert_array_equal(
        evidence_for(mech, "independent", rng=2).log_likelihood(places), rows
    )
    for size in (1, 7):
        parts = [evidence.log_likelihood(places[at : at + size]) for at in range(0, 30, size)]
        np.testing.assert_allclose(np.concatenate(parts), rows, atol=2e-3)
    monkeypatch.setattr(simulated_law, "LAWS_AT_A_TIME", 77)
    np.testing.assert_allclose(evidence.log_likelihood(places), rows, atol=2e-3)


@pytest.fixture(
    scope="module",
    params=["everyday_words", pytest.param("default_space", marks=pytest.mark.thorough)],
)
def on_real_words(request):
    """A space, frequent words of it, twenty fresh draws of each, and their rows."""
    space = request.getfixturevalue(request.param)
    cmp = mechanism("cmp", space=space, epsilon=10.0)
    rng = Generator(PCG64(9))
    words = rng.integers(4000, size=80)
    drawn = cmp.sample(words, 20, rng).T
    evidence = evidence_for(cmp, "independent", rng=1)
    return space, words, drawn, evidence, evidence.log_likelihood(list(drawn))


@pytest.mark.slow
def test_it_is_at_least_as_good_as_mode_and_cosine(on_real_words):
    space, words, drawn, _, rows = on_real_words
    modes = np.array([np.bincount(ids).argmax() for ids in drawn])
    unit = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    cosines = (space.vectors[drawn].mean(axis=1) @ unit.T).argmax(axis=1)
    right = (rows.argmax(axis=1) == words).sum()
    assert right >= (modes == words).sum()
    assert right >= (cosines == words).sum()


@pytest.mark.slow
def test_it_beats_distance_alone_on_real_words(on_real_words):
    space, words, drawn, evidence, _ = on_real_words
    law = evidence.log_probabilities(words[:40])
    assert held_out(law, drawn[:40]) > by_distance(space, words[:40], drawn[:40]) + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.0, 0.5])
def test_of_much_noise_it_knows_more_than_how_often_words_come_out(everyday_words, prior):
    mech = mechanism("cmp", space=everyday_words, epsilon=2.5, prior=prior)
    law = SimulatedLaw.of(mech, rng=Generator(PCG64(1)))
    rng, size = Generator(PCG64(5)), everyday_words.size
    counted = mech.sample(rng.integers(size, size=2000), 50, rng)
    frequencies = 1 + np.bincount(counted.ravel(), minlength=size)
    words = rng.integers(size, size=200)
    drawn = mech.sample(words, 50, rng).T
    by_counting = np.log(frequencies / frequencies.sum())[drawn].mean()
    assert held_out(law.log_probabilities(words), drawn) > by_counting + 0.02
