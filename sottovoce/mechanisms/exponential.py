"""The exponential mechanism over a whole vocabulary: p(y|w) proportional to exp(-epsilon c / 2).

The cost c grows with the Euclidean distance of w and y. A table holds the words near w; farther
words are drawn by rejection: propose one uniformly, accept it by its chance relative to the
table's edge. That is exact, needs no row of the vocabulary, and takes a bounded number of
proposals on average: with V words, of which m are in the table, at most V / m.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sottovoce.mechanisms.sampling import SamplingMechanism
from sottovoce.mechanisms.tables import Table
from sottovoce.randomness import Draws
from sottovoce.spaces.distances import WORDS_AT_A_TIME, Distances
from sottovoce.threads import parallel_map
from sottovoce.types import BoolArray, Float64Array, IntArray

NEAR = 2048
"""About how many near words a table may hold."""
SAMPLED = 512
"""Words by which the distance of the farthest of them is estimated."""
SPARE = 1000.0
"""A table ends earlier where less than one proposal for ``SPARE`` words is needed beyond it."""
ROUNDS = 7
"""Rounds of proposals, twice as many in each as in the one before; the few words that accept none
of these 127 are drawn from their full rows."""


@dataclass(frozen=True, repr=False, eq=False)
class ExponentialMechanism(SamplingMechanism):
    """Samples a word by its distance from the true one; every released word is possible."""

    @abstractmethod
    def cost(self, distances: Float64Array) -> Float64Array:
        """What a substitute at this distance costs; never decreasing. May write in place."""

    @property
    def released(self) -> IntArray:
        """The ids among which is sampled, ascending."""
        return self.space.output.ids

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.space, self.released)

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        """Exact log-probabilities of every word of the space, (len(ids), space.size)."""
        wanted = self.checked(ids)
        out = np.full((len(wanted), self.space.size), -np.inf)
        for start in range(0, len(wanted), WORDS_AT_A_TIME):
            words = wanted[start : start + WORDS_AT_A_TIME]
            scores = self._scores(self._distances.rows(words))
            scores -= scores.max(axis=1, keepdims=True)
            scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
            out[start : start + len(words), self.released] = scores
        return out

    def _scores(self, distances: Float64Array) -> Float64Array:
        """Log-probabilities up to a constant; written over the distances."""
        scores = self.cost(distances)
        scores *= -0.5 * self.epsilon
        return scores

    def build(self, words: IntArray) -> list[Table]:
        """The near words of each word, with their cumulated chances."""
        parts = np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))
        return [table for tables in parallel_map(self._build, parts) for table in tables]

    def _build(self, words: IntArray) -> list[Table]:
        nearest = self._nearest(words)
        reaches = self._reaches(words, nearest)
        highest = self._scores(nearest)[:, None]
        near, total = _Near(len(words)), np.zeros(len(words))
        for start, tile in self._distances.tiles(words):
            rows = np.flatnonzero(tile.min(axis=1) <= reaches)
            within = tile[rows] <= reaches[rows, None]
            scores = self._scores(tile)
            if highest.any():
                scores -= highest
            near.add(start, rows, within, scores[rows])
            total += np.exp(scores, out=scores).sum(axis=1)
        constants = np.log(total)
        return [
            Table(self.released[places], np.cumsum(np.exp(scores - constants[row])), reaches[row])
            for row, (places, scores) in enumerate(near.rows())
        ]

    def _nearest(self, words: IntArray) -> Float64Array:
        """How far the nearest word is that may be released."""
        nearest = np.zeros(len(words))
        away = np.flatnonzero(~np.isin(words, self.released))
        if len(away):
            tiles = self._distances.tiles(words[away])
            nearest[away] = np.min([tile.min(axis=1) for _, tile in tiles], axis=0)
        return nearest

    def _reaches(self, words: IntArray, nearest: Float64Array) -> Float64Array:
        """How far each table reaches: about ``NEAR`` words, fewer if the law is concentrated."""
        count = len(self.released)
        if count <= NEAR:
            return np.full(len(words), np.inf)
        sampled = Distances(self.space, self.released[:: count // SAMPLED]).rows(words)
        place = NEAR * sampled.shape[1] // count
        ordered = np.partition(sampled, (place, place + 1), axis=1)
        # Between two words, so that rounding never decides which of them is in.
        by_count = (ordered[:, place] + ordered[:, place + 1]) / 2
        by_chance = nearest + np.log(SPARE * count) * 2 / self.epsilon
        return np.asarray(np.minimum(by_count, by_chance))

    def draw_rest(
        self, ids: IntArray, rows: IntArray, reaches: Float64Array, draws: Draws
    ) -> IntArray:
        """Farther words, by rejection."""
        drawn = np.empty(len(rows), dtype=np.int64)
        open_ = np.arange(len(rows))
        for attempt in range(ROUNDS):
            some, tries = draws.only(rows[open_]), 1 << attempt
            proposed = self.released[some.below(len(self.released), tries)]
            words = np.repeat(ids[rows[open_]], tries)
            distances = self._distances.pairs(words, proposed.ravel()).reshape(proposed.shape)
            edges = reaches[open_, None]
            beyond = distances > edges
            chances = np.exp(self._scores(distances) - self._scores(edges))
            accepted = beyond & (some.uniform(tries) < chances)
            first = accepted.argmax(axis=1)
            done = accepted.any(axis=1)
            drawn[open_[done]] = proposed[done, first[done]]
            open_ = open_[~done]
            if not len(open_):
                return drawn
        chances = draws.only(rows[open_]).uniform()
        drawn[open_] = self._from_full_rows(ids[rows[open_]], reaches[open_], chances)
        return drawn

    def _from_full_rows(
        self, words: IntArray, reaches: Float64Array, chances: Float64Array
    ) -> IntArray:
        drawn = np.empty(len(words), dtype=np.int64)
        for start in range(0, len(words), WORDS_AT_A_TIME):
            some = slice(start, start + WORDS_AT_A_TIME)
            rows = self._distances.rows(words[some])
            within = rows <= reaches[some, None]
            scores = self._scores(rows)
            scores[within] = -np.inf
            cumulated = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
            beaten = cumulated <= chances[some, None] * cumulated[:, -1:]
            drawn[some] = self.released[np.minimum(beaten.sum(axis=1), len(self.released) - 1)]
        return drawn


class _Near:
    """Collects the near words of a block of words, tile after tile."""

    def __init__(self, words: int) -> None:
        self._counts = np.zeros(words, dtype=np.int64)
        self._owners: list[IntArray] = []
        self._places: list[IntArray] = []
        self._scores: list[Float64Array] = []

    def add(self, start: int, rows: IntArray, within: BoolArray, scores: Float64Array) -> None:
        """Take the words of a tile that are within reach, for some of the rows."""
        row, column = np.nonzero(within)
        self._counts[rows] += within.sum(axis=1)
        self._owners.append(rows[row])
        self._places.append(start + column)
        self._scores.append(scores[row, column])

    def rows(self) -> Iterator[tuple[IntArray, Float64Array]]:
        """Places and scores of each word's near words, in order of place."""
        order = np.argsort(np.concatenate(self._owners), kind="stable")
        ends = np.cumsum(self._counts)[:-1]
        places = np.split(np.concatenate(self._places)[order], ends)
        yield from zip(places, np.split(np.concatenate(self._scores)[order], ends), strict=True)
