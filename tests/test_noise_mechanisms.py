"""The noise has the law of its paper, and the words that come out follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quadrature import circle, plane_law, worst
from scipy import stats
from threadpoolctl import threadpool_limits

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms.mahalanobis import Mahalanobis, MahalanobisNoise, NoiseShape
from sottovoce.mechanisms.vickrey import exponential_law, rational_law
from sottovoce.randomness import UNIT, Draws, Streams
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import set_threads

LEVEL = 1e-4
"""Chance of a false alarm in each goodness-of-fit test; seeds are fixed, so it never flickers."""

PLANE = WordSpace.from_arrays(
    list("abcLRT"),
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.2], [-0.1, 0.2], [0.1, 0.2], [0.0, 0.3]],
    name="plane",
)
STRETCH = np.diag([10.0, 0.1])


def draws(count, seed=1):
    return Draws([(np.random.default_rng(seed), count)])


@dataclass(frozen=True, repr=False, eq=False)
class Stretched(Mahalanobis):
    """Mahalanobis with a given matrix in place of the vocabulary's."""

    @cached_property
    def noise_law(self):
        return MahalanobisNoise(NoiseShape(STRETCH, 1.0), self.epsilon, self.compat == "pypantera")


@pytest.mark.parametrize("name", ["cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"])
def test_threads_change_no_word(name):
    rng = np.random.default_rng(2)
    space = WordSpace.from_arrays([f"w{i}" for i in range(300)], rng.standard_normal((300, 20)))
    noisy = mechanism(name, space=space, epsilon=20.0)
    ids = rng.integers(0, 300, 3 * UNIT + 50)
    releases = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            streams = Streams(3, name)
            one, several = (streams.draws(0, i, Streams.WORDS, len(ids)) for i in range(2))
            releases.append((noisy.draw(ids, one), noisy.draw_once(ids, 5, several)))
    finally:
        set_threads(None)
    for drawn, drawn_once in releases[1:]:
        assert np.array_equal(drawn, releases[0][0])
        assert np.array_equal(drawn_once, releases[0][1])


@pytest.mark.parametrize("dimension", [2, 7, 300])
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_cmp_noise_has_gamma_radius_and_uniform_direction(dimension, epsilon):
    space = WordSpace.from_arrays(["x", "y"], np.eye(2, dimension))
    noise = mechanism("cmp", space=space, epsilon=epsilon).noise(draws(20_000))
    radius = np.linalg.norm(noise, axis=1)
    assert stats.kstest(radius, stats.gamma(dimension, scale=1 / epsilon).cdf).pvalue > LEVEL
    # The square of a coordinate of a uniform direction is Beta(1/2, (d - 1)/2).
    share = (noise[:, 0] / radius) ** 2
    assert stats.kstest(share, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > LEVEL
    assert stats.spearmanr(radius, noise[:, 0]).pvalue > LEVEL
    projection = noise @ np.full(dimension, dimension**-0.5)
    spread = projection.std() * epsilon / np.sqrt(dimension + 1)
    assert projection.mean() == pytest.approx(0, abs=4 * projection.std() / np.sqrt(20_000))
    assert spread == pytest.approx(1, abs=0.03)


def test_mahalanobis_noise_has_gamma_radius_in_its_own_norm(small_space):
    chosen = mechanism("mahalanobis", space=small_space, epsilon=3.0, **{"lambda": 0.8})
    noise = chosen.noise(draws(20_000))
    own = np.sqrt((noise @ np.linalg.inv(chosen.noise_law.shape.matrix) * noise).sum(axis=1))
    law = stats.gamma(small_space.dimension, scale=1 / 3).cdf
    assert stats.kstest(own, law).pvalue > LEVEL
    renormalised = replace(chosen, compat="pypantera").noise(draws(20_000))
    assert stats.kstest(np.linalg.norm(renormalised, axis=1), law).pvalue > LEVEL
    wrong = np.sqrt(
        (renormalised @ np.linalg.inv(chosen.noise_law.shape.matrix) * renormalised).sum(axis=1)
    )
    assert stats.kstest(wrong, law).pvalue < 1e-12


def test_mahalanobis_matrices_of_the_five_words(toy):
    chosen = mechanism("mahalanobis", space=toy, lambda_=0.5)
    np.testing.assert_allclose(
        chosen.noise_law.shape.matrix, [[1.40896, -0.08530], [-0.08530, 0.59104]], atol=1e-5
    )
    np.testing.assert_allclose(
        np.linalg.eigvalsh(chosen.noise_law.shape.matrix), [0.58224, 1.41776], atol=1e-5
    )
    np.testing.assert_allclose(
        chosen.noise_law.shape.root, [[1.18619, -0.04366], [-0.04366, 0.76755]], atol=1e-5
    )
    difference = toy.vectors[0] - toy.vectors[1]
    distance = np.sqrt(difference @ np.linalg.inv(chosen.noise_law.shape.matrix) @ difference)
    assert distance == pytest.approx(0.78632, abs=1e-5)


@pytest.mark.parametrize("name", ["mahalanobis", "vickrey-mahalanobis"])
def test_the_shape_of_a_space_is_worked_out_once_for_all_epsilons(small_space, name, monkeypatch):
    worked_out = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: worked_out.append(1) or eigh(matrix))
    space = small_space.with_output(small_space.output)
    chosen = mechanism(name, space=space, epsilon=3.0)
    noise = [replace(chosen, epsilon=epsilon).noise(draws(50)) for epsilon in (3.0, 7.0, 0.5)]
    assert len(worked_out) == 1
    # Another lambda has another shape, and afterwards the first one is worked out again.
    flatter = replace(chosen, lambda_=0.9)
    assert not np.allclose(flatter.noise(draws(50)), noise[0])
    for epsilon, shared in zip((3.0, 7.0, 0.5), noise, strict=True):
        law = MahalanobisNoise(NoiseShape(space.covariance, chosen.lambda_), epsilon)
        assert np.array_equal(law.noise(draws(50)), shared)
        assert np.array_equal(replace(chosen, epsilon=epsilon).noise(draws(50)), shared)


def test_a_shape_is_not_kept_for_another_covariance(small_space):
    space = small_space.with_output(small_space.output)
    before = mechanism("mahalanobis", space=space, epsilon=3.0).noise(draws(50))
    space.covariance = np.eye(space.dimension)
    after = mechanism("mahalanobis", space=space, epsilon=3.0).noise(draws(50))
    assert np.allclose(after, mechanism("cmp", space=space, epsilon=3.0).noise(draws(50)))
    assert not np.allclose(after, before)


def test_blas_threads_change_no_noise_and_no_distance():
    """A wider space: BLAS takes several threads for large matrices only."""
    rng = np.random.default_rng(3)
    wide = WordSpace.from_arrays([f"w{i}" for i in range(900)], rng.standard_normal((900, 300)))
    released = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            shape = NoiseShape(wide.covariance, 0.5)
            chosen = mechanism("mahalanobis", space=wide.with_output(wide.output), epsilon=3.0)
            distances = chosen.distances(np.arange(100), np.arange(100, 200))
            released.append((shape.root, chosen.noise(draws(50)), distances))
    assert all(np.array_equal(*both) for both in zip(*released, strict=True))


def test_mahalanobis_without_shape_is_cmp(toy):
    one = mechanism("cmp", space=toy).noise(draws(50))
    other = mechanism("mahalanobis", space=toy, lambda_=0).noise(draws(50))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_euclidean_bound_of_mahalanobis_is_stated(default_space):
    for weight, factor in ((1.0, 4.97), (0.75, 1.89), (0.2, 1.11)):
        chosen = mechanism("mahalanobis", space=default_space, epsilon=1.0, lambda_=weight)
        (bound,) = chosen.facts().values()
        assert bound == pytest.approx(factor, abs=0.03)


# The plane: exact laws by quadrature, and the mechanisms' own draws against them

NOISES = {
    "cmp": (mechanism("cmp", space=PLANE, epsilon=1.0), circle()),
    "mahalanobis": (Stretched(PLANE, 1.0), circle() @ np.sqrt(STRETCH)),
    "re-normalised": (
        Stretched(PLANE, 1.0, compat="pypantera"),
        circle()
        @ np.sqrt(STRETCH)
        / np.linalg.norm(circle() @ np.sqrt(STRETCH), axis=1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", NOISES)
def test_draws_in_the_plane_follow_the_exact_law(name):
    chosen, directions = NOISES[name]
    law = plane_law(PLANE.vectors, directions, 1.0)
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-9)
    count = 200_000
    drawn = chosen.sample(np.arange(6), count, np.random.default_rng(7))
    for row in range(6):
        observed = np.bincount(drawn[:, row], minlength=6)
        assert stats.chisquare(observed, law[row] * count).pvalue > LEVEL


@pytest.mark.parametrize(
    ("name", "euclidean", "mahalanobis"),
    [
        ("cmp", (0.093, 0.100), (0.939, 0.316)),
        ("mahalanobis", (0.943, 0.300), (0.632, 0.632)),
        ("re-normalised", (3.010, 0.224), (2.913, 0.318)),
    ],
)
def test_which_guarantee_holds_in_the_plane(name, euclidean, mahalanobis):
    """CMP keeps its Euclidean bound, Mahalanobis its own; re-normalised noise keeps neither."""
    law = plane_law(PLANE.vectors, NOISES[name][1], 1.0)
    offset = PLANE.vectors[:, None].astype(np.float64) - PLANE.vectors[None]
    plain = np.sqrt((offset**2).sum(axis=2))
    shaped = np.sqrt((offset**2 / np.diag(STRETCH)).sum(axis=2))
    for distances, expected in ((plain, euclidean), (shaped, mahalanobis)):
        ratio, bound, *_ = worst(law, distances, 1.0)
        assert ratio == pytest.approx(expected[0], abs=0.005)
        assert bound == pytest.approx(expected[1], abs=0.005)
    promised = NOISES[name][0].guarantee
    if promised.notion == "metric":
        distances = plain if promised.metric == "euclidean" else shaped
        ratio, bound, *_ = worst(law, distances, promised.epsilon)
        assert ratio <= bound + 1e-6


# Vickrey


def test_vickrey_law_of_the_five_words(toy):
    chosen = mechanism("vickrey-cmp", space=toy)
    ids, distances = chosen.near(np.array([[0.95, 0.2]], dtype=np.float32), 2)
    assert toy.words(ids[0]) == ["a", "b"]
    np.testing.assert_allclose(distances[0], [0.20616, 0.42720], atol=1e-5)
    assert chosen.probabilities(distances)[0, 0] == pytest.approx(0.40854, abs=1e-5)
    points = np.tile(np.array([[0.95, 0.2]], dtype=np.float32), (100_000, 1))
    share = (chosen.settle(points, draws(100_000)) == 0).mean()
    assert share == pytest.approx(0.40854, abs=0.007)


@given(
    st.floats(0.001, 50), st.floats(0.001, 50), st.floats(0, 1, exclude_min=True, exclude_max=True)
)
def test_two_candidates_follow_the_formula_of_the_paper(near, gap, t):
    far = near + gap
    (first, second) = rational_law(np.array([[near, far]]), np.array([1 - t, t]))[0]
    assert first == pytest.approx((1 - t) * far / (t * near + (1 - t) * far), rel=1e-9)
    assert first + second == pytest.approx(1)


@pytest.mark.parametrize(
    ("distances", "t", "expected"),
    [
        ([0.0, 1.0], 0.75, [1.0, 0.0]),
        ([0.0, 1.0], 1.0, [0.0, 1.0]),
        ([1.0, 2.0], 0.0, [1.0, 0.0]),
        ([1.0, 2.0], 1.0, [0.0, 1.0]),
        ([0.0, 0.0], 0.75, [0.25, 0.75]),
    ],
)
def test_the_edges_of_vickrey(toy, distances, t, expected):
    chosen = mechanism("vickrey-cmp", space=toy, t=t)
    assert chosen.probabilities(np.array([distances]))[0].tolist() == expected


def test_vickrey_with_t_zero_is_its_base(small_space):
    ids = np.arange(0, 2000, 20)
    base = mechanism("cmp", space=small_space, epsilon=5.0)
    same = mechanism("vickrey-cmp", space=small_space, epsilon=5.0, t=0)
    assert np.array_equal(base.draw(ids, draws(len(ids))), same.draw(ids, draws(len(ids))))


def test_vickrey_among_more_words(toy):
    chosen = mechanism("vickrey-cmp", space=toy, weights="0.2/0.5/0.3")
    law = chosen.probabilities(np.array([[1.0, 2.0, 4.0]]))[0]
    np.testing.assert_allclose(law, np.array([0.2, 0.25, 0.075]) / 0.525)
    chosen = mechanism("vickrey-cmp:law=exponential,weights=1/0", space=toy)
    law = chosen.probabilities(np.array([[1.0, 3.0]]))[0]
    np.testing.assert_allclose(law, [np.exp(-1) / (np.exp(-1) + 1), 1 / (np.exp(-1) + 1)])
    far = exponential_law(np.array([[2000.0, 2001.0]]), np.array([1.0, 1.0]))[0]
    np.testing.assert_allclose(far, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])


def test_vickrey_never_looks_at_the_input_word(small_space):
    """The same noisy points give the same words, wherever the points came from."""
    chosen = mechanism("vickrey-mahalanobis", space=small_space, epsilon=2.0)
    points = chosen.perturb(np.arange(300), draws(300))
    assert np.array_equal(
        chosen.settle(points, draws(300, 2)), chosen.settle(points, draws(300, 2))
    )
    drawn = chosen.draw(np.arange(300), draws(300))
    again = draws(300)
    assert np.array_equal(drawn, chosen.settle(chosen.perturb(np.arange(300), again), again))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("vickrey-cmp:t=1.5", "between 0 and 1"),
        ("vickrey-cmp:weights=1", "two or more"),
        ("vickrey-cmp:weights=-1/2", "negative"),
        ("vickrey-cmp:weights=0/0", "positive"),
        ("vickrey-cmp:weights=1/1/1/1/1/1", "only 5"),
        ("vickrey-cmp:law=exponential", "needs weights"),
        ("mahalanobis:lambda=-0.1", "between 0 and 1"),
        ("cmp:epsilon=0", "positive"),
        ("cmp:epsilon=nan", "positive"),
        ("cmp:epsilon=inf", "positive"),
    ],
)
def test_impossible_parameters_are_refused(toy, spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, space=toy)


def test_noise_too_large_for_float32_fails_closed(toy):
    with pytest.raises(UsageError, match="too large for the numbers"):
        mechanism("cmp", space=toy, epsilon=1e-45)
