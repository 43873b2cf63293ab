"""Tasks on several processes: results in order, a bounded number of tasks in flight."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

from sottovoce.devices import Choice, device_choice, set_device
from sottovoce.errors import SottovoceError
from sottovoce.threads import available_cores, set_threads

State = TypeVar("State")
Task = TypeVar("Task")
Result = TypeVar("Result")

_state: Any = None
"""In a worker process: what all its tasks share."""


def ordered_map(
    work: Callable[[State, Task], Result], state: State, tasks: Iterable[Task], workers: int
) -> Iterator[tuple[Task, Result]]:
    """Each task with ``work(state, task)``, in order, computed on ``workers`` processes.

    ``work`` is a function of a module, ``state`` travels to each process once, and the cores are
    shared out evenly. At most two tasks for each worker are waiting, so ``tasks`` may be endless.
    """
    context = multiprocessing.get_context("spawn")
    start = (state, max(1, available_cores() // workers), device_choice())
    waiting: deque[tuple[Task, Future[Result]]] = deque()
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=start) as pool:
        try:
            for task in tasks:
                waiting.append((task, pool.submit(_run, work, task)))
                if len(waiting) > 2 * workers:
                    yield _finished(waiting)
            while waiting:
                yield _finished(waiting)
        except BrokenProcessPool:
            raise SottovoceError(
                "a worker process died, perhaps for want of memory; what was not yet written is "
                "not released. Run again with fewer workers"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _finished(waiting: deque[tuple[Task, Future[Result]]]) -> tuple[Task, Result]:
    """The oldest task, once it is done."""
    task, future = waiting.popleft()
    return task, future.result()


def _start(state: Any, threads: int, device: Choice) -> None:
    global _state
    set_threads(threads)
    set_device(device)
    end_with_parent()
    _state = state


def _run(work: Callable[[Any, Task], Result], task: Task) -> Result:
    return work(_state, task)


def end_with_parent() -> None:
    """In a worker process: do not outlive a parent that was killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
