"""Running an experiment: cells that are missing are done, then tables and manifest are written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.assembling import assemble
from sottovoce.experiments.description import Experiment
from sottovoce.experiments.jobs import Job
from sottovoce.experiments.manifest import manifest, now
from sottovoce.experiments.results import MANIFEST, Results
from sottovoce.experiments.store import Store, cannot_write
from sottovoce.experiments.tables import need_arrow
from sottovoce.experiments.work import Answer, Cell, Engine, Maker, Works, attempt, product_of
from sottovoce.files import write_whole
from sottovoce.types import Progress

EXPERIMENT = "experiment.toml"


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    folder: Path
    cells: int
    done_before: int
    seconds: float


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
    """Do what is missing of an experiment in its folder, and write its tables.

    A cell that is done is never done again, and what decides it is in its name: killed at any
    moment and run again, with any number of workers, here or on a Dask cluster, the tables have the
    same bytes. ``file`` is the experiment's own file, of which the folder keeps a copy.
    """
    from sottovoce.experiments.plan import plan
    from sottovoce.experiments.summary import remember, summarise
    from sottovoce.experiments.workshop import Workshop

    need_arrow()
    started, begun = now(), time.perf_counter()
    _check(workers, on, scheduler)
    store = Store(Path(folder).resolve())
    workshop = Workshop(store.folder)
    stages = staged(workshop, plan(experiment))
    engine = _engine(Workshop, workshop, store, workers, on, scheduler)
    copy, content = store.folder / EXPERIMENT, None if file is None else file.read_bytes()
    with _writing(), store.alone():
        if content is not None and not copy.exists():
            write_whole(copy, content)
        done_before = work_through(store, stages, engine, progress)
        cells = [cell for stage in stages for cell in stage]
        assemble(store, cells)
        if content is not None:
            write_whole(copy, content)
        said = manifest(
            experiment,
            [store.about(cell) for cell in cells],
            done_before=done_before,
            started=started,
            finished=now(),
        )
        write_whole(store.folder / MANIFEST, (json.dumps(said, indent=2) + "\n").encode())
    if experiment.privacy.attacked is None:  # A glance at some queries replaces no measurement.
        with suppress(OSError):  # The app then says that nothing was measured.
            remember(summarise(Results(store.folder)))
    return Outcome(store.folder, len(cells), done_before, time.perf_counter() - begun)


def staged(workshop: Works, stages: Iterable[Iterable[Job]]) -> list[list[Cell]]:
    """The cells of a plan. Jobs that differ in paths alone are one cell."""
    seen: set[str] = set()
    found: list[list[Cell]] = []
    for stage in stages:
        found.append([])
        for job in stage:
            cell = Cell(job, workshop.key(job))
            if cell.key not in seen:
                found[-1].append(cell)
                seen.add(cell.key)
    return found


def work_through(
    store: Store,
    stages: Sequence[Sequence[Cell]],
    engine: Callable[[], AbstractContextManager[Engine]],
    progress: Progress | None = None,
) -> int:
    """Do the cells that are missing, stage by stage; how many were there before."""
    missing = [[cell for cell in stage if not store.is_done(cell)] for stage in stages]
    total = sum(map(len, stages))
    done = before = total - sum(map(len, missing))
    if progress is not None:
        progress(done, total)
    if done == total:
        return before
    try:
        with engine() as do:
            for stage in missing:
                for cell, answer in do(stage):
                    store.keep(cell, product_of(cell, answer), answer.seconds)
                    done += 1
                    if progress is not None:
                        progress(done, total)
    except (SottovoceError, OSError) as error:
        failure = cannot_write(error) if isinstance(error, OSError) else error
        if not done:
            raise failure from None
        raise type(failure)(
            f"{failure}. {done} of {total} cells are done and kept: run it again to go on"
        ) from None
    return before


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error) from None


@contextmanager
def here(workshop: Works) -> Iterator[Engine]:
    """An engine that works in this process."""

    def through(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Answer]]:
        for cell in cells:
            yield cell, attempt(workshop, cell.job)

    yield through


def _engine(
    make: Maker, workshop: Works, store: Store, workers: int, on: str, scheduler: Any
) -> Callable[[], AbstractContextManager[Engine]]:
    if on == "dask":
        from sottovoce.experiments.on_dask import on_dask

        return partial(on_dask, make, workshop, store, scheduler, workers)
    if workers > 1:
        from sottovoce.experiments.processes import in_processes

        return partial(in_processes, make, store.folder, workers)
    return partial(here, workshop)


def _check(workers: int, on: str, scheduler: Any) -> None:
    if workers < 1:
        raise UsageError("at least one worker is needed")
    if on not in ("local", "dask"):
        raise UsageError("an experiment runs on 'local' or on 'dask'")
    if scheduler is not None and on != "dask":
        raise UsageError("a scheduler is Dask's: give --on dask with it")
