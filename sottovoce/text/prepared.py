"""A text with slots: all that is left to do is to put a substitute into each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sottovoce.choices import Order
from sottovoce.errors import UsageError
from sottovoce.text.comparing import comparable
from sottovoce.types import ENCODED, UNKNOWN, BoolArray, IntArray

STOOD_IN = "obfuscated by way of uniform draws: nothing but the place is released"
"""What becomes of words that the space lacks, and of denied ones."""

SHUFFLED = "how many words there are is released; their order is random in each variant"


@dataclass(frozen=True)
class Counts:
    """How many words met which fate; the numbers that may be shown.

    ``encoded`` words are those that the space does not list, whose vectors its encoder gives; for
    ``uniform`` ones, which it lacks, a uniform word stands in. ``padding`` are places that were
    added, and hold no word of the text.
    """

    known: int = 0
    encoded: int = 0
    uniform: int = 0
    dropped: int = 0
    dropped_unprotected: int = 0
    kept_unknown: int = 0
    kept_listed: int = 0
    kept_unprotected: int = 0
    padding: int = 0

    @property
    def protected(self) -> int:
        """Words in whose place a mechanism puts others."""
        return self.known + self.encoded + self.uniform

    @property
    def left_out(self) -> int:
        """Words that are not released at all."""
        return self.dropped + self.dropped_unprotected

    @property
    def kept(self) -> int:
        """Words released in clear, for whatever reason."""
        return self.kept_unknown + self.kept_listed + self.kept_unprotected


@dataclass(frozen=True, repr=False, eq=False)
class PreparedText:
    """The slots of a text, in order, and what stands between them.

    ``slots[i]`` is the id of the word at slot ``i``; ``ENCODED`` where the space does not list it,
    but its encoder can read it; ``UNKNOWN`` where a uniform word of the output vocabulary stands
    in for it. ``text[start:end]`` with ``start, end = spans[i]`` is the word itself. The last
    ``counts.padding`` slots are padding, and hold no word. ``unknown`` and ``kept`` hold distinct
    original words, for the owner of the text alone.
    """

    text: str
    slots: IntArray
    spans: IntArray
    literals: tuple[str, ...]
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    counts: Counts
    restores_case: bool = False
    releases_punctuation: bool = True
    remark: str | None = None
    order: Order = "kept"

    def __len__(self) -> int:
        """How many substitutes it takes."""
        return len(self.slots)

    @cached_property
    def uniform(self) -> BoolArray:
        """For which slots a uniform word stands in, whatever word stood there."""
        return np.equal(self.slots, UNKNOWN)

    @cached_property
    def encoded(self) -> BoolArray:
        """Which slots hold words that are not listed, but can be encoded."""
        return np.equal(self.slots, ENCODED)

    @cached_property
    def listed(self) -> BoolArray:
        """Which slots hold words that the space lists."""
        return np.greater_equal(self.slots, 0)

    @cached_property
    def ids(self) -> IntArray:
        """The ids of the ``listed`` words of the text."""
        return self.slots[self.listed]

    def surfaces(self, places: BoolArray) -> list[str]:
        """The words at these slots, as they are compared; for the owner of the text alone."""
        return [comparable(self.text[start:end]) for start, end in self.spans[places].tolist()]

    def unencoded(self, words: Collection[str]) -> PreparedText:
        """The same text, with uniform words standing in for these of its ``encoded`` words."""
        places = self.encoded.copy()
        places[places] = [word in words for word in self.surfaces(places)]
        count = int(places.sum())
        if not count:
            return self
        return replace(
            self,
            slots=np.where(places, UNKNOWN, self.slots),
            unknown=tuple(dict.fromkeys((*self.unknown, *self.surfaces(places)))),
            counts=replace(
                self.counts,
                encoded=self.counts.encoded - count,
                uniform=self.counts.uniform + count,
            ),
        )

    def padded(self, size: int) -> PreparedText:
        """The same text with so many slots at least; a uniform word stands in for each new one."""
        missing = size - len(self)
        if missing <= 0:
            return self
        end = len(self.text)
        *literals, last = self.literals
        joint = last if last.endswith(tuple(" \t\n")) or not (literals or last) else f"{last} "
        return replace(
            self,
            slots=np.append(self.slots, np.full(missing, UNKNOWN)),
            spans=np.append(self.spans, np.full((missing, 2), end), axis=0),
            literals=(*literals, joint, *[" "] * (missing - 1), ""),
            counts=replace(self.counts, padding=missing),
        )

    @cached_property
    def in_clear(self) -> list[str]:
        """The words that are released as they are, each as often as it stands in the text."""
        return " ".join(self.literals).split() if self.counts.kept else []

    def render(self, substitutes: Sequence[str]) -> str:
        """Put one substitute into each slot: the text that may be released."""
        return self.render_many([substitutes])[0]

    def render_many(
        self, rows: Iterable[Sequence[str]], orders: IntArray | None = None
    ) -> list[str]:
        """Render one text per row of substitutes.

        ``orders`` has a row for each, too: the order of its words, those in clear counted last.
        """
        if orders is not None:
            words = [[*self._cased(row), *self.in_clear] for row in rows]
            return [
                " ".join(row[place] for place in order)
                for row, order in zip(words, orders.tolist(), strict=True)
            ]
        size = len(self)
        pieces = [""] * (2 * size + 1)
        pieces[::2] = self.literals
        released = []
        for row in rows:
            if len(row) != size:
                raise UsageError(f"the text has {size} slots, but {len(row)} substitutes came")
            pieces[1::2] = self._cased(row)
            released.append("".join(pieces))
        return released

    def caveats(self, *, layout_is_said: bool = False) -> tuple[str, ...]:
        """What the mechanism's guarantee does not cover; see :func:`caveats`."""
        return caveats(
            self.counts,
            releases_punctuation=self.releases_punctuation,
            restores_case=self.restores_case,
            remark=self.remark,
            layout_is_said=layout_is_said,
            order=self.order,
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in vars(self.counts).items() if value)
        return f"PreparedText({shown})"

    def _cased(self, row: Sequence[str]) -> Iterable[str]:
        return map(restore_case, self._originals, row) if self.restores_case else row

    @cached_property
    def _originals(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans.tolist()]


def caveats(
    counts: Counts,
    *,
    releases_punctuation: bool,
    restores_case: bool,
    remark: str | None = None,
    layout_is_said: bool = False,
    order: Order = "kept",
) -> tuple[str, ...]:
    """What a mechanism's guarantee does not cover, in counts: no word of the text is in it.

    ``layout_is_said``: the guarantee itself says that punctuation and the number of words are
    released, so that is left out here. Where punctuation is dropped it says too much, and this
    says what is true.
    """
    lines = []
    if order == "shuffled":
        lines.append(SHUFFLED)
    elif not (layout_is_said and releases_punctuation):
        marks = "punctuation, whitespace" if releases_punctuation else "whitespace"
        lines.append(f"{marks} and the number of words are released as they are")
    if counts.padding:
        places = "1 place is" if counts.padding == 1 else f"{counts.padding} places are"
        lines.append(f"{places} padding, by way of uniform draws: shorter texts look as long")
    if remark:
        lines.append(remark)
    if restores_case:
        lines.append("the case pattern of each word is released as it is")
    fates = (
        (counts.uniform, "unknown", STOOD_IN),
        (counts.dropped, "unknown", "left out"),
        (counts.dropped_unprotected, "", "left out (not protected)"),
        (counts.kept_unknown, "unknown", "kept in clear (unknown='keep')"),
        (counts.kept_listed, "", "kept in clear (keep list)"),
        (counts.kept_unprotected, "", "kept in clear (not protected)"),
    )
    lines += [f"{_words(count, kind)} {fate}" for count, kind, fate in fates if count]
    return tuple(lines)


def _words(count: int, kind: str = "") -> str:
    return f"{count} {kind + ' ' if kind else ''}word{'' if count == 1 else 's'}"


def restore_case(original: str, substitute: str) -> str:
    """Put the substitute in UPPER, Title or lower case like the original, or leave it as it is.

    A single capital counts as Title: it mostly begins a sentence.
    """
    if original.islower():
        return substitute.lower()
    cased = [letter for letter in original if letter.lower() != letter.upper()]
    if not cased:
        return substitute
    if all(letter.islower() for letter in cased[1:]):
        return substitute.capitalize()
    if original.isupper():
        return substitute.upper()
    return substitute
