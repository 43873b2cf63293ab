"""Files of releases: what was said, and what was released instead. Ours, or somebody else's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, json_lines, numbered_lines, read_text
from sottovoce.text import TextPipeline

COLUMNS = ("id", "text", "obfuscatedText")
HOW = (
    "give JSON lines as 'sottovoce obfuscate -o jsonl' writes them, or a CSV file with the columns "
    "id,text,obfuscatedText (one variant a line)"
)


@dataclass(frozen=True, repr=False)
class Released:
    """One text and its variants. ``mechanism`` and ``release`` are what the file says, if it does.

    ``text`` is what the attacker is after: they never see it, it only decides if they are right.
    """

    id: str
    text: str
    variants: tuple[str, ...]
    mechanism: str | None = None
    epsilon: float | None = None
    release: str | None = None
    made_with: str | None = None
    """A hash of the space and output vocabulary that were used."""
    pipeline: TextPipeline | None = None
    """How the text was cut and laid out."""

    def __repr__(self) -> str:
        return f"Released({len(self.variants)} variants, mechanism={self.mechanism})"


def read_releases(file: Path | str) -> list[Released]:
    """All releases of a file (``-`` is standard input), in order; CSV or JSON lines, or gzipped."""
    return parse_releases(read_text(file))


def parse_releases(content: str) -> list[Released]:
    """The releases in the content of a file."""
    start = content.lstrip()[:1]
    if not start:
        raise UsageError(f"the file of releases is empty: {HOW}")
    releases = list(_from_json(content) if start == "{" else _from_csv(content))
    if not any(release.variants for release in releases):
        raise UsageError(f"the file holds no release: {HOW}")
    return releases


def _from_json(content: str) -> Iterator[Released]:
    for number, row in json_lines(numbered_lines(content), how=HOW):
        yield _from_row(row if isinstance(row, dict) else {}, number)


def _from_row(row: dict[str, Any], number: int) -> Released:
    text, variants = row.get("text"), row.get("variants")
    if not (
        isinstance(text, str)
        and isinstance(variants, list)
        and all(isinstance(variant, str) for variant in variants)
    ):
        raise UsageError(
            f"line {number} of the file lacks 'text' (a string) or 'variants' (a list): {HOW}"
        )
    if row.get("choir") is not None:
        raise UsageError(
            f"line {number} of the file holds variants of several texts in chorus: attack them in "
            "Python, with attack_chorus of sottovoce.privacy"
        )
    details = {
        name: row[name] if isinstance(row.get(name), str) else None
        for name in ("mechanism", "release", "made_with")
    }
    return Released(
        id=str(row.get("id", number)),
        text=text,
        variants=tuple(variants),
        epsilon=_number(row.get("epsilon"), number),
        pipeline=_pipeline(row.get("texts"), number),
        **details,
    )


def _from_csv(content: str) -> Iterator[Released]:
    table = CsvTable(content, how=HOW, quoting="put texts with commas in quotes")
    table.require(*COLUMNS)
    grouped: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for _, row in table:
        key = (row["id"], row["text"], row.get("mechanism", ""), row.get("epsilon", ""))
        grouped.setdefault(key, []).append(row)
    for (name, text, *_), variants in grouped.items():
        first = variants[0]
        yield Released(
            id=name,
            text=text,
            variants=tuple(row["obfuscatedText"] for row in variants),
            mechanism=first.get("mechanism") or None,
            epsilon=_number(first.get("epsilon") or None, None),
        )


def _pipeline(settings: Any, line: int) -> TextPipeline | None:
    if settings is None:
        return None
    if not isinstance(settings, dict):
        raise UsageError(f"line {line} of the file: 'texts' must hold settings, or be left out")
    try:
        return TextPipeline.from_dict(settings)
    except UsageError as error:
        raise UsageError(f"line {line} of the file, 'texts': {error}") from None


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
