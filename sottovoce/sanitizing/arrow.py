"""Arrow record batches and Parquet files. Needs pyarrow.

A Parquet file cannot be read before its end is written. So each block is written to the work file
as a small Arrow stream, and the Parquet file is put together last, from blocks that are on disk for
good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import SottovoceError, UsageError, need
from sottovoce.files import create_new
from sottovoce.sanitizing.parquet_batches import batches
from sottovoce.sanitizing.sources import LONGEST_ROW, ROWS_AT_A_TIME, Mark, Texts

if TYPE_CHECKING:
    import pyarrow

GROUP_BYTES = 64 << 20
GROUP_ROWS = 1 << 17
CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}


def load_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    return need("pyarrow", "data", "Parquet and Arrow need pyarrow")


def place_of(schema: pyarrow.Schema, column: str) -> int:
    """The place of a column of text in a schema."""
    places = schema.get_all_field_indices(column)
    if len(places) != 1:
        how_many = "more than one column" if places else "no column"
        raise UsageError(f"the data has {how_many} of a name that was asked for: check --column")
    if not _is_text(schema.field(places[0]).type):
        raise UsageError(
            "a column that was asked for holds no text but another type: choose columns of strings"
        )
    return int(places[0])


def _is_text(kind: Any) -> bool:
    types = load_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    views = types.is_string_view(kind)
    return bool(types.is_string(kind) or types.is_large_string(kind) or views)


def texts_in(batch: pyarrow.RecordBatch, column: str) -> list[str | None]:
    """The cells of a column of text."""
    try:
        cells: list[str | None] = batch.column(place_of(batch.schema, column)).to_pylist()
    except UnicodeDecodeError:
        raise UsageError(
            "a text in a column that was asked for is not UTF-8, whatever the file says of it: "
            "convert it first"
        ) from None
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


# Parquet files.


@dataclass
class ArrowBlock:
    """Rows of a table; ``end`` counts the rows before the next one."""

    columns: tuple[str, ...]
    batch: pyarrow.RecordBatch
    end: Mark

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.batch.num_rows)

    @property
    def texts(self) -> Texts:
        """The cells of each chosen column."""
        return [texts_in(self.batch, column) for column in self.columns]

    def filled(self, texts: Texts) -> bytes:
        """The rows with other cells, as an Arrow stream of their own."""
        pa = load_pyarrow()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.batch.schema) as stream:
            stream.write_batch(with_texts(self.batch, self.columns, texts))
        return bytes(sink.getvalue())


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file."""

    path: Path
    columns: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The format."""
        return "parquet"

    def blocks(self, start: Mark) -> Iterator[ArrowBlock]:
        """All rows from a mark on; row groups before it are not read."""
        done, _ = start
        with self._opened() as file:
            before = 0
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if before + rows > done:
                    yield from self._group(group, before, done)
                before += rows

    def _group(self, group: int, row: int, done: int) -> Iterator[ArrowBlock]:
        for batch in batches(self.path, group, ROWS_AT_A_TIME):
            skipped = min(max(done - row, 0), batch.num_rows)
            rest = batch.slice(skipped)
            row += batch.num_rows
            if rest.num_rows:
                self._check_lengths(rest, row - rest.num_rows)
                yield ArrowBlock(self.columns, rest, (row, 0))

    def _check_lengths(self, batch: pyarrow.RecordBatch, row: int) -> None:
        for column in self.columns:
            for place, text in enumerate(texts_in(batch, column)):
                if text is not None and len(text) > LONGEST_ROW:
                    raise UsageError(
                        f"row {row + place + 1} of the input has a text longer than "
                        f"{LONGEST_ROW >> 20} MiB: cut it into several"
                    )

    def finished(self, work: Path) -> Path:
        """A Parquet file with the schema of the input, made of the blocks."""
        pa = load_pyarrow()
        import pyarrow.parquet as pq

        whole = work.with_name("joined")
        with self._opened() as file:
            schema = file.schema_arrow
            codec = _codec(file.metadata)
        whole.unlink(missing_ok=True)
        with (
            create_new(whole) as out,
            work.open("rb") as blocks,
            pq.ParquetWriter(out, schema, compression=codec) as writer,
        ):
            size = work.stat().st_size
            for group in _groups(lambda: _next(pa, blocks, size)):
                writer.write_table(pa.Table.from_batches(group, schema))
        return whole

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pa = load_pyarrow()
        import pyarrow.parquet as pq

        try:
            if not self.path.stat().st_size:
                raise UsageError("the input is empty: not even a Parquet file without rows")
            with pq.ParquetFile(self.path) as file:
                for column in self.columns:
                    place_of(file.schema_arrow, column)
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise SottovoceError(
                f"the input is no Parquet file, or a damaged one ({type(error).__name__})"
            ) from None


def _next(pa: Any, blocks: Any, size: int) -> pyarrow.RecordBatch | None:
    """The next block of a work file."""
    if blocks.tell() == size:
        return None
    (batch,) = pa.ipc.open_stream(blocks)
    return batch


def _groups(
    following: Callable[[], pyarrow.RecordBatch | None],
) -> Iterator[list[pyarrow.RecordBatch]]:
    """Blocks gathered into row groups, each of about ``GROUP_ROWS`` rows or ``GROUP_BYTES``."""
    group, rows, size = [], 0, 0
    while (batch := following()) is not None:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _codec(metadata: Any) -> str:
    """The compression of the input's first column, for all columns of the output."""
    if not (metadata.num_row_groups and metadata.num_columns):
        return "snappy"
    name = str(metadata.row_group(0).column(0).compression)
    return CODECS.get(name, name.lower())
