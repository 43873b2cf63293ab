"""How many threads the kernels use, and a pool that keeps BLAS from adding its own.

Splitting the work over our threads, each with a single-threaded BLAS, also runs the parts
beside the matrix product in parallel: with BLAS' own threads those would wait.

The pool is made of queues that are C to the bottom. An executor of the standard library has locks
of Python, one of which Ctrl-C can leave locked: then the next search would wait for ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from queue import SimpleQueue
from threading import Thread, local
from typing import TypeAlias, TypeVar

from threadpoolctl import ThreadpoolController

from sottovoce.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")
Tasks: TypeAlias = SimpleQueue[Callable[[], None] | None]
"""What the threads of a pool shall do; None ends one of them."""

_thread_count: int | None = None
_here = local()
"""What is so in this thread alone."""


def available_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; ``None`` means every core."""
    global _thread_count
    if count is not None and count < 1:
        raise UsageError(f"the number of threads must be at least 1, got {count}")
    _thread_count = count


def threads() -> int:
    """The number of threads in use; inside the pool one, since its work is not split again."""
    if getattr(_here, "in_pool", False):
        return 1
    return _thread_count or available_cores()


def parallel_map(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[work(item) for item in items]`` on the pool, with BLAS held to one thread each."""
    with single_threaded_blas():
        if len(items) == 1 or threads() == 1:
            return [work(item) for item in items]
        return _pool(threads()).map(work, items)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread in this process for a while."""
    with _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller(with_scipy: bool) -> ThreadpoolController:
    """It knows the libraries loaded when it is made, and scipy brings a BLAS of its own."""
    del with_scipy  # The key that it is kept under.
    return ThreadpoolController()


class _Pool:
    """Threads that wait for work, as long as somebody has the pool."""

    def __init__(self, size: int) -> None:
        self._size, self._tasks = size, Tasks()
        for number in range(size):
            name = f"sottovoce_{number}"
            Thread(target=_serve, args=(self._tasks,), name=name, daemon=True).start()

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """All results in order, or the first error."""
        answers: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
        given_up = False

        def task(number: int, item: Item) -> None:
            result, error = None, None
            if not given_up:
                try:
                    result = work(item)
                except BaseException as raised:
                    error = raised
            answers.put((number, result, error))

        try:
            for number, item in enumerate(items):
                self._tasks.put(partial(task, number, item))
            by_number = sorted((answers.get() for _ in items), key=lambda answer: answer[0])
        finally:
            given_up = True
        for _, _, error in by_number:
            if error is not None:
                raise error
        return [result for _, result, _ in by_number]  # type: ignore[misc]

    def __del__(self) -> None:
        for _ in range(self._size):
            self._tasks.put(None)


def _serve(tasks: Tasks) -> None:
    _here.in_pool = True
    while (task := tasks.get()) is not None:
        task()
        del task  # And with it what it was about: the next one may be long in coming.


@lru_cache(maxsize=1)
def _pool(size: int) -> _Pool:
    return _Pool(size)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
