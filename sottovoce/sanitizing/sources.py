"""What a data set is to the rest: blocks of rows, whose texts come out and go back in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

Texts: TypeAlias = Sequence[Sequence[str | None]]
"""The cells of each chosen column; None where a cell is missing."""

Mark: TypeAlias = tuple[int, int]
"""A place in the input between two rows, from which reading can go on; its meaning is the format's.

It holds no text, so that it can be written down.
"""

START: Mark = (0, 0)
ROWS_AT_A_TIME = 1024
BYTES_AT_A_TIME = 256 << 10
LONGEST_ROW = 16 << 20
"""Longer rows are refused: a row has to fit into memory several times."""


class Block(Protocol):
    """Some rows."""

    @property
    def rows(self) -> int:
        """How many; there may be none."""
        ...

    @property
    def end(self) -> Mark:
        """The place in the input after them."""
        ...

    @property
    def texts(self) -> Texts:
        """The cells of each chosen column."""
        ...

    def filled(self, texts: Texts) -> bytes:
        """The rows as the work file takes them, with these cells instead."""
        ...


class Source(Protocol):
    """A data set in a file. Its errors name rows or lines, and hold nothing of them."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The chosen columns."""
        ...

    @property
    def kind(self) -> str:
        """The format, with all that decides how it is read."""
        ...

    def blocks(self, start: Mark) -> Iterator[Block]:
        """All rows from a mark on, in blocks of bounded size."""
        ...

    def finished(self, work: Path) -> Path:
        """A whole file made of the work file, which holds all blocks now; it may be the same."""
        ...
