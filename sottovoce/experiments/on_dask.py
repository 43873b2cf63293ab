"""Cells on a Dask cluster: workers compute, this process writes.

Workers need not share the folder. The variants that a cell starts from travel with its job, into a
folder of the worker's own. Collections, logs and other files must be on every worker: it computes
the cell's key itself, so that other content is noticed. A cell whose worker dies is done again.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.errors import SottovoceError
from sottovoce.experiments.jobs import Draw, Leak, Search
from sottovoce.experiments.naming import described
from sottovoce.experiments.store import Store
from sottovoce.experiments.work import Answer, Cell, Engine, Maker, Works, attempt
from sottovoce.integrations.dask import SECONDS_TO_CONNECT, by_kind, dask_client, load_distributed
from sottovoce.threads import set_threads

EVERYWHERE = "the files that an experiment names must be on every worker, at the same place"
CELLS_PER_WORKER = 2

_one_at_a_time = threading.Lock()
_bench: _Bench | None = None


@contextmanager
def on_dask(
    make: Maker, workshop: Works, store: Store, scheduler: Any, workers: int
) -> Iterator[Engine]:
    """An engine: a cluster's address or client, or a local cluster of so many workers."""
    run = secrets.token_hex(8)

    def task(cell: Cell) -> _Task:
        variants = None
        if isinstance(cell.job, Search | Leak):
            draw = Draw(cell.job.source)
            drawn = Cell(draw, workshop.key(draw))
            variants = drawn, store.file(drawn).read_bytes()
        return _Task(run, make, cell, variants)

    with dask_client(scheduler, workers) as client:
        _check_versions(client)
        yield lambda cells: _through(client, map(task, cells))


def _through(client: Any, tasks: Iterator[_Task]) -> Iterator[tuple[Cell, Answer]]:
    as_completed = load_distributed().as_completed
    begun: dict[Any, Cell] = {}

    def begin(task: _Task) -> Any:
        with by_kind():
            future = client.submit(_do, task, key=f"cell-{task.run}-{task.cell.key}")
        begun[future] = task.cell
        return future

    try:
        window = CELLS_PER_WORKER * max(1, len(client.nthreads()))
        first = [begin(task) for task in islice(tasks, window)]
        ready = as_completed(first, loop=client.loop)
        for future in ready:
            cell = begun.pop(future)
            with _where(cell), by_kind():
                answer: Answer = future.result()
            if (following := next(tasks, None)) is not None:
                ready.add(begin(following))
            yield cell, answer
    finally:
        client.cancel(list(begun))


def _check_versions(client: Any) -> None:
    """Before any cell is sent. The scheduler unpacks tasks, too, and needs the package."""
    with by_kind():
        client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
        found = {client.run_on_scheduler(_version), *client.run(_version).values()}
    if found != {__version__}:
        raise SottovoceError(
            f"the cluster has another sottovoce than this machine ({__version__}): install the "
            "same version everywhere"
        )


@contextmanager
def _where(cell: Cell) -> Iterator[None]:
    try:
        yield
    except SottovoceError as error:
        raise type(error)(f"{described(cell.job)}: {error}") from None


def _version() -> str:
    return __version__


@dataclass(frozen=True, repr=False)
class _Task:
    """A cell on its way. ``run`` tells one run of an experiment from the next."""

    run: str
    make: Maker
    cell: Cell
    variants: tuple[Cell, bytes] | None
    """The draw that the cell starts from, and its file."""


class _Bench:
    """The workshop that a worker process has for one run."""

    def __init__(self, run: str, make: Maker, place: str) -> None:
        self.run = run
        self._folder = tempfile.TemporaryDirectory(
            prefix="sottovoce-", dir=place, ignore_cleanup_errors=True
        )
        self._store = Store(Path(self._folder.name))
        self._workshop = make(self._store.folder)

    def close(self) -> None:
        """Leave nothing behind."""
        self._folder.cleanup()

    def do(self, task: _Task) -> Answer:
        """The answer to a task."""
        try:
            same = self._workshop.key(task.cell.job) == task.cell.key
        except SottovoceError as error:
            return Answer(
                failed=type(error).__name__, message=f"{error}. On a worker: {EVERYWHERE}"
            )
        if not same:
            reason = f"a worker has another content of some file, space or encoder: {EVERYWHERE}"
            return Answer(failed="SottovoceError", message=reason)
        if task.variants is not None:
            drawn, content = task.variants
            file = self._store.file(drawn)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        return attempt(self._workshop, task.cell.job)


def _do(task: _Task) -> Answer:
    """On a worker: one cell at a time, with as many threads as Dask lets the worker have."""
    global _bench
    with _one_at_a_time:
        if _bench is None or _bench.run != task.run:
            if _bench is not None:
                _bench.close()
            worker = load_distributed().get_worker()
            set_threads(worker.state.nthreads)
            _bench = _Bench(task.run, task.make, worker.local_directory)
        return _bench.do(task)
