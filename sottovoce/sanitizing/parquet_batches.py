"""Rows of a Parquet file, few enough at a time to fit into memory, however well they were packed.

A text that is stored once may stand in a million rows: a file of a kilobyte then unpacks to
terabytes. So texts are read as categories, and rows cut by what they come to before any is
unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.errors import need
from sottovoce.types import IntArray

if TYPE_CHECKING:
    import pyarrow

BYTES_TOGETHER = 16 << 20
"""Of text in the rows of a batch, unless one row alone has more."""
NESTED_BYTES = 1 << 30
"""Texts in lists cannot be read as categories: so many bytes at worst."""


def batches(path: Path, group: int, rows: int) -> Iterator[pyarrow.RecordBatch]:
    """The rows of one row group, ``rows`` at a time at most."""
    pq = need("pyarrow.parquet", "data")
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        rows = max(1, min(rows, _worst_case(schema, file.metadata.row_group(group))))
    repeated = [field.name for field in schema if _is_long(field.type)]
    with pq.ParquetFile(path, read_dictionary=repeated) as file:
        for batch in file.iter_batches(rows, row_groups=[group]):
            for start, end in _cuts(_row_bytes(batch)):
                yield _plain(batch.slice(start, end - start), schema)


def _is_long(kind: Any) -> bool:
    """Whether values have a length of their own, and may be read as categories."""
    types = need("pyarrow", "data").types
    return bool(types.is_string(kind) or types.is_binary(kind))


def _worst_case(schema: pyarrow.Schema, group: Any) -> int:
    """How many rows fit if each holds all that lists in this row group could hold.

    Of single columns nothing is asked here: pyarrow ends the process where their description is
    damaged, and raises an error where they are read.
    """
    types = need("pyarrow", "data").types
    if not any(types.is_nested(field.type) for field in schema):
        return NESTED_BYTES
    return NESTED_BYTES // max(1, int(group.total_byte_size))


def _row_bytes(batch: pyarrow.RecordBatch) -> IntArray:
    """The bytes of text in each row, unpacked."""
    pa = need("pyarrow", "data")
    pc = need("pyarrow.compute", "data")
    total: IntArray = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_long(column.type.value_type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
        elif _is_long(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.binary_length(column)
        else:
            continue
        total += np.asarray(lengths.fill_null(0)).astype(np.int64)
    return total


def _cuts(sizes: IntArray) -> Iterator[tuple[int, int]]:
    """Where to cut rows of these sizes: one at least, and else no more than fit."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + BYTES_TOGETHER, side="right"))
        end = max(end, start + 1)
        yield start, end
        start = end


def _plain(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """The batch in the types of the file."""
    pa = need("pyarrow", "data")
    columns = [
        column.cast(field.type) if column.type != field.type and _is_long(field.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))
