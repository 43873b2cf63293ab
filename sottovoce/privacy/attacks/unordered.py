"""Releases in random word order, or with places added: finding the places, and scoring queries.

Every variant shows one word of each place, and the words of a place lie near each other. So the
places are found again by k-means with a constraint: the words of a variant go to different places,
by an optimal assignment. Which place stands for which word of a query stays open, and a query is
scored by the mean over all ways to put its words on places,

    score(q) = log mean over injections m of
                   prod_k P(seen at place m(k) | word k)  prod_rest P(seen at place | decoy),

a permanent, by dynamic programming over subsets of places. Places left over hold decoys: words
drawn uniformly and released like others, as likely as a word that the space lacks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from sottovoce.choices import Release
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.places import CERTAIN, Place, PlacedText, Reading, Shape
from sottovoce.privacy.attacks.queries import AlignedLog, Scored
from sottovoce.randomness import Randomness, as_generator
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, Float32Array, Float64Array, IntArray

STARTS, ROUNDS = 24, 12
WHITENING = -0.35
"""The power of the variances by which directions are scaled: words of one place lie closest if
they are whitened more than half way."""
MOST_PLACES = 10
"""More have too many subsets: then the best assignment alone is scored, of ``ASSIGNED`` queries."""
ASSIGNED = 2000
QUERIES_AT_A_TIME = 4096


# Finding the places.


def find_places(
    texts: Iterable[PlacedText], space: WordSpace, release: Release, rng: Randomness = 0
) -> list[PlacedText]:
    """Texts whose variants are in random word order, with the words of each place together.

    ``rng`` chooses where the search starts. A seed, as by default, starts anew with each text, so
    that a result does not depend on the other texts; no privacy depends on it.
    """
    # Directions in which words differ much among each other count less.
    variances, directions = np.linalg.eigh(space.covariance)
    scale = np.maximum(variances / variances.mean(), 1e-6) ** WHITENING
    whitening, mean = directions * scale, space.vectors.mean(axis=0, dtype=np.float64)
    results = []
    for text in texts:
        if not text.places:
            results.append(text)
            continue
        clear, variants = _without_clear(text, release)
        ids = [[word.id for word in variant] for variant in variants]
        released = np.array(ids, dtype=np.int64)
        vectors = (space.vectors[released].astype(np.float64) - mean) @ whitening
        order = sort_apart(vectors, as_generator(rng))
        places = [
            Place(tuple(variant[at] for variant, at in zip(variants, place, strict=True)), False)
            for place in order
        ]
        results.append(replace(text, places=(*places, *clear), ordered=False))
    return results


def _without_clear(text: PlacedText, release: Release) -> tuple[list[Place], list[list[Reading]]]:
    """Places of the words in clear, and the other words of each variant."""
    variants = [list(column) for column in zip(*(p.shown for p in text.places), strict=True)]
    counts = [Counter(word._replace(before="", after="") for word in row) for row in variants]
    in_all = counts[0]
    for count in counts[1:]:
        in_all = in_all & count
    clear = [
        word
        for word in in_all.elements()
        if word.id == UNKNOWN or (release == "once" and len(variants) >= CERTAIN)
    ]
    rest = [list((count - Counter(clear)).elements()) for count in counts]
    if len(set(map(len, rest))) > 1 or any(w.id == UNKNOWN for row in rest for w in row):
        raise UsageError(
            "variants in random order must have as many words of the space each: name the space "
            "that they were made with"
        )
    return [Place((word,) * len(variants), True) for word in clear], rest


def sort_apart(vectors: Float64Array, rng: Generator, starts: int = STARTS) -> IntArray:
    """Which word of each variant belongs to each place, (places, variants).

    ``vectors``: (variants, places, dimension), each variant in an order of its own. Maximizes the
    sum over places of |sum of its vectors|^2, from several starts.
    """
    variants, places, dimension = vectors.shape
    if places < 2:
        return np.zeros((places, variants), dtype=np.int64)
    flat = vectors.reshape(-1, dimension)
    gram = flat @ flat.T
    # Row (s, v): the words of variant v, as rows of ``flat``, by place, in the s-th attempt.
    orders = np.empty((starts, variants, places), dtype=np.int64)
    for start in range(starts):
        if start % 2:
            order = rng.permuted(np.tile(np.arange(places), (variants, 1)), axis=1)
        else:  # The words of one variant are the first members of the places.
            seed = rng.integers(variants) * places
            near = gram[seed : seed + places].reshape(places, variants, places)
            order = np.stack([assigned(scores) for scores in near.swapaxes(0, 1)])
        orders[start] = order + np.arange(variants)[:, None] * places
    best = int(np.argmax(_improve(gram, orders, rng)))
    return np.asarray((orders[best] % places).T)


def _improve(gram: Float64Array, orders: IntArray, rng: Generator) -> Float64Array:
    """Assign the words of one variant after the other, given all others, until nothing changes.

    All attempts together, each on its own; answers the sum that each of them reaches.
    """
    starts, variants, places = orders.shape
    # Products of the sum of each place with every word, (starts, places, words).
    products = np.stack([[gram[place].sum(axis=0) for place in order.T] for order in orders])
    moving = np.arange(starts)
    for _ in range(ROUNDS):
        moved = np.zeros(starts, dtype=bool)
        for variant in rng.permutation(variants):
            words = slice(variant * places, (variant + 1) * places)
            before = orders[moving, variant]
            without_it = products[moving, :, words] - gram[before, words]
            after = np.stack([assigned(scores) for scores in without_it]) + words.start
            start, place = np.nonzero(after != before)
            here = moving[start], place
            products[here] += gram[after[start, place]] - gram[before[start, place]]
            orders[moving, variant] = after
            moved[moving[start]] = True
        (moving,) = np.nonzero(moved)
        if not len(moving):
            break
    of_members = np.take_along_axis(products, orders.swapaxes(1, 2), axis=2)
    return np.asarray(of_members.sum(axis=(1, 2)))


def assigned(scores: Float64Array) -> IntArray:
    """The word for each place, (places, words) -> (places,), with the largest sum of scores."""
    return np.asarray(linear_sum_assignment(scores, maximize=True)[1])


# Scoring queries.


@dataclass(frozen=True, repr=False)
class UnorderedScorer:
    """Scores the queries of a log where order, or the number of words, does not show.

    ordered
        The words of the text are in order, with added places anywhere among them.
    padded
        Some of the places may have been added; else a query has as many words as there are places.
    """

    log: AlignedLog
    ordered: bool = False
    padded: bool = False

    def __call__(self, rows: Float32Array, shape: Shape | None = None) -> Scored:
        """Score all queries that can have been meant; their shape does not show."""
        return self.of_variants([rows], len(rows))

    def of_variants(self, variants: Iterable[Float32Array], places: int) -> Scored:
        """Score them by variants in orders of their own: the product of what each of them says.

        variants
            A table of each, (places, size + 1). One alone is that of places found before.
        """
        lengths = range(1, places + 1) if self.padded else (places,)
        groups = [self.log.groups[length] for length in lengths if length in self.log.groups]
        if not groups or not places:
            return Scored(np.empty(0, dtype=np.int64), np.empty(0))
        queries = np.concatenate([group.queries for group in groups])
        scores = np.zeros(len(queries))
        for rows in variants:
            table = rows.astype(np.float64)
            top = table.max(axis=1, keepdims=True)
            table -= np.where(np.isfinite(top), top, 0.0)
            scores += np.concatenate([self._scores(table, group.columns) for group in groups])
        if self.log.frequencies is not None:
            scores = scores + self.log.frequencies[queries]
        return Scored(queries, scores)

    def _scores(self, table: Float64Array, columns: NDArray[np.int32]) -> Float64Array:
        if self.ordered:
            return increasing(table, columns)
        if len(table) > MOST_PLACES:
            return best_assignments(table, columns)
        return permanents(table, columns)


def permanents(table: Float64Array, columns: NDArray[np.int32]) -> Float64Array:
    """Log of the mean over injections of words into places, for queries (length, queries).

    f(S) = sum over i in S of f(S - i) P(seen at i | word |S|): the words so far are on places S.
    """
    chances, places = np.exp(table), len(table)
    length, count = columns.shape
    subsets = [
        [sum(1 << i for i in chosen) for chosen in combinations(range(places), size)]
        for size in range(length + 1)
    ]
    # Places left over hold decoys, as likely as an unknown word.
    decoys = {
        subset: float(np.prod([chances[i, -1] for i in range(places) if not subset >> i & 1]))
        for subset in subsets[length]
    }
    totals = np.empty(count)
    for start in range(0, count, QUERIES_AT_A_TIME):
        block = columns[:, start : start + QUERIES_AT_A_TIME]
        values = {0: np.ones(block.shape[1])}
        for word, layer in zip(block, subsets[1:], strict=True):
            step = chances[:, word]
            values = {
                subset: sum(
                    (values[subset ^ 1 << i] * step[i] for i in range(places) if subset >> i & 1),
                    start=np.zeros(block.shape[1]),
                )
                for subset in layer
            }
        total = sum(values[subset] * decoy for subset, decoy in decoys.items())
        totals[start : start + QUERIES_AT_A_TIME] = total
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(totals)) - math.log(math.perm(places, length))


def increasing(table: Float64Array, columns: NDArray[np.int32]) -> Float64Array:
    """Log of the mean over increasing maps of words to places, for queries (length, queries)."""
    chances = np.exp(table)
    length, count = columns.shape
    # State k: the first k words have found their places.
    states = np.zeros((length + 1, count))
    states[0] = 1.0
    for place in chances:
        moved = states * place[-1]
        moved[1:] += states[:-1] * place[columns]
        states = moved
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(states[length])) - math.log(math.comb(len(table), length))


def best_assignments(table: Float64Array, columns: NDArray[np.int32]) -> Float64Array:
    """The score of the best way to put words on places, for queries (length, queries).

    Only queries that look best word by word are tried; the others score -inf.
    """
    floor = -1e6  # Assignments need finite numbers.
    relative = np.maximum(table, floor) - np.maximum(table[:, -1:], floor)
    by_word = logsumexp(table, axis=0) - np.log(len(table))
    rough = by_word[columns].sum(axis=0)
    scores = np.full(columns.shape[1], -np.inf)
    for query in np.argsort(-rough, kind="stable")[:ASSIGNED]:
        gains = relative[:, columns[:, query]]
        where, which = linear_sum_assignment(gains, maximize=True)
        scores[query] = gains[where, which].sum() + np.maximum(table[:, -1], floor).sum()
    return np.where(scores < floor, -np.inf, scores)
