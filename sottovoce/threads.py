"""How many threads the kernels use, and a pool that keeps BLAS from adding its own.

Splitting the work over our threads, each with a single-threaded BLAS, also runs the parts
beside the matrix product in parallel: with BLAS' own threads those would wait.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import local
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from sottovoce.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")

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
        return list(_pool(threads()).map(work, items))


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


@lru_cache(maxsize=1)
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="sottovoce", initializer=_enter_pool)


def _enter_pool() -> None:
    _here.in_pool = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
