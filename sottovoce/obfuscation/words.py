"""Draws substitutes for the words of many texts at once, in a few large calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from sottovoce.mechanisms.base import ROWS_AT_A_TIME, WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import UNIT, Draws, Streams
from sottovoce.text import PreparedText
from sottovoce.types import IntArray

Unit: TypeAlias = tuple[int, int, int, int]
"""Words ``start`` to ``end`` of a variant of a text: (text, variant, start, end)."""


class WordRelease:
    """All words of a batch of texts, laid end to end so that the mechanism sees large arrays.

    A uniform word of the output vocabulary stands in for each word that the space lacks, one for
    all variants, and goes through the mechanism like any other: its place shows what a known
    uniform word would give.

    The layout is a sequence of units, each at most 256 words of one variant of one text with a
    generator of its own, grouped into calls of bounded size.
    """

    def __init__(
        self,
        mechanism: WordMechanism,
        n: int,
        once: bool,
        texts: list[PreparedText],
        first: int,
        streams: Streams,
    ) -> None:
        self.mechanism, self.n, self.once = mechanism, n, once
        self.texts, self.first, self.streams = texts, first, streams

    def substitutes(self) -> list[IntArray]:
        """The ids of the substitutes, one array (n, slots) for each text."""
        words = [self._words(number, text) for number, text in enumerate(self.texts)]
        drawn = [np.empty((self.n, len(text)), dtype=np.int64) for text in self.texts]
        for units in self._calls():
            self._draw_units(words, drawn, units)
        return drawn

    def _words(self, number: int, text: PreparedText) -> IntArray:
        """What the mechanism gets for each slot of a text: its word, or one that stands in."""
        count = int(text.uniform.sum())
        if not count:
            return text.slots
        released = self.mechanism.space.output.ids
        draws = self.streams.draws(self.first + number, 0, Streams.UNKNOWN_WORDS, count)
        words = text.slots.copy()
        words[text.uniform] = released[draws.below(len(released))]
        return words

    def _calls(self) -> Iterator[list[Unit]]:
        """Units grouped so that a call has a bounded size."""
        limit = max(UNIT, ROWS_AT_A_TIME // (self.n if self.once else 1))
        units: list[Unit] = []
        rows = 0
        for number, text in enumerate(self.texts):
            for variant in range(1 if self.once else self.n):
                for start in range(0, len(text), UNIT):
                    end = min(start + UNIT, len(text))
                    if rows + end - start > limit:
                        yield units
                        units, rows = [], 0
                    units.append((number, variant, start, end))
                    rows += end - start
        if units:
            yield units

    def _draw_units(self, words: list[IntArray], drawn: list[IntArray], units: list[Unit]) -> None:
        """Draw substitutes for the words of some units in one call; put them where they belong."""
        ids = np.concatenate([words[number][a:b] for number, _, a, b in units])
        draws = self._draws(units, Streams.WORDS)
        if self.once:
            assert isinstance(self.mechanism, NoiseMechanism)  # noqa: S101 - it supports_once
            # The words near one point, dealt to the variants in random order.
            near = self.mechanism.draw_once(ids, self.n, draws)
            orders = self._draws(units, Streams.DEALING).orders(self.n)
            substitutes = np.take_along_axis(near, orders, axis=1)
        else:
            substitutes = self.mechanism.draw(ids, draws)[:, None]
        row = 0
        for number, variant, start, end in units:
            variants = slice(None) if self.once else slice(variant, variant + 1)
            drawn[number][variants, start:end] = substitutes[row : row + end - start].T
            row += end - start

    def _draws(self, units: list[Unit], purpose: int) -> Draws:
        generators = [
            (
                self.streams.generator(self.first + number, variant, purpose, start // UNIT),
                end - start,
            )
            for number, variant, start, end in units
        ]
        if self.streams.shared:
            return Draws([(generators[0][0], sum(count for _, count in generators))])
        return Draws(generators)
