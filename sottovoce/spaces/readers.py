"""Readers of vector files: each streams the entries of one format in batches, in bounded memory.

A line of a text format is one of four things, with *k* the number of fields at its end that are
numbers:

* an entry: k is the dimension; the word is everything before, spaces included;
* of the wrong dimension: k exceeds the dimension, or it falls short although nothing but numbers
  follows the first field. The file is not what it seems, so this is an error;
* malformed: too few numbers because something else stands among them, no number at all, or a
  word that is not UTF-8. Real files have a few of these; they are skipped and counted;
* blank: ignored.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sottovoce.arrays import read_array
from sottovoce.errors import SpaceError, UsageError, need
from sottovoce.files import GZIP
from sottovoce.types import Float32Array, IntArray

BLOCK_BYTES = 1 << 22
"""How much of a file is held at a time."""
LARGEST_DIMENSION = 1 << 16
LONGEST_LINE = 1 << 25
LONGEST_WORD = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = b" \r"

_NUMBER = re.compile(
    rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE
)
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        compressed = raw.read(2) == GZIP
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
    """Refuse a file with another number of entries than its header says: it may be cut off."""
    if seen != promised:
        raise SpaceError(
            f"{path.name}: the header promises {promised} entries, the file holds {seen}: it is "
            "incomplete or was edited; download it again or correct the header"
        )


# GloVe text, word2vec text and fastText .vec: a word and its numbers on each line.


def read_glove(path: Path) -> Iterator[Batch]:
    """Read lines without a header; the dimension is the commonest width of the first block."""
    with opened(path) as (stream, raw):
        dimension = 0
        for start, lines in _line_blocks(path, stream):
            dimension = dimension or _commonest_width(path, lines)
            yield _parse_lines(path, start, lines, dimension, raw.tell())


def read_word2vec(path: Path) -> Iterator[Batch]:
    """Read lines after a header "count dimension", and check that count."""
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
    count = 0
    for field in reversed(fields[1:]):
        if not _NUMBER.fullmatch(field):
            break
        count += 1
    return count


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
    count = numbers_at_end(fields)
    if count > dimension or (count == len(fields) - 1 and 0 < count < dimension):
        refuse(path, f"line {number}", f"{dimension} numbers expected, {count} found")
    if count < dimension:
        return None
    try:
        words = [b" ".join(fields[:-dimension]).decode("utf-8")]
    except UnicodeDecodeError:
        return None
    with np.errstate(over="ignore"):
        return words, np.array([[float(field) for field in fields[-dimension:]]], dtype=np.float32)


# word2vec .bin and NumPy .npz: entries without lines, numbered from 1.


def read_word2vec_binary(path: Path) -> Iterator[Batch]:
    """Read a header line, then for each entry the word, a space, and float32 numbers."""
    with opened(path) as (stream, raw):
        count, dimension = required_header(path, stream.readline(64))
        width = 4 * dimension
        buffer, entry = b"", 0
        while entry < count:
            chunk = stream.read(BLOCK_BYTES)
            if not chunk:
                check_count(path, count, entry)
            buffer += chunk
            at, words, rows, numbers, malformed = 0, [], [], [], []
            while entry < count and (space := buffer.find(b" ", at)) >= 0:
                end = space + 1 + width
                if end > len(buffer):
                    break
                entry += 1
                try:
                    # Some writers end an entry with a newline, others do not.
                    words.append(buffer[at:space].lstrip(b"\n").decode("utf-8"))
                    rows.append(buffer[space + 1 : end])
                    numbers.append(entry)
                except UnicodeDecodeError:
                    malformed.append(entry)
                at = end
            buffer = buffer[at:]
            if len(buffer) > width + LONGEST_WORD + BLOCK_BYTES:
                refuse(path, f"entry {entry + 1}", "no word found; is this word2vec binary?")
            vectors = np.frombuffer(b"".join(rows), dtype="<f4").reshape(-1, dimension)
            yield Batch(words, vectors, np.array(numbers, np.int64), malformed, raw.tell())
        if (buffer + stream.read(64)).strip(b"\n"):
            refuse(path, f"entry {count + 1}", f"the header promises {count} entries only")


def read_npz(path: Path) -> Iterator[Batch]:
    """Read the arrays ``words`` and ``vectors`` side by side; nothing is ever unpickled."""
    with opened(path) as (stream, raw), zipfile.ZipFile(stream) as archive:
        if not {"words.npy", "vectors.npy"} <= set(archive.namelist()):
            raise SpaceError(
                f"{path.name} needs two arrays: np.savez(file, words=np.array([…]), vectors=…)"
            )
        with archive.open("words.npy") as words_file, archive.open("vectors.npy") as vectors_file:
            words_shape, words_type = _array_header(path, words_file, "U")
            shape, vectors_type = _array_header(path, vectors_file, "f")
            if len(words_shape) != 1 or len(shape) != 2 or shape[0] != words_shape[0]:
                raise SpaceError(
                    f"{path.name}: 'words' has shape {words_shape} and 'vectors' {shape}; expected "
                    "(count,) and (count, dimension)"
                )
            count, dimension = shape
            step = max(1, BLOCK_BYTES // (dimension * vectors_type.itemsize + words_type.itemsize))
            for start in range(0, count, step):
                rows = min(step, count - start)
                words = _values(words_file, rows, words_type)
                values = _values(vectors_file, rows * dimension, vectors_type)
                with np.errstate(over="ignore"):
                    vectors = values.reshape(rows, dimension).astype(np.float32)
                yield _valid_entries(words.tolist(), vectors, start + 1, raw.tell())


def read_npy_parquet(path: Path) -> Iterator[Batch]:
    """Read an array of vectors (``.npy``) and, beside it, the one ``.parquet`` with its words."""
    indexes = list(path.parent.glob("*.parquet"))
    if len(indexes) != 1:
        raise SpaceError(f"{path.name} needs one .parquet file beside it, with its words")
    parquet = need("pyarrow.parquet", "data", "this file of words needs pyarrow")
    words = parquet.read_table(indexes[0]).column(0).to_pylist()
    vectors = read_array(path)
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise SpaceError(f"{path.name}: {len(words):,} words, and vectors of {vectors.shape}")
    step = max(1, BLOCK_BYTES // (4 * vectors.shape[1]))
    for start in range(0, len(words), step):
        block = np.asarray(vectors[start : start + step], dtype=np.float32)
        position = vectors.nbytes * (start + len(block)) // len(words)
        yield _valid_entries(words[start : start + step], block, start + 1, position)


def _valid_entries(words: list[str], vectors: Float32Array, first: int, position: int) -> Batch:
    """Set aside the words that UTF-8 cannot write."""
    valid = np.array([_SURROGATE.search(word) is None for word in words])
    numbers = np.arange(first, first + len(words), dtype=np.int64)
    kept = [word for word, good in zip(words, valid, strict=True) if good]
    return Batch(kept, vectors[valid], numbers[valid], numbers[~valid].tolist(), position)


def _array_header(path: Path, file: IO[bytes], kind: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = reader(file)
    if dtype.kind != kind or by_columns:
        raise SpaceError(
            f"{path.name}: 'words' must be a plain array of strings (not of objects), 'vectors' a "
            "table of floats in C order"
        )
    return shape, dtype


def _values(file: IO[bytes], count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


# The JSON of the wink embeddings: hundreds of megabytes on one line, read piece by piece.
# {…, "dimensions": d, "words": […], "vectors": {"word": [d numbers, norm, index], …}, …}

OPENING = b'"vectors":{'
BETWEEN_ENTRIES = b'],"'
AFTER_LAST_ENTRY = b"]}"


def read_wink_json(path: Path) -> Iterator[Batch]:
    """Read the entries in the order of ``words``, which the file must keep."""
    with opened(path) as (stream, raw):
        head = b""
        while OPENING not in head:
            chunk = stream.read(BLOCK_BYTES)
            if not chunk:
                refuse(path, "entry 1", "this JSON holds no word vectors")
            head += chunk
        start, _, buffer = head.partition(OPENING)
        description = json.loads(start + OPENING + b"}}")
        words, dimension = description["words"], description["dimensions"]
        done = 0
        while done < len(words):
            chunk = stream.read(BLOCK_BYTES)
            buffer += chunk
            cut = buffer.rfind(BETWEEN_ENTRIES) if chunk else buffer.find(AFTER_LAST_ENTRY)
            if cut < 0:
                if not chunk:
                    check_count(path, len(words), done)
                continue
            entries = json.loads(b"{" + buffer[: cut + 1] + b"}")
            buffer = buffer[cut + 2 :]
            table = np.array(list(entries.values()), dtype=np.float64).reshape(-1, dimension + 2)
            numbers = np.arange(done, done + len(table), dtype=np.int64)
            if list(entries) != words[done : done + len(table)] or (table[:, -1] != numbers).any():
                refuse(path, f"entry {done + 1}", "the vectors are not in the order of the words")
            done += len(table)
            vectors = table[:, :dimension].astype(np.float32)
            yield Batch(list(entries), vectors, numbers + 1, [], raw.tell())
