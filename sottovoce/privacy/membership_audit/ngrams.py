"""A text model on arrays: interpolated n-grams, smoothed by Witten and Bell (1991).

    p(w | h) = (c(hw) + t(h) p(w | h')) / (c(h) + t(h))

c(h) counts what followed the context h, t(h) how many different words did, and h' is h without
its first word. Below the single words everything is equally likely, one place being kept for all
words that the model never saw. Such a model remembers what it was trained on by counting it, which
is all that the audit needs of a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.types import BoolArray, Float64Array, IntArray

BOUNDARY = 0
"""Stands before, between and after queries; every word has a larger id."""

ORDER = 3
_TIE = 1e-9


def windows(tokens: IntArray, order: int = ORDER) -> IntArray:
    """Each word with the ``order - 1`` tokens before it in its query, (words, order)."""
    columns = [tokens]
    for back in range(1, order):
        shifted = np.concatenate([np.full(back, BOUNDARY), tokens[:-back]])[: len(tokens)]
        ended = columns[-1] == BOUNDARY if back > 1 else np.zeros(len(tokens), dtype=bool)
        columns.append(np.where(ended, BOUNDARY, shifted))
    return np.asarray(np.stack(columns[::-1], axis=1)[tokens != BOUNDARY])


@dataclass(frozen=True)
class _Level:
    """The n-grams of one length. Contexts and n-grams are packed into numbers, and sorted."""

    contexts: IntArray
    totals: IntArray
    types: IntArray
    grams: IntArray
    counts: IntArray
    higher: _Grouped
    lower: _Grouped


class _Grouped:
    """Numbers in groups, asked how many of a group lie above a bound."""

    def __init__(self, groups: IntArray, values: Float64Array, ends: IntArray) -> None:
        self._distinct, codes = np.unique(values, return_inverse=True)
        self._base = len(self._distinct) + 1
        self._keys = np.sort(groups * self._base + codes)
        self._ends = ends

    def above(self, groups: IntArray, bounds: Float64Array) -> IntArray:
        codes = np.searchsorted(self._distinct, bounds * (1 + _TIE), side="right")
        return self._ends[groups] - np.searchsorted(self._keys, groups * self._base + codes)


class NGramModel:
    """Probabilities and ranks of the next word, learnt from queries."""

    def __init__(self, tokens: IntArray, order: int = ORDER) -> None:
        """Learn from tokens: ids of words, with ``BOUNDARY`` between queries."""
        seen = windows(tokens, order)
        if not len(seen):
            raise UsageError("a text model needs at least one word to learn from")
        self.order = order
        self.words = np.unique(seen[:, -1])
        self._base = len(self.words) + 2
        if self._base**order >= 1 << 63:
            raise UsageError("too many different words for the text model: take fewer members")
        self._levels: list[_Level] = []
        local = self._local(seen)
        for length in range(1, order + 1):
            self._levels.append(self._count(local, length))

    def knows(self, words: IntArray) -> BoolArray:
        return np.isin(words, self.words)

    def probabilities(self, asked: IntArray) -> Float64Array:
        """The probability of the last word of each window after the others."""
        return self._probabilities(self._local(asked), self.order)

    def ranks(self, asked: IntArray) -> IntArray:
        """One more than the number of words that the model holds more likely at that place."""
        local = self._local(asked)
        bounds = self._probabilities(local, self.order)
        return 1 + self._above(local, bounds, self.order)

    def _local(self, asked: IntArray) -> IntArray:
        """Boundaries become 0, the words of the model 1, 2, ..., all others one number more."""
        places = np.searchsorted(self.words, asked)
        in_model = self.words[np.minimum(places, len(self.words) - 1)] == asked
        return np.where(asked == BOUNDARY, 0, np.where(in_model, places + 1, self._base - 1))

    def _packed(self, local: IntArray, length: int) -> tuple[IntArray, IntArray]:
        """Contexts and n-grams of this length, as numbers."""
        context = np.zeros(len(local), dtype=np.int64)
        for column in range(self.order - length, self.order - 1):
            context = context * self._base + local[:, column]
        return context, context * self._base + local[:, -1]

    def _count(self, local: IntArray, length: int) -> _Level:
        _, packed = self._packed(local, length)
        grams, first, counts = np.unique(packed, return_index=True, return_counts=True)
        before = grams // self._base
        contexts, starts, groups = np.unique(before, return_index=True, return_inverse=True)
        types = np.diff(starts, append=len(grams))
        totals = np.add.reduceat(counts, starts)
        lower = self._probabilities(local[first], length - 1)
        higher = (counts + types[groups] * lower) / (totals + types)[groups]
        ends = starts + types
        above, below = _Grouped(groups, higher, ends), _Grouped(groups, lower, ends)
        return _Level(contexts, totals, types, grams, counts, higher=above, lower=below)

    def _probabilities(self, local: IntArray, length: int) -> Float64Array:
        chances = np.full(len(local), 1 / (len(self.words) + 1))
        for number, level in enumerate(self._levels[:length], start=1):
            contexts, grams = self._packed(local, number)
            context, has_context = _find(level.contexts, contexts)
            gram, seen = _find(level.grams, grams)
            counts, types = np.where(seen, level.counts[gram], 0), level.types[context]
            mixed = (counts + types * chances) / (level.totals[context] + types)
            chances = np.where(has_context, mixed, chances)
        return chances

    def _above(self, local: IntArray, bounds: Float64Array, length: int) -> IntArray:
        """How many words are more likely than each bound, by n-grams of this length.

        Only those that followed the context have more than their share of the shorter n-grams'
        probability: they are taken out of the count for those, and counted by themselves.
        """
        if length == 0:
            everyone = len(self.words)
            return np.where(bounds * (1 + _TIE) < 1 / (everyone + 1), everyone, 0)
        level = self._levels[length - 1]
        context, has_context = _find(level.contexts, self._packed(local, length)[0])
        left = level.types[context] / (level.totals[context] + level.types[context])
        shorter = np.where(has_context, bounds / left, bounds)
        more = level.higher.above(context, bounds) - level.lower.above(context, shorter)
        return self._above(local, shorter, length - 1) + np.where(has_context, more, 0)


def _find(ordered: IntArray, numbers: IntArray) -> tuple[IntArray, BoolArray]:
    """The place of each number in a sorted list (any place where it is missing), and if found."""
    places = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    return places, ordered[places] == numbers
