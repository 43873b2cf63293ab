"""Sampling mechanisms: each word has an exact law over words, and one of them is drawn.

Draws come from tables: for each word met so far, candidates and cumulated chances. A table is a
pure function of space, parameters and word, so that what was met before changes no draw. Tables
live in memory only: on disk they would tell which words were asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, IntArray

Number = TypeVar("Number", np.int32, np.float64)

REST = -1
"""The draw fell beyond the candidates of a table."""
BYTES = 256 << 20
"""Tables of one mechanism kept in memory; when it is full, it starts afresh."""
BYTES_PER_CANDIDATE = 4 + 8
WORDS_AT_A_TIME = 1024
"""Distinct words learnt together."""
MECHANISMS_PER_SPACE = 4


@dataclass(frozen=True)
class Table:
    """Candidates of one word and their cumulated chances.

    If these end below 1, the rest of the chance leads to words further away than ``reach``.
    """

    ids: IntArray
    cumulated: Float64Array
    reach: float = np.inf


Build = Callable[[IntArray], list[Table]]


class Tables:
    """The tables of one mechanism on one space, as flat arrays that are searched all at once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._row: IntArray = np.full(self._size, -1, dtype=np.int64)
        self._starts = np.zeros(1, dtype=np.int64)
        self._reach = np.empty(0)
        # Longer than what they hold, so that growing does not copy them every time.
        self._ids = np.empty(0, dtype=np.int32)
        self._cumulated = np.empty(0)

    def find(
        self, words: IntArray, chances: Float64Array, build: Build
    ) -> tuple[IntArray, Float64Array]:
        """The candidate of each word at each chance in [0, 1), or ``REST``; and how far it reaches.

        Words are learnt some at a time, so that what is kept stays within bounds.
        """
        if (self._row[words] >= 0).all():
            return self._find(words, chances, build)
        candidates, reaches = np.empty(len(words), dtype=np.int64), np.empty(len(words))
        distinct, inverse = np.unique(words, return_inverse=True)
        for start in range(0, len(distinct), WORDS_AT_A_TIME):
            rows = np.flatnonzero(inverse // WORDS_AT_A_TIME == start // WORDS_AT_A_TIME)
            candidates[rows], reaches[rows] = self._find(words[rows], chances[rows], build)
        return candidates, reaches

    def _find(
        self, words: IntArray, chances: Float64Array, build: Build
    ) -> tuple[IntArray, Float64Array]:
        with self._lock:
            self._learn(words, build)
            rows = self._row[words]
            low, end = self._starts[rows], self._starts[rows + 1]
            places = self._search(low, end, chances)
            # Where nothing lies beyond, what rounding left out belongs to the last candidate.
            complete = np.isinf(self._reach[rows]) & (places == end)
            if complete.any():
                last = self._search(low, end, self._cumulated[end - 1] * (1 - 2**-52))
                places = np.where(complete, last, places)
            beyond = places == end
            ids = np.where(beyond, REST, self._ids[np.where(beyond, low, places)])
            return ids.astype(np.int64), self._reach[rows]

    def _learn(self, words: IntArray, build: Build) -> None:
        """Make the tables that are missing, and append them to the flat arrays."""
        if not (self._row[words] < 0).any():
            return
        if self._starts[-1] * BYTES_PER_CANDIDATE > BYTES:
            self._forget()
        new = np.unique(words[self._row[words] < 0])
        tables = build(new)
        used = int(self._starts[-1])
        ends = used + np.cumsum([len(table.ids) for table in tables])
        self._ids = _with_room(self._ids, used, ends[-1])
        self._ids[used : ends[-1]] = np.concatenate([table.ids for table in tables])
        self._cumulated = _with_room(self._cumulated, used, ends[-1])
        self._cumulated[used : ends[-1]] = np.concatenate([table.cumulated for table in tables])
        self._row[new] = len(self._reach) + np.arange(len(new))
        self._starts = np.append(self._starts, ends)
        self._reach = np.append(self._reach, [table.reach for table in tables])

    def _search(self, low: IntArray, end: IntArray, chances: Float64Array) -> IntArray:
        """The first place in [low, end) whose cumulated chance exceeds the given one, or end."""
        # A binary search for all rows at once; as many steps as the longest table needs.
        low, high = low.copy(), end.copy()
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            undecided = low < high
            below = undecided & (self._cumulated[np.where(undecided, middle, 0)] <= chances)
            low = np.where(below, middle + 1, low)
            high = np.where(below, high, middle)
        return low


def _with_room(array: NDArray[Number], used: int, size: int) -> NDArray[Number]:
    """The array with its first ``used`` entries, and room for ``size`` of them."""
    if size <= len(array):
        return array
    grown = np.empty(max(size, 2 * len(array)), dtype=array.dtype)
    grown[:used] = array[:used]
    return grown


_kept: MutableMapping[Any, OrderedDict[Hashable, Tables]] = WeakKeyDictionary()
_keeping = Lock()


def forget(space: Any) -> None:
    """Drop all tables of a space."""
    with _keeping:
        _kept.pop(space, None)


def tables_of(space: Any, mechanism: Hashable) -> Tables:
    """The tables that equal mechanisms share on a space: spec and further resources decide."""
    with _keeping:
        kept = _kept.setdefault(space, OrderedDict())
        if mechanism not in kept:
            kept[mechanism] = Tables(space.size)
        kept.move_to_end(mechanism)
        while len(kept) > MECHANISMS_PER_SPACE:
            kept.popitem(last=False)
        return kept[mechanism]


@dataclass(frozen=True, repr=False, eq=False)
class SamplingMechanism(WordMechanism):
    """Draws from tables that are made once for each distinct word."""

    @property
    def tables(self) -> Tables:
        return tables_of(self.space, (self.spec, *self.further_resources()))

    @abstractmethod
    def build(self, words: IntArray) -> list[Table]:
        """A table for each of some distinct words."""

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        return self.tables.find(ids, draws.uniform(), self.build)[0]

    @abstractmethod
    def log_probabilities(self, ids: IntArray) -> Float64Array:
        """Exact log-probabilities of every word of the space, (len(ids), space.size)."""


@dataclass(frozen=True, repr=False, eq=False)
class BoxMechanism(SamplingMechanism):
    """Samples among the words of a box; no other word has a chance."""

    epsilon_per_distance: ClassVar[bool] = False
    box_depends_on_epsilon: ClassVar[bool] = True
    """Whether another epsilon may change which words a box holds, not only their chances."""

    @abstractmethod
    def laws(self, words: IntArray) -> list[tuple[IntArray, Float64Array]]:
        """The box of each word: ids, and their log-probabilities."""

    def build(self, words: IntArray) -> list[Table]:
        return [Table(ids, np.cumsum(np.exp(law))) for ids, law in self.laws(words)]

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        words = self.checked(ids)
        out = np.full((len(words), self.space.size), -np.inf)
        for row, (box, law) in zip(out, self.laws(words), strict=True):
            row[box] = law
        return out


def normalized(scores: Float64Array) -> Float64Array:
    """Log-probabilities proportional to exp(scores), along the last axis."""
    scores = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))
