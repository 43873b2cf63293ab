"""Executors of cells: in this process, on several processes, on a Dask cluster.

An executor gives each cell back with its result, or with its error as data. Workers compute and
write nothing, so that one that dies leaves no half of a cell behind. An unexpected error is told by
its kind alone: its message could hold a query.
"""

from __future__ import annotations

import multiprocessing
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias

from sottovoce import __version__
from sottovoce.devices import Choice, device_choice, set_device
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.cells.runner import CellRunner
from sottovoce.experiments.grid import Draw, Job, Leak, Search, described
from sottovoce.experiments.store import Cell, CellResult, Store
from sottovoce.integrations.dask import (
    SECONDS_TO_CONNECT,
    by_kind,
    dask_client,
    load_distributed,
    patiently,
    result_of,
)
from sottovoce.threads import available_cores, set_threads
from sottovoce.workers import end_with_parent

SECONDS_TO_END = 10
CELLS_PER_WORKER = 2
"""Cells on their way to a worker of a cluster."""
EVERYWHERE = "the files that an experiment names must be on every worker, at the same place"


RunnerFactory: TypeAlias = Callable[[Path], CellRunner]
"""Makes the runner for a folder, in each process; picklable."""


@dataclass(frozen=True)
class Attempt:
    """A result and the seconds it took, or what went wrong instead."""

    result: CellResult | None = None
    seconds: float = 0.0
    problem: str = ""
    is_usage: bool = False
    """Whether the call was wrong."""

    def checked(self, cell: Cell) -> CellResult:
        """The result; or raises what went wrong, and where."""
        if self.result is None:
            kind = UsageError if self.is_usage else SottovoceError
            raise kind(f"{described(cell.job)}: {self.problem}")
        return self.result


Executor: TypeAlias = Callable[[Iterable[Cell]], Iterator[tuple[Cell, Attempt]]]
"""Runs cells, and gives each with its attempt when it is there, in any order."""


def attempt(runner: CellRunner, job: Job) -> Attempt:
    """Run a job; never raises."""
    begun = time.perf_counter()
    try:
        return Attempt(runner.run(job), time.perf_counter() - begun)
    except SottovoceError as error:
        return Attempt(problem=str(error), is_usage=isinstance(error, UsageError))
    except Exception as error:
        return Attempt(problem=f"it failed ({type(error).__name__})")


@contextmanager
def in_this_process(runner: CellRunner) -> Iterator[Executor]:
    """Cells one after the other."""
    yield lambda cells: ((cell, attempt(runner, cell.job)) for cell in cells)


# On several processes of this machine


@contextmanager
def in_processes(make_runner: RunnerFactory, folder: Path, workers: int) -> Iterator[Executor]:
    """Cells on so many processes, which share the cores evenly, each with a runner of its own."""
    context = multiprocessing.get_context("spawn")
    threads = max(1, available_cores() // workers)
    processes, connections = [], []
    try:
        for _ in range(workers):
            connection, of_worker = context.Pipe()
            connections.append(connection)
            arguments = (of_worker, make_runner, folder, threads, device_choice())
            process = context.Process(target=_serve, args=arguments)
            processes.append(process)  # Before it starts: Ctrl-C may come right after.
            with _blocked_interrupts():
                process.start()
            of_worker.close()
        yield lambda cells: _through_pipes(connections, cells)
        for connection in connections:
            connection.send(None)
        for process in processes:
            process.join(SECONDS_TO_END)
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()
        for connection in connections:
            connection.close()


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """What is started here never gets Ctrl-C, not even while it imports: the parent ends it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # If it were started later, that would lift the block.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _through_pipes(
    workers: list[Connection], cells: Iterable[Cell]
) -> Iterator[tuple[Cell, Attempt]]:
    """A cell at a time for each worker, so that a worker's death tells the cell."""
    rest, busy = iter(cells), dict[Connection, Cell]()

    def give(worker: Connection) -> None:
        if (cell := next(rest, None)) is not None:
            busy[worker] = cell
            with _alive(cell):
                worker.send(cell.job)

    for worker in workers:
        give(worker)
    while busy:
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)  # noqa: S101 - nothing else is waited for
            cell = busy.pop(ready)
            with _alive(cell):
                finished: Attempt = ready.recv()
            give(ready)
            yield cell, finished


@contextmanager
def _alive(cell: Cell) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise SottovoceError(
            f"a worker process died in {described(cell.job)}, perhaps for want of memory: use "
            "fewer workers"
        ) from None


def _serve(
    connection: Connection, make_runner: RunnerFactory, folder: Path, threads: int, device: Choice
) -> None:
    """In a worker process: run what comes until the parent has nothing more."""
    # Ctrl-C reaches all processes of a terminal, where it is not blocked; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    set_threads(threads)
    set_device(device)
    runner = make_runner(folder)
    with suppress(EOFError, OSError):  # The parent is gone.
        while (job := connection.recv()) is not None:
            connection.send(attempt(runner, job))


# On a Dask cluster. Workers need not share the folder: the variants that a cell starts from travel
# with its job, into a folder of the worker's own. Collections, logs and other files must be on
# every worker; it computes the cell's key itself, so that other content is noticed. A cell whose
# worker dies is run again.


@dataclass(frozen=True, repr=False)
class _Task:
    """A cell on its way."""

    run: str
    """Tells one run of an experiment from the next."""
    make_runner: RunnerFactory
    cell: Cell
    variants: tuple[Cell, bytes] | None
    """The draw that the cell starts from, and its file."""
    device: Choice


@contextmanager
def on_dask(
    make_runner: RunnerFactory, runner: CellRunner, store: Store, scheduler: Any, workers: int
) -> Iterator[Executor]:
    """Cells on a cluster, given by its address or client, or on a local one of so many workers."""
    run = secrets.token_hex(8)

    def task(cell: Cell) -> _Task:
        variants = None
        if isinstance(cell.job, Search | Leak):
            draw = Draw(cell.job.source)
            drawn = Cell(draw, runner.key(draw))
            variants = drawn, store.content(drawn)
        return _Task(run, make_runner, cell, variants, device_choice())

    with dask_client(scheduler, workers) as client:
        _check_versions(client)
        yield lambda cells: _through_dask(client, map(task, cells))


def _through_dask(client: Any, tasks: Iterator[_Task]) -> Iterator[tuple[Cell, Attempt]]:
    begun: dict[Any, Cell] = {}

    def begin(task: _Task) -> None:
        future = client.submit(_run_task, task, key=f"cell-{task.run}-{task.cell.key}")
        begun[future] = task.cell

    try:
        with by_kind():
            window = CELLS_PER_WORKER * max(1, len(client.nthreads()))
            for task in islice(tasks, window):
                begin(task)
            while begun:
                future = patiently(client, lambda seconds: _first_done(client, [*begun], seconds))
                cell = begun[future]
                finished = _fetched(client, future)
                del begun[future]
                if (following := next(tasks, None)) is not None:
                    begin(following)
                yield cell, finished
    finally:
        client.cancel(list(begun))


def _first_done(client: Any, futures: list[Any], seconds: float) -> Any:
    wait_for = load_distributed().wait
    with client.as_current():  # Where there is no client for all, it asks the current one.
        done = wait_for(futures, timeout=seconds, return_when="FIRST_COMPLETED").done
    return next(iter(done))


def _fetched(client: Any, future: Any) -> Attempt:
    try:
        with by_kind():
            finished: Attempt = patiently(client, partial(result_of, future))
    except SottovoceError as error:
        return Attempt(problem=str(error))
    return finished


def _check_versions(client: Any) -> None:
    """Before any cell is sent. The scheduler unpacks tasks, too, and needs the package."""
    with by_kind():
        client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
        versions = {client.run_on_scheduler(_version), *client.run(_version).values()}
    if versions != {__version__}:
        raise SottovoceError(
            f"the cluster has another sottovoce than this machine ({__version__}): install the "
            "same version everywhere"
        )


def _version() -> str:
    return __version__


class _WorkerState:
    """What a worker process of a cluster has for one run: a folder, and a runner."""

    def __init__(self, run: str, make_runner: RunnerFactory, place: str) -> None:
        self.run = run
        self._folder = tempfile.TemporaryDirectory(
            prefix="sottovoce-", dir=place, ignore_cleanup_errors=True
        )
        self._store = Store(Path(self._folder.name))
        self._runner = make_runner(self._store.folder)

    def close(self) -> None:
        self._folder.cleanup()

    def attempt(self, task: _Task) -> Attempt:
        """Run a task, if this machine has the same files as the one that sent it."""
        try:
            same = self._runner.key(task.cell.job) == task.cell.key
        except SottovoceError as error:
            usage = isinstance(error, UsageError)
            return Attempt(problem=f"{error}. On a worker: {EVERYWHERE}", is_usage=usage)
        if not same:
            content = "a worker has another content of some file, space or encoder"
            return Attempt(problem=f"{content}: {EVERYWHERE}")
        if task.variants is not None:
            drawn, content_of_file = task.variants
            file = self._store.file(drawn)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content_of_file)
        try:
            set_device(task.device)
        except UsageError as error:
            return Attempt(problem=f"on a worker: {error}", is_usage=True)
        return attempt(self._runner, task.cell.job)


_one_at_a_time = threading.Lock()
_state: _WorkerState | None = None


def _run_task(task: _Task) -> Attempt:
    """On a worker: one cell at a time, with as many threads as Dask lets the worker have."""
    global _state
    with _one_at_a_time:
        if _state is None or _state.run != task.run:
            if _state is not None:
                _state.close()
            worker = load_distributed().get_worker()
            set_threads(worker.state.nthreads)
            _state = _WorkerState(task.run, task.make_runner, worker.local_directory)
        return _state.attempt(task)
