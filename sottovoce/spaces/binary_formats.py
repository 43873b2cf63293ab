"""word2vec .bin and NumPy .npz: entries without lines, numbered from 1."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

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

LONGEST_WORD = 1 << 16

_SURROGATE = re.compile("[\ud800-\udfff]")


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
