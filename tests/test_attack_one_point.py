"""The noisy point behind a release ``once``: found where it is, and it tells the word."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from sottovoce import mechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks import one_point
from sottovoce.privacy.attacks.covariances import moments, noise_covariance
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.half_spaces import FLOOR, _mean, cut_off
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.randomness import Draws
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.types import Float64Array, IntArray

NOISE = ["cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"]


def tiny_space(size: int, dimension: int, seed: int) -> WordSpace:
    vectors = 2 * Generator(PCG64(seed)).standard_normal((size, dimension))
    return WordSpace.from_arrays([f"word{i}" for i in range(size)], vectors)


def released_once(mech: NoiseMechanism, words: IntArray, n: int, seed: int) -> list[IntArray]:
    rng = Generator(PCG64(seed))
    return list(mech.draw_once(words, n, Draws([(rng, len(words))])))


def ranks(rows: np.ndarray, truth: IntArray) -> IntArray:
    """How many words are as likely as the true one, or more so."""
    return (rows >= rows[np.arange(len(truth)), truth][:, None]).sum(axis=1)


@pytest.mark.parametrize(("size", "dimension", "n"), [(40, 4, 4), (60, 5, 5), (30, 3, 3)])
def test_the_mean_is_that_of_rejection_sampling(size, dimension, n):
    """Points before looking, drawn at random; kept are those with the same nearest words."""
    cmp = mechanism("cmp", space=tiny_space(size, dimension, n), epsilon=3.0)
    evidence = OnePoint.of(cmp, rng=Generator(PCG64(0)))
    rng = Generator(PCG64(1))
    drawn = evidence.mean + rng.standard_normal((120_000, dimension)) @ evidence.root.T
    errors, from_centroid, spreads = compared(cmp, evidence, drawn, n, rng)
    assert errors.mean() < 0.25 * spreads.mean()
    assert errors.mean() < 0.25 * from_centroid.mean()
    # Truly noisy points are no Gaussian; it is still near them.
    words = rng.integers(size, size=120_000)
    noisy = cmp.perturb(words, Draws([(rng, len(words))])).astype(np.float64)
    errors, from_centroid, spreads = compared(cmp, evidence, noisy, n, rng)
    assert errors.mean() < 0.75 * spreads.mean()
    assert errors.mean() < 0.75 * from_centroid.mean()


def compared(
    mech: NoiseMechanism, evidence: OnePoint, points: Float64Array, n: int, rng: Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """For some sets of nearest words: how far the mean of their points is from what was found,
    how far from the centroid of the words, and how far the points spread.
    """
    near = np.sort(mech.near(points.astype(np.float32), n)[0], axis=1)
    shown, which, times = np.unique(near, axis=0, return_inverse=True, return_counts=True)
    often = rng.choice(np.flatnonzero(times >= 100), 20, replace=False)
    found = evidence.points([shown[i] for i in often])
    kept = [points[which.ravel() == i] for i in often]
    means = np.array([some.mean(axis=0) for some in kept])
    centroids = mech.space.vectors[shown[often]].mean(axis=1)
    spreads = np.array([np.sqrt(some.var(axis=0).sum()) for some in kept])
    return (
        np.linalg.norm(found - means, axis=1),
        np.linalg.norm(centroids - means, axis=1),
        spreads,
    )


def test_one_half_space_is_cut_off_exactly():
    """A standard normal above a limit has mean phi / (1 - Phi) there: 1.5251 above 1."""
    normals = np.array([[1.0, 0.0]], dtype=np.float32)
    factors = np.full(1, FLOOR), np.zeros(1, dtype=np.float32)
    cut = cut_off(normals, np.ones(1, dtype=np.float32), *factors, sweeps=8)
    np.testing.assert_allclose(cut.mean, [1.5251, 0], atol=2e-3)


def test_half_spaces_far_away_are_dropped():
    normals = np.tile(np.eye(2, dtype=np.float32), (50, 1))
    limits = np.full(100, -9, dtype=np.float32)
    limits[0] = 0
    factors = np.full(100, FLOOR), np.zeros(100, dtype=np.float32)
    cut = cut_off(normals, limits, *factors, sweeps=8)
    np.testing.assert_array_equal(cut.rows, [0])
    np.testing.assert_allclose(cut.mean, [np.sqrt(2 / np.pi), 0], atol=2e-3)


@pytest.mark.parametrize("spec", NOISE)
def test_the_covariance_of_the_noise_is_what_draws_have(small_space, spec):
    mech = mechanism(spec, space=small_space, epsilon=3.0)
    noise = mech.noise(Draws([(Generator(PCG64(2)), 100_000)]))
    exact = noise_covariance(mech, Generator(PCG64(3)))
    scale = np.trace(exact) / len(exact)
    np.testing.assert_allclose(noise.T @ noise / len(noise), exact, atol=0.05 * scale)


def test_an_unknown_covariance_is_estimated(small_space):
    mech = mechanism("mahalanobis:compat=pypantera", space=small_space, epsilon=3.0)
    assert mech.noise_covariance is None
    estimated = noise_covariance(mech, Generator(PCG64(3)))
    noise = mech.noise(Draws([(Generator(PCG64(2)), 100_000)]))
    scale = np.trace(estimated) / len(estimated)
    np.testing.assert_allclose(noise.T @ noise / len(noise), estimated, atol=0.2 * scale)


def test_moments_may_be_weighted(small_space):
    weights = Generator(PCG64(1)).random(small_space.size)
    mean, covariance = moments(small_space.vectors, weights)
    np.testing.assert_allclose(mean, np.average(small_space.vectors, axis=0, weights=weights))
    expected = np.cov(small_space.vectors.T, aweights=weights, bias=True)
    np.testing.assert_allclose(covariance, expected, atol=1e-9)


@pytest.mark.parametrize("spec", NOISE)
def test_places_do_not_depend_on_each_other(small_space, spec):
    mech = mechanism(spec, space=small_space, epsilon=6.0)
    places = released_once(mech, np.arange(0, 700, 10), 8, 3)
    places[5] = places[5][:0]
    evidence = evidence_for(mech, "once", rng=1)
    together = evidence.log_likelihood(places)
    assert not together[5].any()
    for size in (1, 7, 33):
        parts = [evidence.log_likelihood(places[at : at + size]) for at in range(0, 70, size)]
        np.testing.assert_allclose(np.concatenate(parts), together, rtol=1e-5, atol=1e-4)
    shuffled = [ids[::-1] for ids in places]
    np.testing.assert_array_equal(evidence.log_likelihood(shuffled), together)


@pytest.mark.parametrize("spec", NOISE)
def test_the_word_is_found_where_noise_is_small(small_space, spec):
    mech = mechanism(spec, space=small_space, epsilon=200.0)
    words = np.arange(0, 2000, 40)
    places = released_once(mech, words, 6, 1)
    rows = evidence_for(mech, "once", rng=1).log_likelihood(places)
    assert (rows.argmax(axis=1) == words).mean() > 0.8


def test_noise_of_an_odd_shape_hides_no_words(small_space):
    """Where there is hardly any noise, its shape must not matter: the word is among those shown."""
    words = np.arange(0, 2000, 20)
    found = {}
    for spec in ("cmp", "mahalanobis:lambda=1"):
        mech = mechanism(spec, space=small_space, epsilon=1e5)
        rows = evidence_for(mech, "once", rng=1).log_likelihood(released_once(mech, words, 6, 1))
        found[spec] = (rows.argmax(axis=1) == words).mean()
    assert found["mahalanobis:lambda=1"] > found["cmp"] - 0.1


def test_vickrey_once_is_the_release_of_its_noise(small_space):
    """From two words on the winner's draw does not show: the same rows as for cmp."""
    words = np.arange(0, 2000, 100)
    vickrey = mechanism("vickrey-cmp", space=small_space, epsilon=6.0)
    cmp = mechanism("cmp", space=small_space, epsilon=6.0)
    places = released_once(vickrey, words, 5, 2)
    np.testing.assert_array_equal(
        evidence_for(vickrey, "once", rng=1).log_likelihood(places),
        evidence_for(cmp, "once", rng=1).log_likelihood(places),
    )


def test_fewer_words_than_compete_are_read_as_a_part_of_them(small_space):
    """Two words shown of three that compete: an unseen word may be nearer than the second."""
    mech = mechanism("vickrey-cmp:weights=0.2/0.3/0.5", space=small_space, epsilon=12.0)
    words = np.arange(0, 2000, 20)
    places = released_once(mech, words, 2, 2)
    likely = ranks(evidence_for(mech, "once", rng=1).log_likelihood(places), words)
    assert np.median(likely) < 50


@pytest.mark.parametrize("spec", ["cmp", "vickrey-cmp"])
def test_one_word_once_is_one_fresh_draw(small_space, spec):
    mech = mechanism(spec, space=small_space, epsilon=8.0)
    places = [*released_once(mech, np.arange(8), 1, 2), np.full(9, 4)]
    once = evidence_for(mech, "once", rng=1).log_likelihood(places)
    fresh = evidence_for(mech, "independent", rng=1).log_likelihood(places)
    # Fitted on other draws, so not the same to the digit.
    for row, other in zip(once, fresh, strict=True):
        assert np.corrcoef(row, other)[0, 1] > 0.99
    # A word that stands in all variants was left in clear.
    assert once[-1].argmax() == 4


def test_every_word_may_be_shown():
    """No rivals are left; nor need the words shown be words that may be meant alone."""
    space = tiny_space(12, 3, 1).with_output(OutputVocabulary("part", np.arange(0, 12, 2)))
    cmp = mechanism("cmp", space=space, epsilon=3.0)
    rows = evidence_for(cmp, "once").log_likelihood([np.arange(0, 12, 2), np.array([0, 4])])
    assert rows.shape == (2, 12)
    assert np.isfinite(rows).all()


def test_a_prior_moves_the_point(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=4.0)
    weights = np.where(small_space.vectors[:, -1] > 0, 1.0, 0.01)
    words = np.flatnonzero(weights == 1)[:60]
    places = released_once(cmp, words, 8, 3)
    plain = OnePoint.of(cmp, rng=Generator(PCG64(1))).points(places)
    informed = OnePoint.of(cmp, rng=Generator(PCG64(1)), weights=weights).points(places)
    true = np.stack(list(small_space.vectors[words]))
    assert ((informed - true) ** 2).sum() < ((plain - true) ** 2).sum()


@pytest.mark.slow
def test_more_rivals_find_words_better(default_space, monkeypatch):
    """Two rounds of many rivals against one round of 300."""
    cmp = mechanism("cmp", space=default_space, epsilon=10.0)
    words = Generator(PCG64(7)).integers(4000, size=40)
    places = released_once(cmp, words, 20, 7)
    evidence = evidence_for(cmp, "once", rng=1)
    rows = evidence.log_likelihood(places)
    monkeypatch.setattr(one_point, "ROUNDS", ((300, 2),))
    fewer = evidence.log_likelihood(places)
    assert np.log(ranks(rows, words)).mean() < np.log(ranks(fewer, words)).mean()


def test_factors_that_single_precision_cannot_hold_beside_others_are_kept():
    """Many shown words may narrow one direction a billion times more than the rest."""
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(40, 30)).astype(np.float32)
    normals[1:12] = normals[0] + 1e-3 * normals[1:12]
    widths = np.ones(40, dtype=np.float32)
    widths[:12] = 3e11
    shifts = rng.normal(size=40).astype(np.float32)
    mean, _ = _mean(normals, widths, shifts)
    exact = normals.astype(np.float64)
    precision = (exact * widths[:, None]).T @ exact + np.eye(30)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, exact.T @ shifts), atol=2e-3)


# On a GPU


@pytest.mark.parametrize(("numbers", "at_once"), [(1 << 40, 7), (3 * 40_000, 3), (1, 1)])
def test_on_a_gpu_memory_is_bounded_however_many_words_there_are(monkeypatch, numbers, at_once):
    """A pretended device is given so many places at a time that no table outgrows the bound."""
    space = tiny_space(40_000, 3, 1)
    evidence = OnePoint.of(mechanism("cmp", space=space), rng=Generator(PCG64(0)))
    sizes = []

    class Device:
        def settle(self, shown, guesses, rounds):
            sizes.append(len(shown))
            return guesses

    monkeypatch.setattr(one_point, "device_in_use", lambda: "cuda")
    monkeypatch.setattr(one_point, "NUMBERS_ON_GPU", numbers)
    monkeypatch.setattr(OnePoint, "_on_gpu", Device())
    shown = [np.array([place, place + 1]) for place in range(7)]
    points = evidence.settled(shown, one_point.ROUNDS)
    assert max(sizes) == at_once
    assert sum(sizes) == len(points) == 7
    expected = np.stack([evidence.guess(words) for words in shown])
    assert np.array_equal(points, expected)


def test_rivals_in_many_dimensions_count_as_well(monkeypatch):
    space = tiny_space(50, 40, 1)
    evidence = OnePoint.of(mechanism("cmp", space=space), rng=Generator(PCG64(0)))
    monkeypatch.setattr(one_point, "device_in_use", lambda: "cuda")
    assert evidence._places_at_a_time == one_point.PLACES_ON_GPU
    monkeypatch.setattr(one_point, "NUMBERS_ON_GPU", 5 * 1000 * 40)
    assert evidence._places_at_a_time == 5
