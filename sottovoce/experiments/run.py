"""Running an experiment: cells that are missing are run, then tables and manifest are written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sottovoce.devices import Device
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.cells.draw import sent
from sottovoce.experiments.cells.runner import CellRunner
from sottovoce.experiments.executors import Executor, in_processes, in_this_process, on_dask
from sottovoce.experiments.grid import Job, plan
from sottovoce.experiments.naming import without_paths
from sottovoce.experiments.results import Results
from sottovoce.experiments.schema.experiment import Experiment
from sottovoce.experiments.store import EXPERIMENT, MANIFEST, About, Cell, Store, writing
from sottovoce.experiments.summary import remember, summarize
from sottovoce.experiments.tables import need_arrow
from sottovoce.files import write_whole
from sottovoce.types import Progress

SEEDED = (
    "All of this was drawn from fixed seeds, so that it can be repeated: nothing here protects "
    "anybody. For real texts leave the seed out."
)


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    folder: Path
    cells: int
    done_before: int
    seconds: float
    devices: tuple[Device, ...]
    """What computed the cells, whichever run did them."""


def run_experiment(
    experiment: Experiment,
    folder: Path | str,
    *,
    file: Path | None = None,
    workers: int = 1,
    on: Literal["local", "dask"] = "local",
    scheduler: Any = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run what is missing of an experiment in its folder, and write its tables.

    A cell that is done is never run again, and what decides it is in its name: killed at any
    moment and run again, with any number of workers, here or on a Dask cluster, the tables have the
    same bytes. ``file`` is the experiment's own file, of which the folder keeps a copy.
    """
    need_arrow()
    started = datetime.now(UTC)
    begun = time.perf_counter()
    if workers < 1:
        raise UsageError("at least one worker is needed")
    if on not in ("local", "dask"):
        raise UsageError("an experiment runs on 'local' or on 'dask'")
    if scheduler is not None and on != "dask":
        raise UsageError("a scheduler is Dask's: give --on dask with it")
    store = Store(Path(folder).resolve())
    runner = CellRunner(store.folder)
    stages = staged(runner, plan(experiment))
    cells = [cell for stage in stages for cell in stage]
    executor = _executor(runner, store, workers, on, scheduler)
    copy, content = store.folder / EXPERIMENT, None if file is None else file.read_bytes()
    with writing(), store.alone():
        if content is not None and not copy.exists():
            write_whole(copy, content)
        done_before = work_through(store, stages, executor, progress)
        store.assemble(cells, sent)
        if content is not None:
            write_whole(copy, content)
        about = [store.about(cell) for cell in cells]
        described = manifest(experiment, about, done_before, started, datetime.now(UTC))
        write_whole(store.folder / MANIFEST, (json.dumps(described, indent=2) + "\n").encode())
    if experiment.privacy.attacked is None:  # A glance at some queries replaces no measurement.
        with suppress(OSError):  # The app then says that nothing was measured.
            remember(summarize(Results(store.folder)))
    devices = tuple(_facts(about).get("device", ()))
    return Outcome(store.folder, len(cells), done_before, time.perf_counter() - begun, devices)


def finished_jobs(experiment: Experiment, folder: Path) -> set[Job]:
    """The jobs of an experiment that are done in a folder; nothing is written."""
    if not (folder / EXPERIMENT).is_file():
        return set()
    store = Store(folder.resolve())
    stages = staged(CellRunner(store.folder), plan(experiment))
    return {cell.job for stage in stages for cell in stage if store.is_done(cell)}


def staged(runner: CellRunner, stages: Iterable[Iterable[Job]]) -> list[list[Cell]]:
    """The cells of a plan. Jobs that differ in paths alone are one cell."""
    seen: set[str] = set()
    cells: list[list[Cell]] = []
    for stage in stages:
        cells.append([])
        for job in stage:
            cell = Cell(job, runner.key(job))
            if cell.key not in seen:
                cells[-1].append(cell)
                seen.add(cell.key)
    return cells


def work_through(
    store: Store,
    stages: Sequence[Sequence[Cell]],
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Progress | None = None,
) -> int:
    """Run the cells that are missing, stage by stage; how many were there before."""
    missing = [[cell for cell in stage if not store.is_done(cell)] for stage in stages]
    total = sum(map(len, stages))
    done = before = total - sum(map(len, missing))
    if progress is not None:
        progress(done, total)
    if done == total:
        return before
    try:
        with executor() as execute:
            for stage in missing:
                for cell, attempt in execute(stage):
                    store.keep(cell, attempt.checked(cell), attempt.seconds)
                    done += 1
                    if progress is not None:
                        progress(done, total)
    except SottovoceError as error:
        if not done:
            raise
        kept = f"{done} of {total} cells are done and kept: run it again to go on"
        raise error.with_message(f"{error}. {kept}") from None
    return before


def _executor(
    runner: CellRunner, store: Store, workers: int, on: str, scheduler: Any
) -> Callable[[], AbstractContextManager[Executor]]:
    if on == "dask":
        return partial(on_dask, CellRunner, runner, store, scheduler, workers)
    if workers > 1:
        return partial(in_processes, CellRunner, store.folder, workers)
    return partial(in_this_process, runner)


# The manifest: what a finished experiment was made of. No machine's paths.


def manifest(
    experiment: Experiment,
    cells: Sequence[About],
    done_before: int,
    started: datetime,
    finished: datetime,
) -> dict[str, Any]:
    """All that the report says of where its numbers come from.

    ``seconds`` are those that the cells took, whichever run did them; ``wall_seconds`` are those of
    the run that did the last of them.
    """
    by_kind: dict[str, float] = {}
    for cell in cells:
        by_kind[cell.job] = by_kind.get(cell.job, 0.0) + cell.seconds
    prose = {"description": experiment.description, "notes": list(experiment.notes)}
    return {
        "name": experiment.name,
        **prose,
        "seeds": experiment.seeds,
        "seeded": True,
        "warning": SEEDED,
        "versions": _versions(cells),
        "facts": without_paths(_facts(cells)),
        "cells": len(cells),
        "done_before": done_before,
        "seconds": round(sum(by_kind.values()), 3),
        "seconds_by_kind": {kind: round(seconds, 3) for kind, seconds in by_kind.items()},
        "wall_seconds": round((finished - started).total_seconds(), 3),
        "started": started.isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "runs": [cell.run for cell in cells if cell.run is not None],
        "experiment": {**without_paths(experiment.to_dict()), **prose},
    }


def _versions(cells: Iterable[About]) -> dict[str, str]:
    """The versions of what computed the cells: several, where some were done before an upgrade."""
    versions: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, version in cell.versions.items():
            versions.setdefault(name, {})[version] = None
    return {name: ", ".join(numbers) for name, numbers in versions.items()}


def _facts(cells: Iterable[About]) -> dict[str, list[Any]]:
    """The distinct values of each fact, in the order in which cells gave them."""
    distinct: dict[str, dict[str, Any]] = {}
    encoders: dict[str, str] = {}
    for cell in cells:
        encoders |= cell.facts.get("encoders", {})
        for name, value in cell.facts.items():
            distinct.setdefault(name, {}).setdefault(json.dumps(value, sort_keys=True), value)
    facts = {name: list(values.values()) for name, values in distinct.items()}
    return {**facts, "encoders": [encoders]} if encoders else facts
