"""The exponential mechanism over a whole vocabulary: p(y|w) proportional to exp(-epsilon c / 2).

The cost c grows with the Euclidean distance of w and y. A table holds the words near w with their
weights, and room for all others as if they weighed as much as a word at the table's edge. A draw
that falls into this room proposes any word, accepts it by what it really weighs, and otherwise
starts again. That is exact, although neither the normalizing constant nor the weights of far words
are computed; a draw takes a bounded number of attempts on average.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sottovoce.mechanisms.sampling import REST, SamplingMechanism, Table
from sottovoce.randomness import Draws
from sottovoce.spaces.distances import WORDS_AT_A_TIME, Distances, Ranges
from sottovoce.threads import parallel_map
from sottovoce.types import BoolArray, Float64Array, FloatArray, IntArray

NEAR = 2048
"""About how many near words a table may hold."""
SAMPLED = 512
"""Words by which the distance of the farthest of them is estimated."""
SPARE = 1000.0
"""A table stops once the mass left for words outside it is below 1 / SPARE of the mass inside."""
ATTEMPTS = 32
"""After so many attempts, the few words left are drawn from their full rows."""


@dataclass(frozen=True, repr=False, eq=False)
class ExponentialMechanism(SamplingMechanism):
    """Samples a word by its distance from the true one; every released word is possible."""

    @abstractmethod
    def cost(self, distances: Float64Array) -> Float64Array:
        """What a substitute at this distance costs; never decreasing."""

    @property
    def has_concave_cost(self) -> bool:
        """Whether every word has this law, mixed with nothing else, and the cost is concave."""
        return False

    def mixed(self, law: FloatArray, words: IntArray, outputs: IntArray) -> None:
        """Change exponential log-probabilities (words, outputs) into the mechanism's, in place.

        For mechanisms that mix this law with another one; here there is nothing to change. The
        ids of ``outputs`` are in ascending order.
        """

    @property
    def released(self) -> IntArray:
        """The ids among which is sampled, ascending."""
        return self.space.output.ids

    @cached_property
    def _ranges(self) -> Ranges:
        return Ranges(self.space, self.released)

    def _scores(self, distances: Float64Array) -> Float64Array:
        """Log-probabilities up to a constant."""
        return self.cost(distances) * (-0.5 * self.epsilon)

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        all_words = self.checked(ids)
        out = np.full((len(all_words), self.space.size), -np.inf)
        for start in range(0, len(all_words), WORDS_AT_A_TIME):
            words = all_words[start : start + WORDS_AT_A_TIME]
            scores = self._scores(self._ranges.distances.rows(words))
            # Log-softmax of each row.
            scores -= scores.max(axis=1, keepdims=True)
            scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
            out[start : start + len(words), self.released] = scores
        return out

    def build(self, words: IntArray) -> list[Table]:
        """The near words of each word, with their cumulated chances."""
        parts = np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))
        return [table for tables in parallel_map(self._build, parts) for table in tables]

    def _build(self, words: IntArray) -> list[Table]:
        reaches, expected = self._reaches(words)
        near = self._ranges.within(words, reaches, expected)
        return [
            self._table(places, distances, reach)
            for (places, distances), reach in zip(near, reaches, strict=True)
        ]

    def _table(self, places: IntArray, distances: Float64Array, reach: float) -> Table:
        """The table of a word, from the released words within ``reach`` of it."""
        scores = self._scores(distances)
        cumulated = np.cumsum(np.exp(scores - scores.max()))
        # Room for the words beyond, as if each released word weighed as much as one at the edge.
        room = 0.0
        if len(places) < len(self.released):
            edge = self._scores(np.array([reach]))[0]
            room = len(self.released) * float(np.exp(edge - scores.max()))
        return Table(self.released[places], cumulated / (cumulated[-1] + room), reach)

    def _reaches(self, words: IntArray) -> tuple[Float64Array, IntArray]:
        """How far each table reaches, and about how many words it will hold.

        That is ``NEAR`` words, or fewer if the law is concentrated.
        """
        count = len(self.released)
        if count <= NEAR:
            return np.full(len(words), np.inf), np.full(len(words), count)
        # The distance of the NEAR-th nearest word, estimated from every step-th released word.
        step = count // SAMPLED
        sampled = Distances(self.space, self.released[::step]).rows(words)
        place = min(NEAR // step, sampled.shape[1] - 2)
        ordered = np.partition(sampled, (place, place + 1), axis=1)
        # Between two words, or just beyond words that share one place, so that rounding never
        # decides which words are in.
        by_count = (ordered[:, place] + ordered[:, place + 1]) / 2 * (1 + 1e-9)
        # The distance at which all words beyond would weigh 1 / SPARE of the nearest one.
        by_chance = self._nearest(words) + np.log(SPARE * count) * 2 / self.epsilon
        reaches = np.asarray(np.minimum(by_count, by_chance))
        return reaches, step * (sampled <= reaches[:, None]).sum(axis=1)

    def _nearest(self, words: IntArray) -> Float64Array:
        """How far the nearest word is that may be released."""
        nearest = np.zeros(len(words))
        away = np.flatnonzero(~np.isin(words, self.released))
        if len(away):
            tiles = self._ranges.distances.tiles(words[away])
            nearest[away] = np.min([tile.min(axis=1) for _, tile in tiles], axis=0)
        return nearest

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        tables = self.tables
        drawn = np.full(len(ids), REST)
        pending = np.arange(len(ids))  # Rows without a substitute yet.
        for _ in range(ATTEMPTS):
            # From the table, or into the room beyond it.
            row_draws = draws.only(pending)
            drawn[pending], reaches = tables.find(ids[pending], row_draws.uniform(), self.build)
            beyond = drawn[pending] == REST
            pending, reaches = pending[beyond], reaches[beyond]
            # In the room, propose any released word; accept it by its true weight.
            row_draws = draws.only(pending)
            proposed = self.released[row_draws.below(len(self.released))]
            accepted = self._accept(ids[pending], proposed, reaches, row_draws.uniform())
            drawn[pending[accepted]] = proposed[accepted]
            # Who did not accept starts again.
            pending = pending[~accepted]
            if not len(pending):
                return drawn
        drawn[pending] = self._from_full_rows(ids[pending], draws.only(pending).uniform())
        return drawn

    def _accept(
        self, words: IntArray, proposed: IntArray, reaches: Float64Array, chances: Float64Array
    ) -> BoolArray:
        """Whether each proposal is accepted: by its weight relative to that at the table's edge."""
        distances = self._ranges.distances.pairs(words, proposed)
        weights = np.exp(self._scores(distances) - self._scores(reaches))
        return np.asarray((distances > reaches) & (chances < weights))

    def _from_full_rows(self, words: IntArray, chances: Float64Array) -> IntArray:
        """Draw by the inverse of the whole cumulated law."""
        drawn = np.empty(len(words), dtype=np.int64)
        for start in range(0, len(words), WORDS_AT_A_TIME):
            rows = slice(start, start + WORDS_AT_A_TIME)
            law = ExponentialMechanism.log_probabilities(self, words[rows])
            cumulated = np.cumsum(np.exp(law), axis=1)
            beaten = cumulated <= chances[rows, None] * cumulated[:, -1:]
            drawn[rows] = np.minimum(beaten.sum(axis=1), self.space.size - 1)
        return drawn
