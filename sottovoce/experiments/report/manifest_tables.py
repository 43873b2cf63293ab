"""What the numbers were made of: versions, hashes, seeds, times, and what did not apply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sottovoce.experiments.report.table import Table

ELSEWHERE = ("name", "description", "notes", "experiment")
"""What the page says at its head, and the experiment's own file."""


def manifest_tables(manifest: dict[str, Any]) -> Iterator[Table]:
    """A table of plain entries, and one for each group of them."""
    said = {key: value for key, value in manifest.items() if key not in ELSEWHERE}
    groups = {key: value for key, value in said.items() if isinstance(value, dict)}
    alone = {key: value for key, value in said.items() if key not in groups}
    for name, entries in {"run": alone, **groups}.items():
        rows = tuple((_words(key), _written(value)) for key, value in entries.items())
        if rows:
            yield Table(
                name=f"manifest-{name}".replace("_", "-"),
                title=f"Manifest: {_words(name)}",
                caption="",
                columns=("what", "value"),
                rows=rows,
            )


def _words(key: str) -> str:
    return key.replace("_", " ")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_written(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{_words(str(key))} {_written(each)}" for key, each in value.items())
    return json.dumps(value)
