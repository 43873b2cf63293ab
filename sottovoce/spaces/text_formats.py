"""GloVe text, word2vec text and fastText .vec: a word and its numbers on each line.

A line is one of four things, with *k* the number of fields at its end that are numbers:

* an entry: k is the dimension; the word is everything before, spaces included;
* of the wrong dimension: k exceeds the dimension, or it falls short although nothing but numbers
  follows the first field. The file is not what it seems, so this is an error;
* malformed: too few numbers because something else stands among them, no number at all, or a
  word that is not UTF-8. Real files have a few of these; they are skipped and counted;
* blank: ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from sottovoce.errors import SpaceError
from sottovoce.spaces.entries import (
    BLOCK_BYTES,
    Batch,
    check_count,
    opened,
    refuse,
    required_header,
)
from sottovoce.types import Float32Array

LONGEST_LINE = 1 << 25
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = b" \r"

_NUMBER = re.compile(
    rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE
)


def read_glove(path: Path) -> Iterator[Batch]:
    """Read lines without a header; the dimension is the commonest width of the first block."""
    with opened(path) as (stream, raw):
        dimension = 0
        for start, lines in _line_blocks(path, stream):
            dimension = dimension or _commonest_width(path, lines)
            yield _parse_lines(path, start, lines, dimension, raw.tell())


def read_word2vec(path: Path) -> Iterator[Batch]:
    """Read lines after a header "count dimension", which must tell the truth."""
    with opened(path) as (stream, raw):
        count = dimension = seen = 0
        for start, lines in _line_blocks(path, stream):
            if start == 1:
                count, dimension = required_header(path, lines[0])
                start, lines = 2, lines[1:]
            batch = _parse_lines(path, start, lines, dimension, raw.tell())
            seen += len(batch.words) + len(batch.malformed)
            yield batch
        check_count(path, count, seen)


def numbers_at_end(fields: list[bytes]) -> int:
    """How many fields at the end, the first field excepted, are numbers."""
    found = 0
    for field in reversed(fields[1:]):
        if not _NUMBER.fullmatch(field):
            break
        found += 1
    return found


def _line_blocks(path: Path, stream: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Give lines in blocks, each with the number of its first line."""
    number, rest = 1, stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    while chunk := stream.read(BLOCK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield number, lines
            number += len(lines)
        if len(rest) > LONGEST_LINE:
            refuse(path, f"line {number}", "too long for a word and its numbers")
    if rest:
        yield number, rest.split(b"\n")


def _commonest_width(path: Path, lines: list[bytes]) -> int:
    widths = Counter(line.rstrip(LINE_END).count(b" ") for line in lines)
    del widths[0]
    if not widths:
        raise SpaceError(
            f"{path.name}: no line holds a word and numbers separated by spaces; if this is not "
            "GloVe text, name the format with --format"
        )
    return widths.most_common(1)[0][0]


def _parse_lines(
    path: Path, start: int, lines: list[bytes], dimension: int, position: int
) -> Batch:
    """Parse all lines at once where they are regular, which is nearly always; else one by one."""
    stripped = [line.rstrip(LINE_END) for line in lines]
    numbers = np.array([i for i, line in enumerate(stripped, start) if line], dtype=np.int64)
    filled = [line for line in stripped if line]
    regular = _parse_regular(filled, dimension)
    if regular is not None:
        return Batch(*regular, numbers, [], position)
    words: list[str] = []
    vectors = [np.empty((0, dimension), np.float32)]
    kept: list[int] = []
    malformed: list[int] = []
    for number, line in zip(numbers.tolist(), filled, strict=True):
        entry = _parse_regular([line], dimension) or _parse_irregular(path, number, line, dimension)
        if entry is None:
            malformed.append(number)
            continue
        words += entry[0]
        vectors.append(entry[1])
        kept.append(number)
    return Batch(words, np.concatenate(vectors), np.array(kept, np.int64), malformed, position)


def _parse_regular(lines: list[bytes], dimension: int) -> tuple[list[str], Float32Array] | None:
    """Words and vectors of lines that are all "word number … number", or None if one is not."""
    parts = [line.partition(b" ") for line in lines]
    tails = [tail for _, _, tail in parts]
    if not tails or not all(tails) or not b"".join(tails).isascii():
        return None
    try:
        # The C parser of loadtxt: twice as fast as float() on each field, and strict.
        vectors = np.loadtxt(tails, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
        words = [word.decode("utf-8") for word, _, _ in parts]
    except ValueError:
        return None
    return (words, vectors) if vectors.shape == (len(lines), dimension) else None


def _parse_irregular(
    path: Path, number: int, line: bytes, dimension: int
) -> tuple[list[str], Float32Array] | None:
    """Word and vector of a line whose word holds spaces, or None if the line is malformed."""
    fields = line.split(b" ")
    found = numbers_at_end(fields)
    if found > dimension or (found == len(fields) - 1 and 0 < found < dimension):
        refuse(path, f"line {number}", f"{dimension} numbers expected, {found} found")
    if found < dimension:
        return None
    try:
        words = [b" ".join(fields[:-dimension]).decode("utf-8")]
    except UnicodeDecodeError:
        return None
    with np.errstate(over="ignore"):
        return words, np.array([[float(field) for field in fields[-dimension:]]], dtype=np.float32)
