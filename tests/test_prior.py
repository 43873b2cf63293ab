"""The prior of noise mechanisms: popular words near the noisy point, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from sottovoce import WordSpace, mechanism
from sottovoce.devices import gpu_present
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.randomness import Draws
from sottovoce.spaces.nearest import WORTH_CODING
from sottovoce.spaces.space import OutputVocabulary

SIZE, DIMENSION = 400, 12


@pytest.fixture(scope="module")
def space() -> WordSpace:
    rng = np.random.default_rng(3)
    made = WordSpace.from_arrays(
        [f"w{n}" for n in range(SIZE)], rng.standard_normal((SIZE, DIMENSION)) * 2, name="prior"
    )
    popularity = rng.uniform(0.1, 1000, SIZE // 2)
    return made.with_output(OutputVocabulary("half", np.arange(0, SIZE, 2), popularity))


def points(count):
    return (np.random.default_rng(5).standard_normal((count, DIMENSION)) * 4).astype(np.float32)


@pytest.mark.parametrize("name", ["cmp", "mahalanobis"])
@pytest.mark.parametrize("prior", [0.25, 1.0])
def test_the_words_of_largest_score_are_released(space, name, prior):
    chosen = mechanism(name, space=space, epsilon=3.0, prior=prior)
    ids, distances = chosen.near(points(50), 7)
    released = space.output.ids
    words = space.vectors[released].astype(np.float64)
    scores = points(50) @ words.T - 0.5 * (words**2).sum(axis=1)
    scores = scores + prior * DIMENSION / 3.0**2 * np.log(space.output.popularity)
    best = np.sort(scores, axis=1)[:, ::-1][:, :7]
    rows = np.searchsorted(released, ids)
    assert np.take_along_axis(scores, rows, axis=1) == pytest.approx(best, abs=1e-4)
    apart = np.linalg.norm(space.vectors[ids[0]] - points(50)[0], axis=1)
    assert distances[0] == pytest.approx(apart, rel=1e-5)


def test_popularity_is_not_searched_in_8_bits():
    """Its column and that of the half norms are so large that codes would tell nothing apart."""
    vectors = np.random.default_rng(1).standard_normal((WORTH_CODING // 64 + 1, 64))
    made = WordSpace.from_arrays([f"w{n}" for n in range(len(vectors))], vectors)
    assert not isinstance(made.likely_output.scan, type(made.nearest_output.scan)) or gpu_present()


def test_without_a_prior_nothing_changes_and_the_noise_is_the_same(space):
    plain, preferring = (
        mechanism("cmp", space=space, epsilon=3.0, prior=prior) for prior in (0.0, 0.5)
    )
    assert plain.spec == "cmp:epsilon=3"
    assert preferring.spec == "cmp:epsilon=3,prior=0.5"
    assert plain.guarantee == preferring.guarantee
    ids = np.arange(100)
    moved = [m.perturb(ids, Draws([(Generator(PCG64(1)), 100)])) for m in (plain, preferring)]
    assert np.array_equal(*moved)
    assert plain.releases_nearest
    assert not preferring.releases_nearest


def test_zipf_is_the_popularity_of_a_list(space):
    everything = WordSpace.from_arrays(["a", "b", "c"], np.eye(3))
    logs = everything.output.log_popularity
    assert np.exp(logs) == pytest.approx(1 / (np.arange(3) + 2.7))


def test_wrong_priors_and_popularities_are_refused(space):
    for prior in (-0.1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="prior"):
            mechanism("cmp", space=space, prior=prior)
    with pytest.raises(UsageError, match="no prior"):
        mechanism("vickrey-cmp", space=space, prior=0.5)
    for popularity in (np.zeros(2), np.ones(3), np.array([1.0, np.nan])):
        with pytest.raises(UsageError, match="popularity"):
            OutputVocabulary("wrong", np.arange(2), popularity)


def test_another_popularity_is_another_mechanism(space):
    other = space.with_output(OutputVocabulary("half", space.output.ids, np.ones(SIZE // 2)))
    made = {mechanism("cmp", space=s, prior=0.5).made_with for s in (space, other)}
    assert len(made) == 2


def test_the_attack_knows_the_head_start(space):
    """It finds the noisy point behind what was released better than one who does not know."""
    chosen = mechanism("cmp", space=space, epsilon=2.0, prior=1.0)
    ignorant = mechanism("cmp", space=space, epsilon=2.0)
    words = np.arange(60)
    draws = Draws([(Generator(PCG64(2)), len(words))])
    noisy = chosen.perturb(words, draws)
    shown = list(chosen.near(noisy, 10)[0])
    errors = []
    for knows in (chosen, ignorant):
        found = OnePoint.of(knows, rng=Generator(PCG64(3))).points(shown)
        errors.append(np.linalg.norm(found - noisy, axis=1).mean())
    assert errors[0] < 0.97 * errors[1]
