"""Files of releases: what was said, and what was released instead. Ours, or somebody else's."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError, UsageError

COLUMNS = ("id", "text", "obfuscatedText")
HOW = (
    "give JSON lines as 'sottovoce obfuscate -o jsonl' writes them, or a CSV file with the columns "
    "id,text,obfuscatedText (one variant a line)"
)


@dataclass(frozen=True, repr=False)
class Released:
    """One text and its variants. ``mechanism`` and ``release`` are what the file says, if it does.

    ``text`` is what the attacker is after: he never sees it, it only decides whether he is right.
    """

    id: str
    text: str
    variants: tuple[str, ...]
    mechanism: str | None = None
    epsilon: float | None = None
    release: str | None = None
    made_with: str | None = None
    """A hash of the space and output vocabulary that were used."""

    def __repr__(self) -> str:
        return f"Released({len(self.variants)} variants, mechanism={self.mechanism})"


def read_releases(file: Path | str) -> list[Released]:
    """All releases of a file (``-`` is standard input), in order; CSV or JSON lines, or gzipped."""
    return parse_releases(read_text(file))


def parse_releases(content: str) -> list[Released]:
    """The releases in the content of a file."""
    start = content.lstrip("\ufeff \t\r\n")[:1]
    if not start:
        raise UsageError(f"the file of releases is empty: {HOW}")
    found = list(_from_json(content) if start == "{" else _from_csv(content.lstrip("\ufeff")))
    if not any(each.variants for each in found):
        raise UsageError(f"the file holds no release: {HOW}")
    return found


def read_text(file: Path | str) -> str:
    """The whole of a text file, which may be gzipped; ``-`` is standard input."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else Path(file).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        content = data.decode("utf-8")
    except FileNotFoundError:
        raise UsageError("there is no such file: check the path") from None
    except IsADirectoryError:
        raise UsageError("that is a folder, not a file: check the path") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"line {line} of the file is not UTF-8: convert it first") from None
    except (OSError, EOFError) as error:
        raise SottovoceError(f"the file cannot be read ({type(error).__name__})") from None
    if "\0" in content:
        line = content.count("\n", 0, content.index("\0")) + 1
        raise UsageError(f"line {line} of the file holds a NUL byte: it is not a text file")
    return content


def _from_json(content: str) -> Iterator[Released]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise UsageError(f"line {number} of the file is not JSON: {HOW}") from None
        yield _from_row(row, number)


def _from_row(row: Any, number: int) -> Released:
    text = row.get("text") if isinstance(row, dict) else None
    variants = row.get("variants") if isinstance(row, dict) else None
    if not (
        isinstance(text, str)
        and isinstance(variants, list)
        and all(isinstance(each, str) for each in variants)
    ):
        raise UsageError(
            f"line {number} of the file lacks 'text' (a string) or 'variants' (a list): {HOW}"
        )
    said = {
        name: row[name] if isinstance(row.get(name), str) else None
        for name in ("mechanism", "release", "made_with")
    }
    return Released(
        id=str(row.get("id", number)),
        text=text,
        variants=tuple(variants),
        epsilon=_number(row.get("epsilon"), number),
        **said,
    )


def _from_csv(content: str) -> Iterator[Released]:
    rows = csv.DictReader(io.StringIO(content, newline=""))
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise UsageError(f"the CSV file has no column {' and '.join(missing)}: {HOW}")
    grouped: dict[tuple[str, ...], list[dict[str, str]]] = {}
    try:
        for row in rows:
            if None in row or None in row.values():
                raise UsageError(
                    f"the row that ends in line {rows.line_num} of the CSV file has another "
                    "number of fields than the header: put texts with commas in quotes"
                )
            key = (row["id"], row["text"], row.get("mechanism", ""), row.get("epsilon", ""))
            grouped.setdefault(key, []).append(row)
    except csv.Error:
        raise UsageError(f"line {rows.line_num} of the CSV file cannot be read") from None
    for (name, text, *_), variants in grouped.items():
        first = variants[0]
        yield Released(
            id=name,
            text=text,
            variants=tuple(row["obfuscatedText"] for row in variants),
            mechanism=first.get("mechanism") or None,
            epsilon=_number(first.get("epsilon") or None, None),
        )


def _number(value: Any, line: int | None) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        where = "" if line is None else f" in line {line}"
        raise UsageError(f"the epsilon{where} is not a number above 0")
    return number
