"""The tables of a finished experiment, out of its cells: the same bytes however it was run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.experiments.results import MANIFEST
from sottovoce.experiments.store import Store, cannot_write
from sottovoce.experiments.tables import FILES, make_table, need_arrow
from sottovoce.experiments.work import Cell
from sottovoce.files import beside, move_file, settle_file

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 1 << 17
"""Rows of a row group, at least; they are all that is in memory."""


def assemble(store: Store, cells: Iterable[Cell]) -> None:
    """Write all tables, cells in this order. Old ones are replaced when the new ones are whole.

    The manifest goes first: tables without one are no finished experiment.
    """
    by_table: dict[str, list[Cell]] = {kind: [] for kind in FILES}
    for cell in cells:
        kind = store.about(cell).kind
        if kind in by_table:
            by_table[kind].append(cell)
    growing: dict[Path, Path] = {}
    try:
        for kind, own in by_table.items():
            for ending, write in (("parquet", _write_parquet), ("csv", _write_csv)):
                file = store.folder / f"{FILES[kind]}.{ending}"
                growing[file] = beside(file)
                write(growing[file], _groups(kind, map(store.table, own)))
        for file in growing.values():
            settle_file(file)
    except BaseException as error:
        for file in growing.values():
            file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(error) from None
        raise
    (store.folder / MANIFEST).unlink(missing_ok=True)
    for whole, file in growing.items():
        move_file(file, whole)


def _write_parquet(file: Path, groups: Iterator[pa.Table]) -> None:
    import pyarrow.parquet as pq

    first = next(groups)
    with pq.ParquetWriter(file, first.schema) as out:
        for group in chain([first], groups):
            out.write_table(group)


def _write_csv(file: Path, groups: Iterator[pa.Table]) -> None:
    """Numbers as Python prints them: read again, they are the same."""
    first = next(groups)
    with file.open("w", encoding="utf-8", newline="") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(first.schema.names)
        for group in chain([first], groups):
            out.writerows(zip(*(column.to_pylist() for column in group.columns), strict=True))


def _groups(kind: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables put together to groups of many rows; one without rows where there is none."""
    arrow = need_arrow()
    waiting = [make_table(kind, [])]
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= ROWS_AT_A_TIME:
            yield arrow.concat_tables(waiting).combine_chunks()
            waiting = waiting[:1]
    yield arrow.concat_tables(waiting).combine_chunks()
