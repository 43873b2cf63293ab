"""Hugging Face data sets: a function for their ``map``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sottovoce.errors import UsageError
from sottovoce.integrations.tables import in_runs
from sottovoce.sanitizing.sanitizer import Sanitizer

Cells: TypeAlias = list[str | None]


def dataset_function(
    sanitizer: Sanitizer,
) -> Callable[[Mapping[str, Sequence[Any]], Sequence[int]], dict[str, Cells]]:
    """For ``dataset.map(dataset_function(sanitizer), batched=True, with_indices=True)``."""
    return _Function(sanitizer)


class _Function:
    """Pickles as the sanitizer does."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self.sanitizer = sanitizer

    def __call__(self, batch: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> dict[str, Cells]:
        return {column: self._column(column, batch, rows) for column in self.sanitizer.columns}

    def _column(
        self, column: str, batch: Mapping[str, Sequence[Any]], rows: Sequence[int]
    ) -> Cells:
        if column not in batch:
            raise UsageError("the data set lacks a column that was asked for")
        cells = list(batch[column])
        if not all(cell is None or isinstance(cell, str) for cell in cells):
            raise UsageError("a column that was asked for holds something else than texts")
        texts: Cells = []
        for first, at, size in in_runs(rows):
            texts += self.sanitizer.texts(column, cells[at : at + size], first)[0]
        return texts
