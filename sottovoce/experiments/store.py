"""The folder of an experiment: cells that are done, whole or not at all, and one writer at a time.

A cell is done when its file is there: ``variants/KEY.parquet`` of a draw, ``cells/KEY.parquet`` of
all others. It is written under another name, is on disk when it gets its own, and comes after its
run. Facts and seconds are in the file's schema, as JSON. An experiment goes on in its own folder,
and never writes into another's.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation.trec import Run, write_run
from sottovoce.experiments.grid import Baseline, Draw, Job, Source, kind_of, parts_of
from sottovoce.experiments.tables import (
    ALWAYS,
    FILES,
    SCHEMAS,
    need_arrow,
    write_csv,
    write_parquet,
)
from sottovoce.files import GROWING, beside, locked, move_file, parse_json, settle_file, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

VARIANTS, CELLS, RUNS = "variants", "cells", "runs"
LOCK = ".lock"
EXPERIMENT, MANIFEST = "experiment.toml", "manifest.json"
BEGUN = {LOCK, VARIANTS, CELLS, RUNS}
"""What a run that was killed at its very beginning leaves."""
ABOUT = b"sottovoce"
READABLE = 150
"""Characters of a run's name before its key."""
PACKAGES = (
    *("sottovoce", "numpy", "scipy", "pyarrow", "ir_measures", "ir_datasets", "onnxruntime"),
    *("scikit-learn", "nltk", "torch", "wordllama"),
)


class Cell(NamedTuple):
    """A job, and the hash of all that decides its result."""

    job: Job
    key: str


@dataclass(frozen=True)
class CellResult:
    """The result of a cell: rows of one of the tables, perhaps a TREC run, and facts."""

    kind: str
    """The table that the rows belong to: a key of ``SCHEMAS``."""
    table: pa.Table
    run: Run | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """What the manifest says of it: hashes and versions of what was used, what did not apply."""


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
        part = VARIANTS if isinstance(cell.job, Draw) else CELLS
        return self.folder / part / f"{cell.key}.parquet"

    def is_done(self, cell: Cell) -> bool:
        """Whether the cell is there and whole; one that a full disk cut off is not."""
        try:
            self.table(cell)
            run = self.about(cell).run
        except SottovoceError:
            return False
        return run is None or (self.folder / RUNS / run).is_file()

    def about(self, cell: Cell) -> About:
        need_arrow()
        import pyarrow.parquet as pq

        with _readable():
            return About(**parse_json(pq.read_metadata(self.file(cell)).metadata[ABOUT]))

    def table(self, cell: Cell) -> pa.Table:
        """The cell's rows; checked against what was written."""
        need_arrow()
        import pyarrow.parquet as pq

        with _readable(), pq.ParquetFile(self.file(cell), page_checksum_verification=True) as file:
            return file.read().replace_schema_metadata(None)

    def content(self, cell: Cell) -> bytes:
        with _readable():
            return self.file(cell).read_bytes()

    def keep(self, cell: Cell, result: CellResult, seconds: float) -> None:
        """Write a cell: first its run, then its table."""
        if list(result.table.schema.names) != list(SCHEMAS[result.kind]):
            raise SottovoceError(f"a {kind_of(cell.job)} cell gave a table of another shape")
        run_file = None
        if result.run is not None:
            name = run_name(cell)
            run_file = f"{name}.run"
            write_run(self.folder / RUNS / run_file, result.run, tag=name)
        about = About(
            kind=result.kind,
            job=kind_of(cell.job),
            seconds=round(seconds, 3),
            facts=result.facts,
            run=run_file,
            versions=versions(),
        )
        with writing():
            write_whole(self.file(cell), _packed(result.table, about))

    def assemble(
        self, cells: Iterable[Cell], sent: Callable[[Source, pa.Table], pa.Table] | None = None
    ) -> None:
        """Write the tables of all cells, in this order: the same bytes however they were computed.

        ``sent`` makes rows of the table of queries out of the variants of a draw. Old tables are
        replaced when the new ones are whole. The manifest goes first: tables without one are no
        finished experiment.
        """
        by_table: dict[str, list[Callable[[], pa.Table]]] = {kind: [] for kind in ALWAYS}
        for cell in cells:
            if (kind := self.about(cell).kind) in FILES:
                by_table.setdefault(kind, []).append(partial(self.table, cell))
            elif sent is not None and isinstance(cell.job, Draw):
                by_table["queries"].append(partial(self._sent, cell, cell.job.source, sent))
        growing: dict[Path, Path] = {}
        with writing():
            try:
                for kind, parts in by_table.items():
                    for ending, write in (("parquet", write_parquet), ("csv", write_csv)):
                        file = self.folder / f"{FILES[kind]}.{ending}"
                        growing[file] = beside(file)
                        write(growing[file], kind, (part() for part in parts))
                for file in growing.values():
                    settle_file(file)
            except BaseException:
                for file in growing.values():
                    file.unlink(missing_ok=True)
                raise
            (self.folder / MANIFEST).unlink(missing_ok=True)
            for whole, file in growing.items():
                move_file(file, whole)

    def _sent(
        self, cell: Cell, source: Source, sent: Callable[[Source, pa.Table], pa.Table]
    ) -> pa.Table:
        return sent(source, self.table(cell))

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


def check_folder(folder: Path, name: str) -> None:
    """Refuse a folder that holds another experiment than the one of this name, or anything else."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError("--out names a file: give a folder, which is made if it is not there")
    if (folder / EXPERIMENT).is_file():
        kept = _name_of(folder / EXPERIMENT)
        if kept != name:
            other = f"another experiment, '{kept}'" if kept else "an experiment without a name"
            raise UsageError(
                f"the folder holds {other}: choose another folder for '{name}', or give the file "
                "that name to go on with it"
            )
    elif folder.is_dir() and any(_is_foreign(entry.name) for entry in folder.iterdir()):
        raise UsageError(
            "the folder holds files, but no experiment: choose an empty or a new one, nothing of "
            "yours is overwritten"
        )


def _is_foreign(name: str) -> bool:
    return name not in BEGUN and not (name.startswith(".") and name.endswith(GROWING))


def _name_of(file: Path) -> str | None:
    """The name in an experiment's file."""
    try:
        name = tomllib.loads(file.read_text("utf-8-sig")).get("name")
    except (OSError, ValueError, RecursionError):
        return None
    return name.strip() if isinstance(name, str) else None


@cache
def versions() -> dict[str, str]:
    """The versions of Python and of what computes; packages that are not here are left out."""
    numbers = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            numbers[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return numbers


def _packed(table: pa.Table, about: About) -> bytes:
    import pyarrow.parquet as pq

    data = io.BytesIO()
    described = {ABOUT: json.dumps(vars(about), sort_keys=True).encode()}
    pq.write_table(table.replace_schema_metadata(described), data, write_page_checksum=True)
    return data.getvalue()


@contextmanager
def writing() -> Iterator[None]:
    """Say what to do about a disk that does not take it."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SottovoceError(
            f"the experiment's folder cannot be written ({reason}): make room, or choose another "
            "one"
        ) from None


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
