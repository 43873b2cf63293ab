"""Tables in memory: Arrow, pandas, and a function for the ``map`` of Hugging Face data sets."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sottovoce.errors import UsageError
from sottovoce.sanitizing.arrow import load_pyarrow
from sottovoce.sanitizing.sanitizer import DatasetCounts, Sanitizer

if TYPE_CHECKING:
    import pandas
    import pyarrow


Cells: TypeAlias = list[str | None]


def sanitize_table(
    sanitizer: Sanitizer, table: pyarrow.Table, first_row: int = 0
) -> tuple[pyarrow.Table, DatasetCounts]:
    """An Arrow table with new texts, the same schema and the same other columns."""
    pa = load_pyarrow()
    batches, counts, row = [], DatasetCounts(), first_row
    empty = pa.RecordBatch.from_pylist([], table.schema)
    for batch in table.to_batches() or [empty]:
        new, batch_counts = sanitizer.batch(batch, row)
        batches.append(new)
        counts += batch_counts
        row += batch.num_rows
    return pa.Table.from_batches(batches, table.schema), counts


def sanitize_frame(
    sanitizer: Sanitizer, frame: pandas.DataFrame, first_row: int = 0
) -> tuple[pandas.DataFrame, DatasetCounts]:
    """A pandas DataFrame with new texts; the one that was given does not change.

    Rows are counted as they stand, whatever the index says. What is missing stays as it is.
    """
    import pandas as pd

    new, counts = frame.copy(), DatasetCounts(rows=len(frame))
    for column in sanitizer.columns:
        if list(frame.columns).count(column) != 1:
            raise UsageError("the DataFrame lacks a column that was asked for, or has it twice")
        cells = frame[column]
        missing = cells.isna().to_numpy()
        given = [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]
        if not all(cell is None or isinstance(cell, str) for cell in given):
            raise UsageError("a column that was asked for holds something else than texts")
        texts, column_counts = sanitizer.texts(column, given, first_row)
        filled = cells.astype(object).where(missing, pd.Series(texts, cells.index, dtype=object))
        categories = isinstance(cells.dtype, pd.CategoricalDtype)
        new[column] = filled.astype("category" if categories else cells.dtype)
        counts += column_counts
    return new, counts


def dataset_function(
    sanitizer: Sanitizer,
) -> Callable[[Mapping[str, Sequence[Any]], Sequence[int]], dict[str, Cells]]:
    """For ``dataset.map(dataset_function(sanitizer), batched=True, with_indices=True)``.

    Without a seed each ``map`` draws anew: the cache of data sets never finds an earlier draw.
    """
    return _DatasetFunction(sanitizer)


class _DatasetFunction:
    """The function itself, as an object, so that it can be pickled.

    Data sets are cached under a hash of its pickle. Without a seed no two pickles are alike.
    """

    def __init__(self, sanitizer: Sanitizer, draw: str = "") -> None:
        self.sanitizer = sanitizer

    def __reduce__(self) -> tuple[Any, ...]:
        seeded = self.sanitizer.obfuscator.rng is not None
        return _DatasetFunction, (self.sanitizer, "" if seeded else secrets.token_hex(16))

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


def in_runs(numbers: Sequence[Any]) -> Iterator[tuple[int, int, int]]:
    """Row numbers as runs of consecutive ones: the first number, its place, and how many."""
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise UsageError("row numbers are whole numbers, 0 or more")
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[start], start, place - start
            start = place
