"""Texts in and out of Arrow record batches. Needs pyarrow, as Parquet does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.errors import UsageError, need

if TYPE_CHECKING:
    import pyarrow


def load_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    return need("pyarrow", "data", "Parquet and Arrow need pyarrow")


def place_of(schema: pyarrow.Schema, column: str) -> int:
    """The place of a column of text in a schema."""
    found = schema.get_all_field_indices(column)
    if len(found) != 1:
        how_many = "no column" if not found else "more than one column"
        raise UsageError(f"the data has {how_many} of a name that was asked for: check --column")
    if not _is_text(schema.field(found[0]).type):
        raise UsageError(
            "a column that was asked for holds no text but another type: choose columns of strings"
        )
    return int(found[0])


def _is_text(kind: Any) -> bool:
    types = load_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    views = types.is_string_view(kind)
    return bool(types.is_string(kind) or types.is_large_string(kind) or views)


def texts_in(batch: pyarrow.RecordBatch, column: str) -> list[str | None]:
    """The cells of a column of text."""
    cells: list[str | None] = batch.column(place_of(batch.schema, column)).to_pylist()
    return cells


def with_texts(
    batch: pyarrow.RecordBatch, columns: Sequence[str], texts: Sequence[Sequence[str | None]]
) -> pyarrow.RecordBatch:
    """The batch with other texts in some columns, and the same schema."""
    pa = load_pyarrow()
    arrays = list(batch.columns)
    for column, cells in zip(columns, texts, strict=True):
        place = place_of(batch.schema, column)
        arrays[place] = _as_type(cells, batch.schema.field(place).type)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _as_type(cells: Sequence[str | None], kind: Any) -> Any:
    pa = load_pyarrow()
    if not pa.types.is_dictionary(kind):
        return pa.array(cells, type=kind)
    try:
        return pa.array(cells, type=kind.value_type).dictionary_encode().cast(kind)
    except pa.ArrowException:
        raise UsageError(
            "a column of text is stored as categories, and has too few of them for the new texts: "
            "store it as plain strings first"
        ) from None
