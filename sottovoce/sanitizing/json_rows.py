"""JSON lines: one object a line, of which only the chosen values are rewritten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sottovoce.errors import UsageError
from sottovoce.files import BOM
from sottovoce.sanitizing.sources import START, Lines, Mark, Row, RowReader, TextSource

DELETE = b"\x7f"
_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class JsonSource(TextSource):
    """A file of JSON objects, one a line."""

    @property
    def kind(self) -> str:
        """The format."""
        return "jsonl"

    @property
    def joint(self) -> bytes:
        """Nothing: the pieces together are the whole line."""
        return b""

    def write_cell(self, text: str, before: bytes) -> bytes:
        """A JSON string; what was written in ASCII with escapes stays so."""
        escaped = before.isascii() and DELETE not in before  # Python escapes it with the others.
        return json.dumps(text, ensure_ascii=escaped).encode("utf-8")

    def header(self) -> tuple[bytes, Mark]:
        """JSON lines have no header; an empty file is refused."""
        with Lines(self.open_file) as lines:
            while line := lines.next():
                if line.strip():
                    return b"", START
        raise UsageError("the input is empty: it should hold a JSON object in each line")

    def reader(self) -> JsonReader:
        """A reader that knows the names of the chosen columns."""
        return JsonReader(self.columns)


class JsonReader(RowReader):
    """Finds where the values of some keys begin and end."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns

    def row(self, line: bytes, lines: Lines) -> Row:
        """The row in this line."""
        number = lines.number
        content = line.decode("utf-8")
        values: dict[str, tuple[str | None, int, int]] = {}
        try:
            for key, value, start, end in members(content):
                if key not in self.columns:
                    continue
                if key in values:
                    raise UsageError(f"line {number} of the input has a column twice")
                if not (value is None or isinstance(value, str)):
                    raise UsageError(
                        f"line {number} of the input has something else than a text in a column "
                        "that was asked for: check --column"
                    )
                values[key] = value, start, end
        except UsageError:
            raise
        except (ValueError, RecursionError):
            raise UsageError(
                f"line {number} of the input is not a JSON object: write one object a line"
            ) from None
        if len(values) != len(self.columns):
            raise UsageError(
                f"line {number} of the input lacks a column that was asked for: check --column, or "
                "write null where there is no text"
            )
        return _cut(content, [values[column] for column in self.columns])


def members(content: str) -> Iterator[tuple[str, Any, int, int]]:
    """The keys of a JSON object, their values, and where those start and end."""
    at = _after(content, "{", _skip(content, len(BOM) if content.startswith(BOM) else 0))
    more = content[at : at + 1] != "}"
    while more:
        key, at = _decoder.raw_decode(content, at)
        if not isinstance(key, str):
            raise ValueError
        start = _after(content, ":", _skip(content, at))
        value, end = _decoder.raw_decode(content, start)
        yield key, value, start, end
        at = _skip(content, end)
        more = content[at : at + 1] == ","
        if more:
            at = _after(content, ",", at)
    if _after(content, "}", at) != len(content):
        raise ValueError


def _skip(content: str, at: int) -> int:
    space = _SPACE.match(content, at)
    return at if space is None else space.end()


def _after(content: str, sign: str, at: int) -> int:
    """The place after a sign and the space behind it."""
    if content[at : at + 1] != sign:
        raise ValueError
    return _skip(content, at + 1)


def _cut(content: str, values: list[tuple[str | None, int, int]]) -> Row:
    """Cut a line around the values; every other piece is one of them."""
    order = sorted(range(len(values)), key=lambda i: values[i][1])
    pieces, places, at = list[bytes](), [0] * len(values), 0
    for i in order:
        _, start, end = values[i]
        pieces += (content[at:start].encode("utf-8"), content[start:end].encode("utf-8"))
        places[i] = len(pieces) - 1
        at = end
    pieces.append(content[at:].encode("utf-8"))
    return Row(pieces, tuple(places), tuple(text for text, _, _ in values))
