"""Draws substitutes for the words of many texts at once, in a few large calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from sottovoce.mechanisms.base import WordMechanism, require
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.randomness import UNIT, Draws, Streams
from sottovoce.text import PreparedText
from sottovoce.types import ENCODED, Float32Array, IntArray

Unit: TypeAlias = tuple[int, int, int, int]
"""Words ``start`` to ``end`` of a variant of a text: (text, variant, start, end)."""


MOST_WORDS = 20_000_000
"""Substitutes that are held at once, before they are words of a text: about a gigabyte."""


def require_room(n: int, words: int) -> None:
    """Refuse so many variants of so many words that memory would not hold them."""
    require(
        n * words <= MOST_WORDS,
        f"{n:,} variants of {words:,} words are more than memory holds: ask for "
        f"{max(1, MOST_WORDS // max(1, words)):,} variants at most, or cut the text",
    )


def drawn_listed(
    mechanism: WordMechanism, ids: IntArray, n: int, once: bool, draws: Draws
) -> IntArray:
    """Substitutes of listed words: ``n`` of each off one point if ``once``, else one, (ids, …)."""
    if once:
        assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - it supports_once
        return mechanism.draw_once(ids, n, draws)
    return mechanism.draw(ids, draws)[:, None]


def drawn_at(
    mechanism: WordMechanism, vectors: Float32Array, n: int, once: bool, draws: Draws
) -> IntArray:
    """The same for the vectors of words that are not listed."""
    if once:
        assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - it supports_once
        return mechanism.draw_once_at(vectors, n, draws)
    return mechanism.draw_at(vectors, draws)[:, None]


class WordRelease:
    """All words of a batch of texts, laid end to end so that the mechanism sees large arrays.

    A word that the space does not list, but its encoder can read, goes through the mechanism by
    its vector. For each other unknown word a uniform word of the output vocabulary stands in, one
    for all variants, and goes through the mechanism like any other: its place shows what a known
    uniform word would give.

    The layout is a sequence of units, each at most 256 words of one variant of one text with a
    generator of its own, grouped into calls of bounded size.
    """

    def __init__(
        self,
        mechanism: WordMechanism,
        n: int,
        once: bool,
        opened: OpenWords,
        first: int,
        streams: Streams,
    ) -> None:
        self.mechanism, self.n, self.once = mechanism, n, once
        self.first, self.streams = first, streams
        self.opened, self.texts = opened, opened.texts

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
        most = self.mechanism.rows_at_a_time(self.streams.shared)
        limit = max(UNIT, most // (self.n if self.once else 1))
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
        substitutes = self._drawn(ids, units, draws)
        if self.once:
            # The words near one point, dealt to the variants in random order.
            orders = self._draws(units, Streams.DEALING).orders(self.n)
            substitutes = np.take_along_axis(substitutes, orders, axis=1)
        row = 0
        for number, variant, start, end in units:
            variants = slice(None) if self.once else slice(variant, variant + 1)
            drawn[number][variants, start:end] = substitutes[row : row + end - start].T
            row += end - start

    def _drawn(self, ids: IntArray, units: list[Unit], draws: Draws) -> IntArray:
        """The substitutes of words, (words, n) if all are read off one point, else (words, 1)."""
        encoded = np.flatnonzero(ids == ENCODED)
        if not len(encoded):
            return drawn_listed(self.mechanism, ids, self.n, self.once, draws)
        vectors = self.opened.vectors(
            [word for number, _, a, b in units for word in self.opened.between(number, a, b)]
        )
        listed = np.flatnonzero(ids != ENCODED)
        out = np.empty((len(ids), self.n if self.once else 1), dtype=np.int64)
        out[listed] = drawn_listed(
            self.mechanism, ids[listed], self.n, self.once, draws.only(listed)
        )
        out[encoded] = drawn_at(self.mechanism, vectors, self.n, self.once, draws.only(encoded))
        return out

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
