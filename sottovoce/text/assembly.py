"""Putting fragments together to one prepared text, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from sottovoce.text.fragments import Fragment, KeptWord, Reason
from sottovoce.text.prepared import Counts, PreparedText
from sottovoce.text.resolve import UNKNOWN
from sottovoce.types import IntArray

_LINE_BREAKS = frozenset("\n\r\u2028\u2029")


class Assembly:
    """Collects fragments and the whitespace between them; used up by :meth:`finish`."""

    def __init__(self) -> None:
        self._offset = 0
        self._columns: list[tuple[IntArray, IntArray, IntArray]] = []
        self._literals: list[str] = []
        # Text since the last slot: pieces long settled, the last piece, and the blank after it,
        # which may yet be taken back.
        self._settled: list[str] = []
        self._tail = self._blank = ""
        self._unknown: dict[str, None] = {}
        self._kept: Counter[KeptWord] = Counter()
        self._dropped = 0

    def add(self, pieces: list[Fragment], blanks: list[str]) -> None:
        """Append fragments, each with the whitespace after it."""
        lengths = _integers(map(attrgetter("length"), pieces)) + _integers(map(len, blanks))
        ends = np.cumsum(lengths) + self._offset
        sizes = _integers(map(len, map(attrgetter("ids"), pieces)))
        offsets = np.repeat(ends - lengths, sizes)
        self._offset = int(ends[-1])
        self._columns.append(
            (
                _integers(_all("ids", pieces)),
                _integers(_all("starts", pieces)) + offsets,
                _integers(_all("ends", pieces)) + offsets,
            )
        )
        self._unknown.update(dict.fromkeys(_all("unknown", pieces)))
        self._kept.update(_all("kept", pieces))
        self._dropped += sum(map(attrgetter("dropped"), pieces))
        self._add_literals(pieces, blanks)

    def finish(self, text: str, *, restores_case: bool, releases_punctuation: bool) -> PreparedText:
        """Close the last literal and hand out the whole."""
        slots, starts, ends = map(np.concatenate, zip(*self._columns, strict=True))
        self._literals.append("".join((*self._settled, self._tail, self._blank)))
        return PreparedText(
            text=text,
            slots=slots,
            starts=starts,
            ends=ends,
            literals=tuple(self._literals),
            unknown=tuple(self._unknown),
            kept=tuple(dict.fromkeys(word.surface for word in self._kept)),
            counts=self._counts(slots),
            restores_case=restores_case,
            releases_punctuation=releases_punctuation,
        )

    def _add_literals(self, pieces: list[Fragment], blanks: list[str]) -> None:
        """Join what stands between slots; a chunk left out takes a blank beside it along."""
        literals, settled, tail, blank = self._literals, self._settled, self._tail, self._blank
        for piece, blank_after in zip(pieces, blanks, strict=True):
            own = piece.literals
            if len(own) > 1:
                before = tail + blank + own[0]
                if settled:
                    before = "".join(settled) + before
                    settled.clear()
                literals.append(before)
                literals += own[1:-1]
                tail = own[-1]
            elif own[0] or not piece.length:
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

    def _counts(self, slots: IntArray) -> Counts:
        uniform = int(np.count_nonzero(slots == UNKNOWN))
        reasons: Counter[Reason] = Counter()
        for word, times in self._kept.items():
            reasons[word.reason] += times
        return Counts(
            known=len(slots) - uniform,
            uniform=uniform,
            dropped=self._dropped,
            kept_unknown=reasons["unknown"],
            kept_listed=reasons["keep"],
            kept_unprotected=reasons["protect"],
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


def _all(field: str, pieces: list[Fragment]) -> Iterator[Any]:
    return chain.from_iterable(map(attrgetter(field), pieces))


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)
