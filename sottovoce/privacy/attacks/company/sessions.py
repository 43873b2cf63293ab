"""Attacks on a run of sets: what is meant persists from set to set, and decoys do not.

Sets of the same strings are one: company that is remembered tells nothing the second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sottovoce.privacy.attacks.company.beliefs import Belief
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.types import Float32Array, Float64Array, IntArray

Background: TypeAlias = Float32Array
"""Vectors of strings as decoys are drawn: what similarity comes by chance."""
ReadSession: TypeAlias = Callable[[list[SeenSet]], list[Float64Array]]
"""The log-odds of each string in each of some different sets of one person."""

CHANCE_SETS = 50
"""Sets of background strings that linkage is compared with."""
CONCENTRATIONS = (6.0, 12.0, 24.0)
"""How narrow a subject may be: the factor of the cosine with its middle in the log-density."""
ROUNDS = 8
"""Of moving the middle of a subject to what belongs to it."""
LEFT_OUT = 0.1
"""The share of sets that may lack what was meant; about what cover's 1 - p is."""


def by_session(seen: Sequence[SeenSet], read: ReadSession) -> list[Float64Array]:
    """Read the sets of each person together, equal ones once."""
    scores: list[Float64Array] = [one.inside for one in seen]
    sessions: dict[str, list[int]] = {}
    for place, one in enumerate(seen):
        sessions.setdefault(one.person, []).append(place)
    for places in sessions.values():
        different: dict[frozenset[str], int] = {}
        for place in places:
            different.setdefault(seen[place].key, place)
        firsts = list(different.values())
        together = dict(zip(firsts, read([seen[place] for place in firsts]), strict=True))
        for place in places:
            first = seen[different[seen[place].key]]
            found = dict(zip(first.strings, together[different[seen[place].key]], strict=True))
            scores[place] = np.array([found[string] for string in seen[place].strings])
    return scores


def repetition(sets: list[SeenSet]) -> list[Float64Array]:
    """As if the same had been asked each time: the law of all sets, given each string."""
    members = [one.key for one in sets]
    return [
        np.array(
            [
                sum(inside if string in others else outside for others in members)
                for string, inside, outside in zip(
                    one.strings, one.inside.tolist(), one.outside.tolist(), strict=True
                )
            ]
        )
        for one in sets
    ]


def linkage(background: Background) -> ReadSession:
    """How much nearer each string is to the other sets than chance would have it."""

    def read(sets: list[SeenSet]) -> list[Float64Array]:
        if len(sets) == 1:
            return [sets[0].inside]
        vectors = np.concatenate([one.vectors for one in sets])
        ends = np.cumsum([len(one.strings) for one in sets])
        starts = ends - [len(one.strings) for one in sets]
        nearest = np.maximum.reduceat(vectors @ vectors.T, starts, axis=1).astype(np.float64)
        size = int(np.median(ends - starts))
        rng = np.random.default_rng(0)
        chosen: IntArray = rng.integers(len(background), size=CHANCE_SETS * size)
        by_chance = (vectors @ background[chosen].T).reshape(len(vectors), CHANCE_SETS, size)
        expected = by_chance.max(axis=2).astype(np.float64)
        above = (nearest - expected.mean(axis=1)[:, None]) / expected.std(axis=1)[:, None]
        scores = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            others = np.delete(above[start:end], number, axis=1)
            scores.append(others.sum(axis=1))
        return scores

    return read


def clustering(background: Background, belief: Belief) -> ReadSession:
    """The one subject that runs through most sets, and which string of each belongs to it.

    A subject has a middle c; what was meant is near to it, with density exp(K cos(c, v)) relative
    to the background, and all other strings are background. From every string as middle, c moves to
    the mean of what belongs to it; the likeliest middle of all is taken.
    """

    def read(sets: list[SeenSet]) -> list[Float64Array]:
        vectors = np.concatenate([one.vectors for one in sets]).astype(np.float64)
        ends = np.cumsum([len(one.strings) for one in sets])
        starts = ends - [len(one.strings) for one in sets]
        odds = np.concatenate([_shares(one.inside + belief(one)) for one in sets])
        best, likeliest = odds, -np.inf
        for narrow in CONCENTRATIONS:
            belongs, likelihood = _subjects(vectors, odds, starts, background, narrow)
            if likelihood.max() > likeliest:
                likeliest = float(likelihood.max())
                best = belongs[int(likelihood.argmax())]
        return [best[start:end] for start, end in zip(starts, ends, strict=True)]

    return read


def _shares(log_odds: Float64Array) -> Float64Array:
    """Log-odds as logarithms of probabilities."""
    return np.asarray(log_odds - np.logaddexp.reduce(log_odds))


def _subjects(
    vectors: Float64Array,
    odds: Float64Array,
    starts: IntArray,
    background: Background,
    narrow: float,
) -> tuple[Float64Array, Float64Array]:
    """For every string as first middle: the log-odds of all strings, and the log-likelihood."""
    middles = vectors
    for _ in range(ROUNDS):
        middles = _unit(middles)
        scale = np.log(np.exp(narrow * (middles @ background.T)).mean(axis=1))[:, None]
        terms = odds + narrow * (middles @ vectors.T) - scale
        # A set in which nothing belongs to the subject lacks what was meant.
        totals = np.logaddexp(
            np.log(LEFT_OUT),
            np.log(1 - LEFT_OUT) + np.logaddexp.reduceat(terms, starts, axis=1),
        )
        sizes = np.diff([*starts.tolist(), len(vectors)])
        belong = np.exp(np.log(1 - LEFT_OUT) + terms - np.repeat(totals, sizes, axis=1))
        middles = belong @ vectors
    return terms, totals.sum(axis=1)


def _unit(rows: Float64Array) -> Float64Array:
    return np.asarray(rows / np.maximum(np.sqrt((rows * rows).sum(axis=1, keepdims=True)), 1e-12))
