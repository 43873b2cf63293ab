"""Likelihood by sampling, for noise mechanisms and fresh draws.

Nobody knows p(y|w) of a noise mechanism in closed form, but its noise has a known density. For a
position a few words are candidates: those seen, and those nearest to the centroid. Noisy points
are drawn around all of them together, each is settled into a word y, and

    p(y|w) = mean over points with this y of f(z - w) / q(z),   q the mixture over candidates,

so every point counts for every candidate that could have given it.
"""

from __future__ import annotations

import numpy as np

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.target import Target
from sottovoce.randomness import Draws
from sottovoce.types import UNKNOWN, Float64Array, IntArray

NEAR_CENTROID = 10
SEEN = 20
"""At most so many of the words seen, the most frequent first, are candidates."""
POINTS = 1024
"""Noisy points drawn for each position."""
FLOOR = 0.05
"""A word that no point settled into is taken to have had this share of one point."""


def sampled(target: Target, n: int) -> IntArray:
    """The candidate of largest estimated likelihood at each position."""
    guesses = np.full(len(target.ids), UNKNOWN)
    for place, seen in enumerate(target.seen(n)):
        if len(seen):
            guesses[place] = _best(target, seen)
        if target.progress:
            target.progress(place + 1, len(guesses))
    return target.settled(guesses, n)


def _best(target: Target, seen: IntArray) -> int:
    mechanism = target.mechanism
    assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - asked before
    words, times = np.unique(seen, return_counts=True)
    candidates = _candidates(target, words, times, seen)
    draws = Draws([(target.rng, POINTS)])
    points = mechanism.perturb(np.resize(candidates, POINTS), draws)
    released = mechanism.settle(points, draws)
    useful = np.isin(released, words)
    shares = responsibilities(mechanism, points[useful].astype(np.float64), candidates)
    mass = np.zeros((len(words), len(candidates)))
    np.add.at(mass, np.searchsorted(words, released[useful]), shares)
    chances = (mass + FLOOR) * len(candidates) / POINTS
    scores = times @ np.log(chances) + target.prior(candidates)
    return int(candidates[np.argmax(scores)])


def _candidates(target: Target, words: IntArray, times: IntArray, seen: IntArray) -> IntArray:
    often = words[np.argsort(-times, kind="stable")[:SEEN]]
    centre = target.space.vectors[seen].mean(axis=0, keepdims=True)
    near = target.search.top(centre, min(NEAR_CENTROID, target.space.size))[0][0]
    return np.union1d(often, near)


def responsibilities(
    mechanism: NoiseMechanism, points: Float64Array, candidates: IntArray
) -> Float64Array:
    """f(z - w) / sum over candidates of f(z - w'), (points, candidates)."""
    vectors = mechanism.space.vectors[candidates].astype(np.float64)
    logs = np.stack([mechanism.log_density(points - vector) for vector in vectors], axis=1)
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
