"""Cells on several processes of this machine, each with a workshop of its own.

Workers compute and write nothing: one that dies leaves no half of a cell behind, and it is known
which cell it had.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from sottovoce.errors import SottovoceError
from sottovoce.experiments.naming import described
from sottovoce.experiments.work import Answer, Cell, Engine, Maker, attempt
from sottovoce.threads import available_cores, set_threads
from sottovoce.workers import end_with_parent

SECONDS_TO_END = 10


@contextmanager
def in_processes(make: Maker, folder: Path, workers: int) -> Iterator[Engine]:
    """An engine of so many processes; they share the cores evenly."""
    context = multiprocessing.get_context("spawn")
    threads = max(1, available_cores() // workers)
    processes, ends = [], []
    try:
        for _ in range(workers):
            here, there = context.Pipe()
            ends.append(here)
            process = context.Process(target=_work, args=(there, make, folder, threads))
            process.start()
            processes.append(process)
            there.close()
        yield lambda cells: _through(ends, cells)
        for end in ends:
            end.send(None)
        for process in processes:
            process.join(SECONDS_TO_END)
    finally:
        for process in processes:
            process.kill()
            process.join()
        for end in ends:
            end.close()


def _through(workers: list[Connection], cells: Iterable[Cell]) -> Iterator[tuple[Cell, Answer]]:
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
                answer: Answer = ready.recv()
            give(ready)
            yield cell, answer


@contextmanager
def _alive(cell: Cell) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise SottovoceError(
            f"a worker process died in {described(cell.job)}, perhaps for want of memory: use "
            "fewer workers"
        ) from None


def _work(connection: Connection, make: Maker, folder: Path, threads: int) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    set_threads(threads)
    workshop = make(folder)
    with suppress(EOFError, OSError):  # The parent is gone.
        while (job := connection.recv()) is not None:
            connection.send(attempt(workshop, job))
