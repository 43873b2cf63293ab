"""What every reader of a vector file shares: batches of entries, opening, headers, refusals."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, cast

from sottovoce.errors import SpaceError, UsageError
from sottovoce.types import Float32Array, IntArray

BLOCK_BYTES = 1 << 22
"""How much of a file is held at a time."""
LARGEST_DIMENSION = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Batch:
    """Some consecutive entries of a file, with where they stood and what had to be skipped."""

    words: list[str]
    vectors: Float32Array
    numbers: IntArray
    """The line (or entry) number of each word."""
    malformed: list[int]
    """The numbers of the lines (or entries) in between that could not be read."""
    position: int
    """How many bytes of the file on disk have been read so far."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Give the bytes of a file, decompressed if need be, and the file itself (for its position)."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    with raw:
        compressed = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        yield (cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if compressed else raw), raw


def refuse(path: Path, where: str, why: str) -> NoReturn:
    """Stop at a place in a file; the message names the place, never the word."""
    raise SpaceError(f"{path.name}, {where}: {why}")


def parse_header(line: bytes) -> tuple[int, int] | None:
    """(count, dimension), if the line is a word2vec header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def required_header(path: Path, line: bytes) -> tuple[int, int]:
    """(count, dimension), if they make sense, or an error."""
    header = parse_header(line)
    if header is None or not all(header) or header[1] > LARGEST_DIMENSION:
        refuse(path, "line 1", "expected the header 'count dimension' of the word2vec formats")
    return header


def check_count(path: Path, promised: int, seen: int) -> None:
    """Refuse a file whose header does not tell the truth: most likely it was cut off."""
    if seen != promised:
        raise SpaceError(
            f"{path.name}: the header promises {promised} entries, the file holds {seen}: it is "
            "incomplete or was edited; download it again or correct the header"
        )
