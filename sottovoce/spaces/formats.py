"""Importing a file of word vectors as a word space, in bounded memory.

What is wrong with a file either stops the import, naming the line (duplicates, NaN or infinity,
wrong dimension, nothing in it), or is skipped, counted and reported (malformed lines, up to a
bound; words that no tokenizer would ever look up). See ``readers`` for what is malformed.
"""

from __future__ import annotations

import gzip
import re
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.spaces.readers import (
    BYTE_ORDER_MARK,
    LINE_END,
    Batch,
    numbers_at_end,
    opened,
    parse_header,
    read_glove,
    read_npy_parquet,
    read_npz,
    read_wink_json,
    read_word2vec,
    read_word2vec_binary,
)
from sottovoce.spaces.store import DuplicateWordError, SpaceWriter
from sottovoce.types import IntArray, Progress

MOST_MALFORMED = 1000
MOST_MALFORMED_SHARE = 0.01
LINES_SHOWN = 20

DAMAGE = (
    *(AttributeError, EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError),
    *(zlib.error, gzip.BadGzipFile, zipfile.BadZipFile),
)
"""What the decoders raise on data that is not what it claims to be."""
ZIP_MAGIC = b"PK\x03\x04"
FASTTEXT_MODEL_MAGIC = b"\xba\x16\x4f\x2f"

_BLANK_OR_CONTROL = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200b\ufeff]")


@dataclass(frozen=True)
class Format:
    """How one kind of file is read, and what its entries are called in messages."""

    read: Callable[[Path], Iterator[Batch]]
    unit: str


FORMATS = {
    "glove": Format(read_glove, "line"),
    "word2vec": Format(read_word2vec, "line"),
    "fasttext": Format(read_word2vec, "line"),
    "word2vec-binary": Format(read_word2vec_binary, "entry"),
    "npz": Format(read_npz, "entry"),
    "wink-json": Format(read_wink_json, "entry"),
    "npy-parquet": Format(read_npy_parquet, "entry"),
}


@dataclass(frozen=True)
class Tally:
    """How many entries something happened to, and the numbers of the first few."""

    count: int = 0
    first: tuple[int, ...] = ()

    def plus(self, numbers: list[int]) -> Tally:
        if not numbers:
            return self
        return Tally(self.count + len(numbers), (*self.first, *numbers)[:LINES_SHOWN])

    def places(self, unit: str) -> str:
        """Say where: "lines 3, 17 and 12 more"."""
        plural = "entries" if unit == "entry" else f"{unit}s"
        listed = ", ".join(map(str, self.first))
        more = self.count - len(self.first)
        return f"{unit if self.count == 1 else plural} {listed}" + (f", {more} more" * bool(more))


@dataclass(frozen=True)
class ImportReport:
    """What an import did, and what it set aside; it names lines, never words."""

    words: int
    dimension: int
    malformed: Tally
    """Could not be read as a word and its numbers; skipped."""
    left_out: Tally
    """Empty, or with whitespace or control characters inside: no text could ever match."""
    not_normalized: Tally
    """Kept, but not in Unicode form NFC, which texts are brought to: never found in a text."""
    unit: str
    seconds: float

    def remarks(self) -> list[str]:
        """One sentence for each thing that people should know; none if all went smoothly."""
        reasons = [
            (self.malformed, "malformed, skipped"),
            (self.left_out, "left out: blank or with whitespace or control characters in the word"),
            (self.not_normalized, "kept, but not in Unicode form NFC: texts will never match"),
        ]
        return [
            f"{tally.count} {reason} ({tally.places(self.unit)})"
            for tally, reason in reasons
            if tally.count
        ]


def import_vectors(
    path: Path | str,
    folder: Path | str,
    *,
    name: str,
    format: str = "auto",
    source: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Convert a file of vectors into the word space ``folder``, which appears when complete.

    What is set aside on the way is counted, and reported.
    """
    path = Path(path)
    format = choose_format(path, format)
    source = source or {"file": path.name, "format": format}
    started, total = time.monotonic(), path.stat().st_size
    batches, unit = read(path, format), FORMATS[format].unit
    first = next(batches, None)
    if first is None:
        raise SpaceError(f"{path.name} is empty")
    malformed = left_out = not_normalized = Tally()
    numbers, dimension = [], first.vectors.shape[1]
    with SpaceWriter(Path(folder), name=name, dimension=dimension, source=source) as writer:
        for batch in chain([first], batches):
            malformed = malformed.plus(batch.malformed)
            if malformed.count > MOST_MALFORMED:
                _refuse_malformed(path, malformed, unit)
            _refuse_not_finite(path, batch, unit)
            usable = np.array([_usable(word) for word in batch.words], dtype=np.bool_)
            words = [word for word, good in zip(batch.words, usable, strict=True) if good]
            odd = [not unicodedata.is_normalized("NFC", word) for word in words]
            left_out = left_out.plus(batch.numbers[~usable].tolist())
            numbers.append(batch.numbers[usable])
            not_normalized = not_normalized.plus(numbers[-1][odd].tolist())
            writer.append(words, batch.vectors[usable])
            if progress:
                progress(batch.position, total)
        if malformed.count > MOST_MALFORMED_SHARE * (
            malformed.count + left_out.count + writer.size
        ):
            _refuse_malformed(path, malformed, unit)
        if not writer.size:
            raise SpaceError(f"{path.name} holds no usable word")
        report = ImportReport(
            words=writer.size,
            dimension=dimension,
            malformed=malformed,
            left_out=left_out,
            not_normalized=not_normalized,
            unit=unit,
            seconds=0.0,
        )
        if report.remarks():
            writer.source["remarks"] = "; ".join(report.remarks())
        _commit(writer, path, np.concatenate(numbers), unit)
    return replace(report, seconds=time.monotonic() - started)


def choose_format(path: Path, name: str = "auto") -> str:
    """Check the name of a format; ``auto`` looks into the file."""
    if name == "auto":
        return detect(path)
    if name not in FORMATS:
        raise UsageError(f"unknown format '{name}': use auto, {', '.join(FORMATS)}")
    return name


def detect(path: Path) -> str:
    """Which format a file has, from its first bytes and, where they leave a doubt, its name."""
    with _damage_reported(path), opened(path) as (stream, _):
        head = stream.read(1 << 20)
    if head.startswith(ZIP_MAGIC):
        return "npz"
    if head.startswith(b"{"):
        return "wink-json"
    if head.startswith(FASTTEXT_MODEL_MAGIC):
        raise UsageError(
            f"{path.name} is a fastText model: import the .vec file with its word vectors instead"
        )
    first, _, rest = head.removeprefix(BYTE_ORDER_MARK).partition(b"\n")
    header = parse_header(first)
    if header is None:
        return "glove"
    if {".vec", ".txt"} & set(path.suffixes):
        return "word2vec"
    second = rest.partition(b"\n")[0].rstrip(LINE_END)
    return "word2vec" if numbers_at_end(second.split(b" ")) >= header[1] else "word2vec-binary"


def read(path: Path, name: str) -> Iterator[Batch]:
    """Stream the entries of a file in one of the ``FORMATS``."""
    with _damage_reported(path):
        yield from FORMATS[name].read(path)


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    try:
        yield
    except SottovoceError:
        raise
    except DAMAGE as error:
        raise SpaceError(
            f"{path.name} is damaged or incomplete ({type(error).__name__}): download or write it "
            "again"
        ) from None


def _usable(word: str) -> bool:
    return bool(word) and _BLANK_OR_CONTROL.search(word) is None


def _refuse_malformed(file: Path, malformed: Tally, unit: str) -> None:
    raise SpaceError(
        f"{file.name}: {malformed.count} malformed ({malformed.places(unit)}), more than "
        f"{MOST_MALFORMED_SHARE:.0%} or {MOST_MALFORMED}: is the format right? Name it with "
        f"--format ({', '.join(FORMATS)})"
    )


def _refuse_not_finite(file: Path, batch: Batch, unit: str) -> None:
    squares = np.einsum("ij,ij->i", batch.vectors, batch.vectors)
    wrong = np.flatnonzero(~np.isfinite(squares))
    if len(wrong):
        raise SpaceError(
            f"{file.name}, {unit} {batch.numbers[wrong[0]]}: a number is NaN, infinite or too large"
        )


def _commit(writer: SpaceWriter, file: Path, numbers: IntArray, unit: str) -> None:
    try:
        writer.commit()
    except DuplicateWordError as error:
        places = Tally().plus(numbers[[error.first, error.second]].tolist()).places(unit)
        raise SpaceError(
            f"{file.name}: the same word twice ({places}): remove one of them"
        ) from None
