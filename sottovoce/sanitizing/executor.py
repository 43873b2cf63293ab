"""Runs blocks through the sanitizer, in this process or on several, in order, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from sottovoce.sanitizing.sanitizer import DatasetCounts, Sanitizer
from sottovoce.sanitizing.sources import Block, Texts
from sottovoce.workers import ordered_map

Done: TypeAlias = tuple[Texts, DatasetCounts]
Step: TypeAlias = tuple[Block, Texts, DatasetCounts]
Executor: TypeAlias = Callable[[Sanitizer, Iterable[Block], int], Iterator[Step]]
"""Takes blocks through a sanitizer, from a row number on, and gives them back in order."""

Item = TypeVar("Item")


def sanitize_blocks(
    sanitizer: Sanitizer, blocks: Iterable[Block], first: int, workers: int
) -> Iterator[Step]:
    """Each block with its new texts; ``first`` is the number of the first row."""
    if workers > 1:
        yield from _in_processes(sanitizer, blocks, first, workers)
        return
    for row, block in numbered(blocks, first):
        yield block, *sanitizer.rows(block.texts, row)


def numbered(blocks: Iterable[Block], first: int) -> Iterator[tuple[int, Block]]:
    """Each block with the number of its first row."""
    for block in blocks:
        yield first, block
        first += block.rows


def ahead(items: Iterable[Item], most: Callable[[], int]) -> Iterator[Item]:
    """The same items; up to ``most()`` later ones are begun before an item is given out."""
    waiting: deque[Item] = deque()
    for item in items:
        waiting.append(item)
        while len(waiting) > most():
            yield waiting.popleft()
    yield from waiting


def _in_processes(
    sanitizer: Sanitizer, blocks: Iterable[Block], first: int, workers: int
) -> Iterator[Step]:
    in_flight: deque[Block] = deque()

    def tasks() -> Iterator[tuple[Texts, int]]:
        """Only the texts travel; the rest of a block waits here."""
        for row, block in numbered(blocks, first):
            in_flight.append(block)
            yield block.texts, row

    for _, done in ordered_map(_sanitize, sanitizer, tasks(), workers):
        yield in_flight.popleft(), *done


def _sanitize(sanitizer: Sanitizer, task: tuple[Texts, int]) -> Done:
    """One block, in a worker process."""
    return sanitizer.rows(*task)
