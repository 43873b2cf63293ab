"""Texts and tables sanitized in memory: nothing of them comes to the disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from sottovoce.app.loaded import LoadedParts
from sottovoce.app.schemas import SanitizeBody, given_parameters
from sottovoce.app.streaming import Tell
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import DatasetCounts, Report, Sanitizer
from sottovoce.sanitizing.csv_rows import CsvSource
from sottovoce.sanitizing.sources import START, TextBlock
from sottovoce.sanitizing.spreadsheets import without_formulas
from sottovoce.text.comparing import comparable

COLUMN = "text"
"""What the cells of a list of texts count as."""
TOGETHER = 256
_CHUNK = re.compile(r"\S+")
_LETTER = re.compile(r"\w")


class SanitizedRow(TypedDict):
    """A cell; ``changed`` are the places [start, end] in ``sanitized`` that differ.

    The original, and the places in it, come back unless they were not wanted.
    """

    original: NotRequired[str]
    sanitized: str
    changed: list[list[int]]
    changed_from: NotRequired[list[list[int]]]


class Sanitized(TypedDict):
    """Cells side by side, the CSV file if one was given, and the report."""

    rows: list[SanitizedRow]
    csv: str | None
    report: dict[str, Any]


@dataclass(frozen=True)
class CsvInMemory(CsvSource):
    """A CSV file that is not on disk, and has no path."""

    content: bytes = b""

    def open_file(self) -> IO[bytes]:
        """The content, from its beginning."""
        return BytesIO(self.content)


class Cells(NamedTuple):
    """Some cells of the column, and the rows of the table that they are in, if it is a table."""

    texts: Sequence[str | None]
    rows: TextBlock | None = None


def sanitize(parts: LoadedParts, body: SanitizeBody, tell: Tell) -> Sanitized:
    """Sanitize texts, or a column of a table; what is not that column stays as it is.

    As ``sottovoce sanitize`` it is not counted in the ledger: the report says what it promises.
    """
    built = parts.mechanism(body.mechanism, given_parameters(body))
    sanitizer = Sanitizer(Obfuscator(built, rng=body.seed), (body.column or COLUMN,))
    rows: list[SanitizedRow] = []
    counts, table = DatasetCounts(), bytearray()
    for cells in _cells(body):
        texts, block_counts = sanitizer.texts(sanitizer.columns[0], cells.texts, len(rows))
        counts += block_counts + DatasetCounts(rows=len(texts))
        if cells.rows is not None:
            table += cells.rows.filled([texts])
        pairs = zip(cells.texts, texts, strict=True)
        rows += [_row(old or "", new or "", body.originals) for old, new in pairs]
        of = len(body.texts) if body.texts else None
        tell({"step": "sanitizing", "done": len(rows), "of": of})
    if body.spreadsheet:
        table[:] = without_formulas(bytes(table), body.delimiter)
    return {
        "rows": rows,
        "csv": table.decode("utf-8") if body.csv is not None else None,
        "report": Report(sanitizer, counts).to_dict(),
    }


def _cells(body: SanitizeBody) -> Iterator[Cells]:
    """The cells of a body, some at a time."""
    if body.csv is None:
        texts = body.texts or []
        for start in range(0, len(texts), TOGETHER):
            yield Cells(texts[start : start + TOGETHER])
        return
    source = CsvInMemory(
        Path(), (str(body.column),), body.delimiter, content=body.csv.encode("utf-8")
    )
    for block in source.blocks(START):
        (column,) = block.texts
        yield Cells(column, block)


def _row(old: str, new: str, both: bool) -> SanitizedRow:
    changed_from, changed = changes(old, new)
    if not both:
        return {"sanitized": new, "changed": changed}
    return {"original": old, "sanitized": new, "changed": changed, "changed_from": changed_from}


def changes(old: str, new: str) -> tuple[list[list[int]], list[list[int]]]:
    """Where words differ, as [start, end] in the old text and in the new one.

    A mechanism that replaces words leaves the blanks between them: then the pieces correspond one
    to one. Where they do not, everything has changed.
    """
    before, after = list(_CHUNK.finditer(old)), list(_CHUNK.finditer(new))
    if len(before) == len(after):
        pairs = [
            (was, now)
            for was, now in zip(before, after, strict=True)
            if comparable(was.group()) != comparable(now.group())
        ]
        before, after = [was for was, _ in pairs], [now for _, now in pairs]
    return list(map(_without_punctuation, before)), list(map(_without_punctuation, after))


def _without_punctuation(chunk: re.Match[str]) -> list[int]:
    """Where a piece is, without the punctuation around it, unless it is nothing else."""
    piece = chunk.group()
    first = _LETTER.search(piece)
    if first is None:
        return [chunk.start(), chunk.end()]
    last = next(at for at in range(len(piece), 0, -1) if _LETTER.match(piece, at - 1))
    return [chunk.start() + first.start(), chunk.start() + last]
