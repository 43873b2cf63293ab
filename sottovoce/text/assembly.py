"""Puts fragments together to one prepared text, a block at a time."""

from __future__ import annotations

from collections import Counter

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

    def add(self, chunks: list[str], pieces: list[Fragment], blanks: list[str]) -> None:
        """Append chunks, the fragment of each, and the whitespace after each.

        Where a chunk is left out altogether, so is a blank beside it.
        """
        ids: list[int] = []
        edges: list[int] = []
        literals, settled, tail, blank = self._literals, self._settled, self._tail, self._blank
        offset = self._offset
        for chunk, piece, blank_after in zip(chunks, pieces, blanks, strict=True):
            own, own_ids, own_edges, events = piece
            if own_ids:
                ids += own_ids
                for edge in own_edges:
                    edges.append(offset + edge)
                before = tail + blank + own[0]
                if settled:
                    before = "".join(settled) + before
                    settled.clear()
                literals.append(before or (" " if literals else ""))
                if len(own) > 2:
                    literals += own[1:-1]
                tail, blank = own[-1], blank_after
            elif own[0] or not chunk:
                settled += (tail, blank, own[0])
                tail, blank = "", blank_after
            elif _breaks_line(blank) and _breaks_line(blank_after):
                settled += (tail, blank)
                tail, blank = "", blank_after
            else:
                blank = _one_of_two_blanks(blank, blank_after)
            for event in events:
                self._events[event] += 1
            offset += len(chunk) + len(blank_after)
        self._tail, self._blank, self._offset = tail, blank, offset
        self._slots.append(np.array(ids, dtype=np.int64))
        self._spans.append(np.array(edges, dtype=np.int64).reshape(-1, 2))

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


def _one_of_two_blanks(before: str, after: str) -> str:
    """Choose what stays of the whitespace around a chunk left out; nothing at a text's edge."""
    if _breaks_line(before):
        return before
    if _breaks_line(after):
        return after
    return before if after else ""


def _breaks_line(blank: str) -> bool:
    return not _LINE_BREAKS.isdisjoint(blank)
