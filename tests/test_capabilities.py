"""What mechanisms say they can do is true: the lab relies on it instead of knowing them by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from sottovoce import mechanism
from sottovoce.mechanisms import kind, names
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.pools import Pool
from sottovoce.randomness import Draws

WORDS = [name for name in names() if kind(name).by_word]
BOXES = [name for name in WORDS if issubclass(kind(name), BoxMechanism)]
NOISE = [name for name in WORDS if issubclass(kind(name), NoiseMechanism)]
EXPONENTIAL = [name for name in WORDS if issubclass(kind(name), ExponentialMechanism)]
BOTH_LAWS = ["santext:sensitive=0.5", *EXPONENTIAL, "tem:gamma=3"]


@pytest.mark.parametrize("name", WORDS)
def test_a_law_is_announced_where_there_is_one(small_space, name):
    made = mechanism(name, space=small_space)
    assert made.has_law == (made.log_probabilities(np.array([5])) is not None)
    assert made.has_law == (name not in NOISE)


@pytest.mark.parametrize("name", names())
def test_a_density_is_announced_where_there_is_one(name):
    announced = kind(name).has_density
    assert announced == hasattr(kind(name), "log_density") == hasattr(kind(name), "noise")


@pytest.mark.parametrize("name", WORDS)
def test_the_size_of_a_box_is_a_parameter_and_limits_what_is_released(small_space, name):
    made = mechanism(name, space=small_space)
    assert (made.box_size is not None) == (name in BOXES)
    if made.box_size is not None:
        for size in (6, 9):
            law = replace(made, **{made.box_size: size}).log_probabilities(np.arange(20))
            assert np.isfinite(law).sum(axis=1).max() == size


@pytest.mark.parametrize("name", [*BOXES, "custext:compat=knn", "wbb:compat=repo"])
def test_boxes_that_are_said_not_to_depend_on_epsilon_do_not(small_space, name):
    made = mechanism(name, space=small_space)
    assert not made.box_depends_on_epsilon
    low, high = (replace(made, epsilon=epsilon).laws(np.arange(50)) for epsilon in (0.5, 20.0))
    for (one, _), (other, _) in zip(low, high, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", WORDS)
def test_epsilon_is_per_distance_where_the_law_depends_on_their_product(small_space, name):
    """Twice as far at half the epsilon is the same law, or the same noise."""
    made = mechanism(name, space=small_space, epsilon=4.0)
    vectors = 2 * small_space.vectors
    space = type(small_space).from_arrays(small_space.words(range(len(vectors))), vectors)
    same = {2.0: made.epsilon_per_distance, 4.0: not made.epsilon_per_distance}
    ids = np.arange(0, 2000, 50)
    for epsilon, expected in same.items():
        scaled = replace(made, space=space, epsilon=epsilon)
        if made.has_law:
            found = np.allclose(made.log_probabilities(ids), scaled.log_probabilities(ids))
        else:
            drawn = [m.draw(ids, Draws([(Generator(PCG64(1)), len(ids))])) for m in (made, scaled)]
            found = np.array_equal(*drawn)
        assert found == expected


@pytest.mark.parametrize("spec", BOTH_LAWS)
def test_a_concave_cost_is_one_and_the_law_follows_from_it(small_space, spec):
    made = mechanism(spec, space=small_space)
    grid = np.linspace(0, 20, 401)
    costs = made.cost(grid.copy())
    concave = (costs[1:-1] >= (costs[2:] + costs[:-2]) / 2 - 1e-9).all()
    ids = np.arange(0, 2000, 100)
    vectors = small_space.vectors.astype(np.float64)
    far = np.linalg.norm(vectors[ids][:, None] - vectors[None, made.released], axis=2)
    law = np.full((len(ids), small_space.size), -np.inf)
    scores = -made.epsilon / 2 * made.cost(far)
    law[:, made.released] = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    follows = np.allclose(law, made.log_probabilities(ids), atol=1e-5)
    assert made.has_concave_cost == (concave and follows)


@pytest.mark.parametrize("name", NOISE)
def test_the_nearest_word_is_released_where_that_is_said(small_space, name):
    made = mechanism(name, space=small_space, epsilon=3.0)
    ids = np.arange(300)
    draws = Draws([(Generator(PCG64(1)), len(ids))])
    points = made.perturb(ids, draws)
    nearest = np.array_equal(made.settle(points, draws), made.near(points, 1)[0][:, 0])
    assert nearest == made.releases_nearest


@pytest.mark.parametrize("compat", ["none", "authors"])
def test_shared_noise_is_announced(compat):
    pool = Pool([f"string number {number}" for number in range(50)], "light")
    made = mechanism("comet-cmp", pool=pool, epsilon=0.1, compat=compat)
    drawn = made.sample(["the same text"] * 8, 20, Generator(PCG64(1)))
    assert made.shares_noise == (drawn == drawn[:, :1]).all()
