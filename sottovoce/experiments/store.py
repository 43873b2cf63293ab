"""The folder of an experiment: cells that are done, whole or not at all, and one writer at a time.

A cell is done when its file is there: ``variants/KEY.parquet`` of a draw, ``cells/KEY.parquet`` of
all others. It is written under another name, is on disk when it gets its own, and comes after its
run. Facts and seconds are in the file's schema, as JSON.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import SottovoceError
from sottovoce.evaluation.trec import Run, write_run
from sottovoce.experiments.jobs import Baseline, Draw
from sottovoce.experiments.naming import kind_of, parts_of
from sottovoce.experiments.product import Product
from sottovoce.experiments.tables import SCHEMAS, need_arrow
from sottovoce.experiments.versions import versions
from sottovoce.experiments.work import Cell
from sottovoce.files import GROWING, locked, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

VARIANTS, CELLS, RUNS = "variants", "cells", "runs"
LOCK = ".lock"
ABOUT = b"sottovoce"
READABLE = 150
"""Characters of a run's name before its key."""


@dataclass(frozen=True)
class About:
    """What a cell's file says beside its table."""

    kind: str
    """The table that its rows belong to."""
    job: str
    seconds: float
    facts: dict[str, Any]
    run: str | None
    """The name of its run's file."""
    versions: dict[str, str]
    """Of what computed it."""


class Store:
    """The cells of a folder. Reading needs no more; writing is for who has it ``alone``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, cell: Cell) -> Path:
        """Where a cell's table is, once it is done."""
        return self.folder / (VARIANTS if isinstance(cell.job, Draw) else CELLS) / _named(cell)

    def is_done(self, cell: Cell) -> bool:
        """Whether the cell is there and whole; one that a full disk cut off is not."""
        try:
            self.table(cell)
            run = self.about(cell).run
        except SottovoceError:
            return False
        return run is None or (self.folder / RUNS / run).is_file()

    def about(self, cell: Cell) -> About:
        """What the cell's file says beside its table."""
        need_arrow()
        import pyarrow.parquet as pq

        with _readable():
            return About(**json.loads(pq.read_metadata(self.file(cell)).metadata[ABOUT]))

    def table(self, cell: Cell) -> pa.Table:
        """The cell's rows; checked against what was written."""
        need_arrow()
        import pyarrow.parquet as pq

        with (
            _readable(),
            pq.ParquetFile(self.file(cell), page_checksum_verification=True) as file,
        ):
            return file.read().replace_schema_metadata(None)

    def keep(self, cell: Cell, product: Product, seconds: float) -> None:
        """Write a cell: first its run, then its table."""
        if list(product.table.schema.names) != list(SCHEMAS[product.kind]):
            raise SottovoceError(f"a {kind_of(cell.job)} cell gave a table of another shape")
        run = None if product.run is None else self._keep_run(cell, product.run)
        about = About(
            *(product.kind, kind_of(cell.job), round(seconds, 3)),
            *(product.facts, run, versions()),
        )
        write_whole(self.file(cell), _packed(product.table, about))

    def _keep_run(self, cell: Cell, run: Run) -> str:
        name = run_name(cell)
        file = self.folder / RUNS / f"{name}.run"
        write_run(file, run, tag=name)
        return file.name

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and clear away what a killed one left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        busy = (
            "another process is running an experiment in this folder: wait for it, or choose "
            "another folder"
        )
        with locked(self.folder / LOCK, wait=False, busy=busy):
            for name in ("", VARIANTS, CELLS, RUNS):
                part = self.folder / name
                part.mkdir(exist_ok=True)
                for unfinished in part.glob(f".*{GROWING}"):
                    unfinished.unlink()
            yield


def run_name(cell: Cell) -> str:
    """A name that people can read and file systems can bear, with a piece of the key."""
    parts = parts_of(cell.job)
    if isinstance(cell.job, Baseline):
        parts.append("no-privacy")
    readable = ".".join(re.sub(r"[^\w.,=+-]+", "-", part, flags=re.ASCII) for part in parts)
    return f"{readable[:READABLE].lstrip('.')}.{cell.key[:8]}"


def cannot_write(error: OSError) -> SottovoceError:
    """What to do about a disk that does not take it."""
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return SottovoceError(
        f"the experiment's folder cannot be written ({reason}): make room, or choose another one"
    )


def _named(cell: Cell) -> str:
    return f"{cell.key}.parquet"


def _packed(table: pa.Table, about: About) -> bytes:
    import pyarrow.parquet as pq

    data = io.BytesIO()
    said = {ABOUT: json.dumps(vars(about), sort_keys=True).encode()}
    pq.write_table(table.replace_schema_metadata(said), data, write_page_checksum=True)
    return data.getvalue()


@contextmanager
def _readable() -> Iterator[None]:
    """Whatever is wrong with a file, it is not a done cell."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SottovoceError(
            f"the file of a cell is missing or damaged ({type(error).__name__}): run the "
            "experiment again"
        ) from None
