"""Attacks on noise: what fresh draws give away, and what one noisy point does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from sottovoce.privacy.attacks.recovery import Recovery, strongest
from sottovoce.privacy.attacks.sampled import responsibilities
from sottovoce.privacy.attacks.truncation import truncated

from sottovoce import Obfuscator, mechanism
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.run import reconstruct
from sottovoce.randomness import Draws
from sottovoce.spaces.space import WordSpace
from sottovoce.statistics import clopper_pearson


def released(mech: WordMechanism, n: int, release: str, words: int = 120) -> list[Released]:
    """Texts of two words each, from a seed."""
    ids = Generator(PCG64(11)).choice(mech.space.size, words, replace=False)
    names = mech.space.words(ids)
    texts = [f"{a} {b}" for a, b in zip(names[::2], names[1::2], strict=True)]
    results = Obfuscator(mech, n=n, release=release, rng=5).obfuscate(texts)
    return [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]


def by_name(found: list[Recovery], n: int) -> dict[str, Recovery]:
    return {each.attack: each for each in found if each.n == n and each.applies}


@pytest.mark.parametrize("spec", ["cmp", "vickrey-mahalanobis", "mahalanobis:compat=pypantera"])
def test_one_noisy_point_gives_away_no_more_than_it_can(small_space: WordSpace, spec: str) -> None:
    mech = mechanism(spec, space=small_space, epsilon=6.0)
    found = by_name(reconstruct(released(mech, 10, "once"), mech, release="once", rng=1), 10)
    cell, ceiling = found["cell"], found["ceiling"]
    low, _ = clopper_pearson(cell.words_right, cell.words, 0.999)
    _, high = clopper_pearson(ceiling.words_right, ceiling.words, 0.999)
    assert low <= high
    # It reads most of what there is to read, where mode and centroid read little.
    assert cell.words_right > 0.4 * ceiling.words_right / ceiling.words * cell.words
    assert cell.words_right > 2 * found["mode"].words_right
    assert cell.words_right > found["centroid"].words_right
    assert strongest(found.values()) is cell


def test_the_ceiling_is_how_often_a_word_is_nearest_to_its_noisy_point(
    small_space: WordSpace,
) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=8.0)
    releases = released(cmp, 3, "once", words=60)
    found = by_name(reconstruct(releases, cmp, release="once", rng=1), 3)["ceiling"]
    assert found.bound
    ids = np.array([small_space.id(word) for each in releases for word in each.text.split()])
    back = cmp.sample(ids, 10, Generator(PCG64(2))) == ids
    low, high = clopper_pearson(found.words_right, found.words, 0.999)
    assert low - 0.02 <= back.mean() <= high + 0.02


def test_a_frequent_word_is_guessed_first(small_space: WordSpace) -> None:
    """With a prior that knows which words are meant, both attacks and the ceiling rise."""
    cmp = mechanism("cmp", space=small_space, epsilon=6.0)
    frequencies = np.ones(2000)
    releases = released(cmp, 10, "once", words=60)
    frequencies[[small_space.id(w) for each in releases for w in each.text.split()]] = 1e3
    flat = by_name(reconstruct(releases, cmp, release="once", rng=1), 10)
    known = by_name(reconstruct(releases, cmp, release="once", rng=1, prior=frequencies), 10)
    for attack in ("cell", "ceiling"):
        assert known[attack].words_right > flat[attack].words_right


@pytest.mark.parametrize("spec", ["cmp", "mahalanobis", "vickrey-cmp"])
def test_sampled_likelihood_reads_fresh_draws_better_than_the_mode(
    small_space: WordSpace, spec: str
) -> None:
    mech = mechanism(spec, space=small_space, epsilon=4.0)
    found = reconstruct(
        released(mech, 10, "independent"), mech, rng=1, attacks=["mode", "sampled"], counts=[10]
    )
    found_at = by_name(found, 10)
    assert found_at["sampled"].words_right > found_at["mode"].words_right


def test_shared_points_estimate_the_law_of_the_mechanism(toy: WordSpace) -> None:
    """Points drawn around all words give p(y|w), as many draws of w alone do."""
    for spec in (
        "cmp:epsilon=2",
        "mahalanobis:epsilon=2",
        "mahalanobis:epsilon=2,compat=pypantera",
    ):
        mech = mechanism(spec, space=toy)
        assert isinstance(mech, NoiseMechanism)
        words, count = np.arange(5), 40_000
        draws = Draws([(Generator(PCG64(3)), count)])
        points = mech.perturb(np.resize(words, count), draws)
        shares = responsibilities(mech, points.astype(np.float64), words)
        outputs = mech.settle(points, draws)
        law = np.array([[shares[outputs == y, w].sum() * 5 / count for y in words] for w in words])
        alone = mech.sample(words, 20_000, Generator(PCG64(4)))
        counted = np.array([[(alone[:, w] == y).mean() for y in words] for w in words])
        np.testing.assert_allclose(law, counted, atol=0.02)


def test_truncated_gaussians_have_the_moments_that_sampling_gives() -> None:
    rng = Generator(PCG64(8))
    normals = rng.standard_normal((6, 3))
    offsets = np.array([-1.0, -0.5, 0.0, -1.5, -0.3, -2.0])
    found = truncated(normals, offsets, sweeps=30)
    points = rng.standard_normal((2_000_000, 3))
    inside = points[(points @ normals.T > offsets).all(axis=1)]
    assert len(inside) > 2000
    np.testing.assert_allclose(found, inside.mean(axis=0), atol=0.05)


def test_a_half_space_has_the_moments_of_the_closed_form() -> None:
    found = truncated(np.array([[2.0, 0.0]]), np.array([0.0]), sweeps=50)
    np.testing.assert_allclose(found, [np.sqrt(2 / np.pi), 0.0], atol=1e-6)


def test_a_seed_gives_the_same_again_and_is_reported(small_space: WordSpace) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=5.0)
    for release in ("independent", "once"):
        releases = released(cmp, 5, release, words=20)
        first, second = (reconstruct(releases, cmp, release=release, rng=9) for _ in range(2))
        assert first == second
        assert all(each.seeded for each in first)
        assert not any(each.seeded for each in reconstruct(releases, cmp, release=release))


def test_progress_reaches_its_end(small_space: WordSpace) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=5.0)
    steps: list[tuple[int, int]] = []
    reconstruct(
        released(cmp, 3, "once", words=10),
        cmp,
        release="once",
        attacks=["cell"],
        rng=1,
        progress=lambda done, of: steps.append((done, of)),
    )
    assert steps[-1] == (10, 10)


def test_a_release_of_the_whole_vocabulary_says_nothing(toy: WordSpace) -> None:
    cmp = mechanism("cmp", space=toy, epsilon=2.0)
    releases = [Released("1", "a", ("a", "b", "c", "e", "f"))]
    found = by_name(reconstruct(releases, cmp, release="once", rng=1), 5)
    assert found["cell"].words == 1


@pytest.mark.slow
def test_one_noisy_point_of_the_default_space(default_space: WordSpace) -> None:
    """The attack on ``once`` reads well more than mode and centroid do, less than the ceiling."""
    cmp = mechanism("cmp", space=default_space, epsilon=12.5)
    ids = Generator(PCG64(5)).choice(10_000, 60, replace=False)
    results = Obfuscator(cmp, n=20, release="once", rng=5).obfuscate(default_space.words(ids))
    releases = [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]
    found = by_name(reconstruct(releases, cmp, release="once", rng=1, counts=[20]), 20)
    assert found["cell"].words_right >= 0.2 * 60
    assert found["cell"].words_right > found["centroid"].words_right
    assert found["cell"].words_right > found["mode"].words_right
