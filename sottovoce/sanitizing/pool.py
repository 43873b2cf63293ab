"""Blocks through the sanitizer, here or on several processes, in order and a few at a time."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeAlias, TypeVar

from sottovoce.errors import SottovoceError
from sottovoce.sanitizing.counts import Counts
from sottovoce.sanitizing.sanitizer import Sanitizer
from sottovoce.sanitizing.sources import Block, Texts
from sottovoce.threads import available_cores, set_threads
from sottovoce.workers import end_with_parent

Done: TypeAlias = tuple[Texts, Counts]
Step: TypeAlias = tuple[Block, Texts, Counts]
Engine: TypeAlias = Callable[[Sanitizer, Iterable[Block], int], Iterator[Step]]
"""Takes blocks through a sanitizer, from a row number on, and gives them back in order."""

Item = TypeVar("Item")

_sanitizer: Sanitizer | None = None


def sanitize_blocks(
    sanitizer: Sanitizer, blocks: Iterable[Block], first: int, workers: int
) -> Iterator[Step]:
    """Each block with its new texts; ``first`` is the number of the first row."""
    if workers > 1:
        yield from _in_processes(sanitizer, blocks, first, workers)
        return
    for row, block in numbered(blocks, first):
        yield block, *sanitize_columns(sanitizer, block.texts, row)


def numbered(blocks: Iterable[Block], first: int) -> Iterator[tuple[int, Block]]:
    """Each block with the number of its first row."""
    for block in blocks:
        yield first, block
        first += block.rows


def ahead(items: Iterable[Item], most: Callable[[], int]) -> Iterator[Item]:
    """The same items, of which some more are made already: so work begun goes on meanwhile."""
    waiting: deque[Item] = deque()
    for item in items:
        waiting.append(item)
        while len(waiting) > most():
            yield waiting.popleft()
    yield from waiting


def sanitize_columns(sanitizer: Sanitizer, columns: Texts, first: int) -> Done:
    """New texts for the cells of all columns, from row ``first`` on."""
    counts = Counts(rows=len(columns[0]))
    replaced = []
    for name, cells in zip(sanitizer.columns, columns, strict=True):
        texts, own = sanitizer.texts(name, cells, first)
        replaced.append(texts)
        counts += own
    return replaced, counts


def _in_processes(
    sanitizer: Sanitizer, blocks: Iterable[Block], first: int, workers: int
) -> Iterator[Step]:
    context = multiprocessing.get_context("spawn")
    job = (sanitizer, max(1, available_cores() // workers))
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=job) as pool:

        def begun() -> Iterator[tuple[Block, Future[Done]]]:
            for row, block in numbered(blocks, first):
                yield block, pool.submit(_work, block.texts, row)

        try:
            for block, future in ahead(begun(), lambda: 2 * workers):
                yield block, *future.result()
        except BrokenProcessPool:
            raise SottovoceError(
                "a worker process died, perhaps for want of memory: use fewer workers"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(sanitizer: Sanitizer, threads: int) -> None:
    global _sanitizer
    _sanitizer = sanitizer
    set_threads(threads)
    end_with_parent()


def _work(columns: Texts, first: int) -> Done:
    assert _sanitizer is not None  # noqa: S101 - the pool calls _start first
    return sanitize_columns(_sanitizer, columns, first)
