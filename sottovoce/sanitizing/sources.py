"""What a data set in a file is: blocks of rows, whose texts come out and go back in.

Rows of text files are kept as bytes around the chosen cells, which alone are replaced.
"""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import GZIP

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
BLANK = b"\r\n \t"


class Block(Protocol):
    """Consecutive rows of a data set."""

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


# Text files.


class Lines:
    """The lines of a file, plain or gzipped, from a mark on: offset and number of lines before.

    ``open_file`` gives the file as it is, to be read from its beginning.
    """

    def __init__(self, open_file: Callable[[], IO[bytes]], start: Mark = START) -> None:
        self._open_file, self._opened = open_file, ExitStack()
        self.offset, self.number = start

    def __enter__(self) -> Lines:
        try:
            file = self._opened.enter_context(self._open_file())
            packed = file.read(2) == GZIP
            file.seek(0)
            self._file = self._opened.enter_context(gzip.GzipFile(fileobj=file)) if packed else file
            self._file.seek(self.offset)
        except (OSError, EOFError, zlib.error) as error:
            self._opened.close()
            raise self._unreadable(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def mark(self) -> Mark:
        """The place before the next line."""
        return self.offset, self.number

    def next(self) -> bytes:
        """The next line with its end, or nothing at the end of the file."""
        try:
            line = self._file.readline(LONGEST_ROW + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from None
        self.number += bool(line)
        self.offset += len(line)
        check_length(len(line), self.number)
        if b"\0" in line:
            raise UsageError(
                f"line {self.number} of the input holds a NUL byte: it is no text file, or not in "
                "UTF-8"
            )
        if not line.isascii():
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                raise UsageError(
                    f"line {self.number} of the input is not UTF-8: convert the file first, as "
                    "with iconv -f LATIN1 -t UTF-8"
                ) from None
        return line

    def _unreadable(self, error: Exception) -> SottovoceError:
        return SottovoceError(
            f"the input cannot be read after line {self.number} ({type(error).__name__})"
        )


def check_length(length: int, line: int) -> None:
    """Refuse rows that are too long."""
    if length > LONGEST_ROW:
        raise UsageError(
            f"the row in line {line} of the input is longer than {LONGEST_ROW >> 20} MiB: cut it "
            "into several, or check that the file has line ends"
        )


@dataclass
class Row:
    """One row in pieces, and which piece is the cell of each chosen column."""

    pieces: list[bytes]
    places: tuple[int, ...]
    texts: tuple[str | None, ...]
    ending: bytes = b""


@dataclass
class TextBlock:
    """Rows of a text file; ``before`` is what stands before them, such as a header."""

    source: TextSource
    before: bytes
    lines: list[Row]
    end: Mark

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.lines)

    @property
    def texts(self) -> Texts:
        """The cells of each chosen column."""
        return [[row.texts[i] for row in self.lines] for i in range(len(self.source.columns))]

    def filled(self, texts: Texts) -> bytes:
        """The rows with other cells, byte by byte as they were elsewhere."""
        out = [self.before]
        for number, row in enumerate(self.lines):
            pieces = list(row.pieces)
            for place, cells in zip(row.places, texts, strict=True):
                cell = cells[number]
                if cell is not None:
                    pieces[place] = self.source.write_cell(cell, row.pieces[place])
            out += (self.source.joint.join(pieces), row.ending)
        return b"".join(out)


@dataclass(frozen=True)
class TextSource(ABC):
    """A file of rows in lines."""

    path: Path
    columns: tuple[str, ...]

    def open_file(self) -> IO[bytes]:
        """The file as it is; a source that is not on disk has another way."""
        return self.path.open("rb")

    @property
    @abstractmethod
    def kind(self) -> str:
        """The format, with all that decides how it is read."""

    @property
    @abstractmethod
    def joint(self) -> bytes:
        """What stands between the pieces of a row."""

    @abstractmethod
    def write_cell(self, text: str, before: bytes) -> bytes:
        """A text as the format writes it, in the style of the cell that it replaces."""

    @abstractmethod
    def header(self) -> tuple[bytes, Mark]:
        """What stands before the first row, and where that is; refuses an empty file."""

    @abstractmethod
    def reader(self) -> RowReader:
        """The reader of this format's rows."""

    def blocks(self, start: Mark) -> Iterator[TextBlock]:
        """All rows from a mark on. Blank lines stay where they are, and are no rows."""
        before, first = self.header()
        if start != START:
            before, first = b"", start
        reader = self.reader()
        with Lines(self.open_file, first) as lines:
            begun, rows = lines.offset, list[Row]()
            while line := lines.next():
                if reader.blank(line):
                    if rows:
                        rows[-1].ending += line
                    else:
                        before += line
                else:
                    rows.append(reader.row(line, lines))
                if len(rows) == ROWS_AT_A_TIME or lines.offset - begun > BYTES_AT_A_TIME:
                    yield TextBlock(self, before, rows, lines.mark)
                    before, rows, begun = b"", [], lines.offset
            if before or rows:
                yield TextBlock(self, before, rows, lines.mark)

    def finished(self, work: Path) -> Path:
        """The work file itself: it is the output already."""
        return work


class RowReader(ABC):
    """Reads rows from lines."""

    def blank(self, line: bytes) -> bool:
        """Whether a line is no row."""
        return not line.strip(BLANK)

    @abstractmethod
    def row(self, line: bytes, lines: Lines) -> Row:
        """The row that begins with this line; it may take further ones."""
