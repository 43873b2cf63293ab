"""Attacks on a run of sets: what is meant persists from set to set, and decoys do not.

Sets of the same strings are one: company that is remembered tells nothing the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sottovoce.privacy.attacks.company.beliefs import Belief
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.randomness import as_generator
from sottovoce.text.words import words
from sottovoce.types import Float32Array, Float64Array, IntArray

Background: TypeAlias = Float32Array
"""Vectors of strings as decoys are drawn: what similarity comes by chance."""
ReadSession: TypeAlias = Callable[[list[SeenSet]], list[Float64Array]]
"""The log-odds of each string in each of some different sets of one person."""

CHANCE_SETS = 50
"""Sets of background strings that linkage is compared with."""
CONCENTRATIONS = (8.0, 16.0, 32.0)
"""How narrow a subject may be: the factor of the cosine with its middle in the log-density."""
ITSELF = 0.999
"""From this cosine on, two strings are the same."""
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


def recurring_words(seen: Sequence[SeenSet]) -> ReadSession:
    """The words of each string that come again in the person's other sets.

    Of each other set the string counts with which most is shared, and a word by how rarely the
    strings of all persons hold it.
    """
    held = Counter(word for one in seen for string in one.strings for word in {*words(string)})
    strings = sum(len(one.strings) for one in seen)
    rarity = {word: float(np.log(strings / count)) for word, count in held.items()}

    def read(sets: list[SeenSet]) -> list[Float64Array]:
        groups = [[frozenset(words(string)) for string in one.strings] for one in sets]
        return [
            np.array([_shared(group, groups[:at] + groups[at + 1 :]) for group in groups[at]])
            for at in range(len(groups))
        ]

    def _shared(group: frozenset[str], other_sets: list[list[frozenset[str]]]) -> float:
        return sum(
            max(sum(rarity[word] for word in group & other) for other in other_groups)
            for other_groups in other_sets
        )

    return read


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
        rng = as_generator(0)
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


def clustering(background: Background, pool_size: int, belief: Belief) -> ReadSession:
    """The subjects that may run through the sets, and which string of each belongs to them.

    A subject has some string c in its middle; what is asked about it is near to c, with density
    exp(K cos(c, v)) relative to the background, and all other strings are background. Every string
    that was seen, and those of the background, may be the middle; the posterior of the strings of
    each set is added up over all of them.
    """

    def read(sets: list[SeenSet]) -> list[Float64Array]:
        vectors = np.concatenate([one.vectors for one in sets])
        sizes = [len(one.strings) for one in sets]
        starts: IntArray = np.cumsum([0, *sizes[:-1]])
        odds = np.concatenate([_log_shares(one.inside + belief(one)) for one in sets])
        middles = np.concatenate([vectors, background])
        near, far = middles @ vectors.T, middles @ background.T
        found = [
            _belonging(near, far, odds, starts, narrow, pool_size) for narrow in CONCENTRATIONS
        ]
        posteriors = np.concatenate([terms for terms, _ in found])
        posteriors += _log_shares(np.concatenate([likelihoods for _, likelihoods in found]))[
            :, None
        ]
        return np.split(np.logaddexp.reduce(posteriors, axis=0), starts[1:])

    return read


def _belonging(
    near: Float32Array,
    far: Float32Array,
    odds: Float64Array,
    starts: IntArray,
    narrow: float,
    pool_size: int,
) -> tuple[Float64Array, Float64Array]:
    """For every middle: ln P(each string belongs to it), and the log-likelihood of all sets.

    near, far
        Cosines of middles with the strings of the sets, and with the background.
    """
    # A middle is one string of the pool itself, whether or not it is in the background.
    others = np.where(far < ITSELF, np.exp(narrow * far.astype(np.float64)), 0).mean(axis=1)
    scale = np.log(others + np.exp(narrow) / pool_size)
    terms = np.log(1 - LEFT_OUT) + odds + narrow * near - scale[:, None]
    # A set in which nothing belongs to the subject lacks what was meant.
    totals = np.logaddexp(np.log(LEFT_OUT), np.logaddexp.reduceat(terms, starts, axis=1))
    sizes = np.diff([*starts.tolist(), near.shape[1]])
    return terms - np.repeat(totals, sizes, axis=1), totals.sum(axis=1)


def _log_shares(log_odds: Float64Array) -> Float64Array:
    """Log-odds as logarithms of probabilities."""
    return np.asarray(log_odds - np.logaddexp.reduce(log_odds))
