"""Texts and tables sanitised in memory: nothing of them comes to the disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from sottovoce.app.schemas import SanitizeBody
from sottovoce.app.state import Workbench, given_parameters
from sottovoce.app.streaming import Tell
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import DatasetCounts, Report, Sanitizer
from sottovoce.sanitizing.csv_rows import CsvSource
from sottovoce.sanitizing.sources import START
from sottovoce.text.comparing import comparable

COLUMN = "text"
"""What the cells of a list of texts count as."""
TOGETHER = 256
_CHUNK = re.compile(r"\S+")
_LETTER = re.compile(r"\w")


class InMemory:
    """Stands where a path is opened, and opens bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, mode: str) -> BytesIO:
        """The bytes, from the beginning."""
        return BytesIO(self._data)


def sanitize(bench: Workbench, body: SanitizeBody, tell: Tell) -> dict[str, Any]:
    """Sanitise texts, or a column of a table; what is not that column stays as it is.

    As ``sottovoce sanitize`` it is not counted in the ledger: the report says what it promises.
    """
    built = bench.mechanism(body.mechanism, given_parameters(body.set, body.epsilon))
    sanitizer = Sanitizer(Obfuscator(built, rng=body.seed), (body.column or COLUMN,))
    rows: list[dict[str, Any]] = []
    counts, out, of = DatasetCounts(), bytearray(), 0
    for old, finish in _blocks(body):
        new, own = sanitizer.texts(sanitizer.columns[0], old, len(rows))
        counts += own + DatasetCounts(rows=len(old))
        out += finish(new)
        rows += [_row(a or "", b or "", body.originals) for a, b in zip(old, new, strict=True)]
        of = of or (len(body.texts) if body.texts is not None else 0)
        tell({"step": "sanitising", "done": len(rows), "of": of or None})
    return {
        "rows": rows,
        "csv": out.decode("utf-8") if body.csv is not None else None,
        "report": Report(sanitizer, counts).to_dict(),
    }


def _blocks(body: SanitizeBody) -> Iterator[tuple[list[str | None], Any]]:
    """Cells, some at a time, and what makes bytes of a table of their substitutes."""
    if body.csv is None:
        texts = body.texts or []
        for start in range(0, len(texts), TOGETHER):
            yield list(texts[start : start + TOGETHER]), lambda _: b""
        return
    path = cast(Path, InMemory(body.csv.encode("utf-8")))
    source = CsvSource(path, (str(body.column),), body.delimiter)
    for block in source.blocks(START):
        (cells,) = block.texts
        yield list(cells), lambda new, block=block: block.filled([new])


def _row(old: str, new: str, both: bool) -> dict[str, Any]:
    changed_in_old, changed_in_new = changes(old, new)
    row = {"sanitised": new, "changed": changed_in_new}
    return {"original": old, **row, "changed_from": changed_in_old} if both else row


def changes(old: str, new: str) -> tuple[list[list[int]], list[list[int]]]:
    """Where words differ, as [start, end] in the old text and in the new one.

    A mechanism that replaces words leaves the blanks between them: then the pieces correspond one
    to one. Where they do not, everything has changed.
    """
    before, after = list(_CHUNK.finditer(old)), list(_CHUNK.finditer(new))
    if len(before) != len(after):
        return [_inside(each) for each in before], [_inside(each) for each in after]
    differing = [
        (a, b)
        for a, b in zip(before, after, strict=True)
        if comparable(a.group()) != comparable(b.group())
    ]
    return [_inside(a) for a, _ in differing], [_inside(b) for _, b in differing]


def _inside(chunk: re.Match[str]) -> list[int]:
    """A piece without the punctuation around it, unless it is nothing else."""
    piece = chunk.group()
    first = _LETTER.search(piece)
    if first is None:
        return [chunk.start(), chunk.end()]
    last = next(at for at in range(len(piece), 0, -1) if _LETTER.match(piece, at - 1))
    return [chunk.start() + first.start(), chunk.start() + last]
