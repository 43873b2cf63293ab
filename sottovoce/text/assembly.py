"""Putting fragments together to one prepared text, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

import numpy as np

from sottovoce.text.fragments import Event, Fragment
from sottovoce.text.prepared import Counts, PreparedText
from sottovoce.types import IntArray

_LINE_BREAKS = frozenset("\n\r\u2028\u2029")


class Assembly:
    """Collects fragments and the whitespace between them; used up by :meth:`finish`."""

    def __init__(self) -> None:
        self._offset = 0
        self._slots: list[IntArray] = []
        self._spans: list[IntArray] = []
        self._events: Counter[Event] = Counter()
        self._literals: list[str] = []
        # Text since the last slot: pieces long settled, the last piece, and the blank after it,
        # which may yet be taken back.
        self._settled: list[str] = []
        self._tail = self._blank = ""

    def add(self, chunks: list[str], fragments: dict[str, Fragment], blanks: list[str]) -> None:
        """Append chunks, with the fragment of each distinct one, and the whitespace after each."""
        pieces = list(fragments.values())
        numbers = dict(zip(fragments, range(len(pieces)), strict=True))
        which = _integers(map(numbers.__getitem__, chunks))
        self._add_slots(pieces, which, _integers(map(len, chunks)) + _integers(map(len, blanks)))
        self._add_literals(chunks, [pieces[number].literals for number in which.tolist()], blanks)
        for piece, times in zip(pieces, np.bincount(which).tolist(), strict=True):
            for event in piece.events:
                self._events[event] += times

    def finish(self, text: str, *, restores_case: bool, releases_punctuation: bool) -> PreparedText:
        """Close the last literal and hand out the whole."""
        self._literals.append("".join((*self._settled, self._tail, self._blank)))
        slots = np.concatenate(self._slots)
        fates: Counter[str] = Counter()
        unknown: dict[str, None] = {}
        kept: dict[str, None] = {}
        for (surface, fate), times in self._events.items():
            fates[fate] += times
            if fate not in ("kept_listed", "kept_unprotected"):
                unknown[surface] = None
            if fate not in ("uniform", "dropped"):
                kept[surface] = None
        return PreparedText(
            text=text,
            slots=slots,
            spans=np.concatenate(self._spans),
            literals=tuple(self._literals),
            unknown=tuple(unknown),
            kept=tuple(kept),
            counts=Counts(known=len(slots) - fates["uniform"], **fates),
            restores_case=restores_case,
            releases_punctuation=releases_punctuation,
        )

    def _add_slots(self, pieces: list[Fragment], which: IntArray, lengths: IntArray) -> None:
        """Gather ids and spans of ``pieces[which[0]], pieces[which[1]], ...``."""
        sizes_by_piece = _integers(len(piece.ids) for piece in pieces)
        ids = _integers(chain.from_iterable(piece.ids for piece in pieces))
        spans = _integers(chain.from_iterable(piece.spans for piece in pieces)).reshape(-1, 2)
        sizes = sizes_by_piece[which]
        ends = np.cumsum(lengths) + self._offset
        first = np.cumsum(sizes_by_piece)[which] - np.cumsum(sizes)
        rows = np.repeat(first, sizes)
        rows += np.arange(len(rows))
        self._slots.append(ids[rows])
        self._spans.append(spans[rows] + np.repeat(ends - lengths, sizes)[:, None])
        self._offset = int(ends[-1])

    def _add_literals(
        self, chunks: list[str], literals_of: list[tuple[str, ...]], blanks: list[str]
    ) -> None:
        """Join what stands between slots; a chunk left out takes a blank beside it along."""
        literals, settled, tail, blank = self._literals, self._settled, self._tail, self._blank
        for chunk, own, blank_after in zip(chunks, literals_of, blanks, strict=True):
            if len(own) > 1:
                before = tail + blank + own[0]
                if settled:
                    before = "".join(settled) + before
                    settled.clear()
                literals.append(before or (" " if literals else ""))
                if len(own) > 2:
                    literals += own[1:-1]
                tail = own[-1]
            elif own[0] or not chunk:
                settled += (tail, blank, own[0])
                tail = ""
            elif _breaks_line(blank) and _breaks_line(blank_after):
                settled += (tail, blank)
                tail = ""
            else:
                blank = _one_of_two_blanks(blank, blank_after)
                continue
            blank = blank_after
        self._tail, self._blank = tail, blank


def _one_of_two_blanks(before: str, after: str) -> str:
    """Choose what stays of the whitespace around a chunk left out; nothing at a text's edge."""
    if _breaks_line(before):
        return before
    if _breaks_line(after):
        return after
    return before if after else ""


def _breaks_line(blank: str) -> bool:
    return not _LINE_BREAKS.isdisjoint(blank)


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)
