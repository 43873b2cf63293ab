"""Read text and tables, write files whole or not at all, lock files between processes.

Messages name files and lines, and never repeat what is in them.
"""

from __future__ import annotations

import csv
import ctypes
import gzip
import hashlib
import io
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError, UsageError

BOM = "\ufeff"
GZIP = b"\x1f\x8b"
"""How gzipped files begin."""
MOST_UNPACKED = 1 << 30
"""Bytes that a packed text may come to: a small file can hold any number."""
LONGEST_LINE = 64 << 20
GROWING = ".growing"
"""How the names of unfinished files end; they begin with a dot."""
NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Open no file through a link, where the system knows how: another user may have made it.

And as bytes, where it would change line ends otherwise.
"""
ATTEMPTS = 5
"""To give a folder its name, while other processes may do the same."""
AT_CURRENT, SWAP = -100, 2
"""Where names begin, and that two of them change places, for the system."""
SCRATCH_LOCK, SCRATCH_SECONDS = ".lock", 60.0
"""A scratch folder that is younger may not have its lock yet."""


# Reading: text and tables, perhaps gzipped.


def read_text(file: Path | str) -> str:
    """The whole of a text file without its byte order mark; ``-`` is standard input."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else Path(file).read_bytes()
        if data.startswith(GZIP):
            data = _unpacked(data)
        content = data.decode("utf-8")
    except FileNotFoundError:
        raise UsageError("there is no such file: check the path") from None
    except IsADirectoryError:
        raise UsageError("that is a folder, not a file: check the path") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"line {line} of the file is not UTF-8: convert it first") from None
    except (OSError, EOFError, zlib.error) as error:
        raise SottovoceError(f"the file cannot be read ({type(error).__name__})") from None
    if "\0" in content:
        line = content.count("\n", 0, content.index("\0")) + 1
        raise UsageError(f"line {line} of the file holds a NUL byte: it is not a text file")
    return content.lstrip(BOM)


def _unpacked(data: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        content = packed.read(MOST_UNPACKED + 1)
    if len(content) > MOST_UNPACKED:
        raise UsageError(
            f"the packed file holds more than {MOST_UNPACKED >> 20} MiB: unpack it first, and cut "
            "it into several"
        )
    return content


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, stripped, with their numbers.

    They are read one at a time, so that the file may be large; ``.gz`` is unpacked.
    """
    number = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            lines = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
            for number, line in enumerate(lines, start=1):
                if len(line) > LONGEST_LINE:
                    raise SottovoceError(
                        f"line {number} of {file} is longer than {LONGEST_LINE >> 20} MiB: check "
                        "that the file has line ends"
                    )
                if text := line.decode("utf-8-sig").strip():
                    yield number, text
    except UnicodeDecodeError:
        raise SottovoceError(
            f"line {number} of {file} is not UTF-8 text: convert the file first"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise SottovoceError(
            f"cannot read {file} beyond line {number} ({type(error).__name__}): it may be "
            "damaged or not be yours to read"
        ) from None


def read_words(file: Path | str) -> set[str]:
    """The words of a list, one a line."""
    return {line.strip() for line in read_text(file).splitlines()} - {""}


def numbered_lines(content: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not blank, with their numbers."""
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            yield number, line


def parse_json(data: str | bytes) -> Any:
    """The value of a JSON text; ``ValueError`` if it is none, or nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_lines(
    lines: Iterable[tuple[int, str]],
    name: str = "the file",
    *,
    how: str,
    error: type[SottovoceError] = UsageError,
) -> Iterator[tuple[int, Any]]:
    """The value of each numbered line.

    ``name`` is what errors call the file, and ``how`` says what to write instead.
    """
    for number, line in lines:
        try:
            value = parse_json(line)
        except ValueError:
            raise error(f"line {number} of {name} is not JSON: {how}") from None
        yield number, value


def json_objects(
    lines: Iterable[tuple[int, str]],
    name: str = "the file",
    *,
    how: str,
    error: type[SottovoceError] = UsageError,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each numbered line; another value is an error. See :func:`json_lines`."""
    for number, value in json_lines(lines, name, how=how, error=error):
        if not isinstance(value, dict):
            raise error(f"line {number} of {name} is JSON but not an object: {how}")
        yield number, value


class CsvTable:
    """The rows of a CSV text, or of one with tabs, below the header in its first line.

    Iterating gives the number of the line in which a row ends, and its fields by column. Blank
    rows are left out, and a row with more or fewer fields than the header is an error.

    name
        What errors call the table.
    how
        Says in errors what to give instead.
    quoting
        Says in errors what to do about fields that hold commas.
    tabs
        Fields end at tabs, and quotes are letters like any other.
    fold_header
        Neither case nor blanks around them tell the names of columns apart.
    """

    def __init__(
        self,
        content: str,
        name: str = "the CSV file",
        *,
        how: str,
        quoting: str = "",
        tabs: bool = False,
        fold_header: bool = False,
    ) -> None:
        stream = io.StringIO(content, newline="")
        if tabs:
            self._rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        else:
            self._rows = csv.reader(stream)
        self._name, self._how, self._quoting = name, how, quoting
        header = next(self._readable(), [])
        self.header = [column.strip().casefold() for column in header] if fold_header else header

    def require(self, *columns: str) -> None:
        missing = [column for column in columns if column not in self.header]
        if missing:
            raise UsageError(f"{self._name} has no column {' and '.join(missing)}: {self._how}")

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        for row in self._readable():
            if row and len(row) != len(self.header):
                raise UsageError(
                    f"the row that ends in line {self._rows.line_num} of {self._name} has another "
                    "number of fields than the header" + (self._quoting and f": {self._quoting}")
                )
            if row:
                yield self._rows.line_num, dict(zip(self.header, row, strict=True))

    def _readable(self) -> Iterator[list[str]]:
        try:
            yield from self._rows
        except csv.Error:
            raise UsageError(
                f"line {self._rows.line_num} of {self._name} cannot be read: {self._how}"
            ) from None


def files_hash(files: Iterable[Path]) -> str:
    """The sha256 of the contents of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


# Writing: under another name first. What is on disk as a whole then gets its own name in one step.


def write_whole(file: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file that no other process writes at the same time."""
    with whole_file(file, mode, alone=True) as part, part.open("wb", buffering=0) as out:
        write_through(out, data)


@contextmanager
def whole_file(file: Path, mode: int = 0o666, *, alone: bool = False) -> Iterator[Path]:
    """Give an empty file to write to, which then becomes ``file``; after an error it is removed.

    alone
        No other process writes this file at the same time. Then what a killed process left is
        written over; otherwise it stays, and each call has an unfinished file of its own.
    """
    part = beside(file) if alone else beside(file, secrets.token_hex(4))
    part.unlink(missing_ok=True)
    create_new(part, mode).close()
    try:
        yield part
        _sync(part)
        move_file(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def create_new(file: Path, mode: int = 0o600) -> io.FileIO:
    """A new file to write to; whatever has its name already, a link too, is an error."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, mode)
    return open(descriptor, "wb", buffering=0)


def beside(file: Path, *parts: str) -> Path:
    """The name of a file while it is not finished."""
    return file.with_name("." + ".".join([file.name, *parts]) + GROWING)


def write_through(file: io.FileIO, data: bytes) -> None:
    """Write everything, and wait until it is on disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def settle_file(file: Path) -> None:
    """Wait until a file is on disk, and give it the usual permissions."""
    _sync(file)
    mask = os.umask(0o077)
    os.umask(mask)
    file.chmod(0o666 & ~mask)


def move_file(file: Path, to: Path) -> None:
    """Give a file that is on disk its name, and wait until the name is on disk."""
    file.replace(to)
    _sync_names(to.parent)


def settle_folder(folder: Path) -> None:
    """Wait until the files of a folder, and their names, are on disk."""
    for path in folder.iterdir():
        settle_folder(path) if path.is_dir() else _sync(path)
    _sync_names(folder)


def move_folder(
    made: Path, to: Path, aside: Path, keep: Callable[[], bool] = lambda: False
) -> None:
    """Give a finished folder its name, when all of it is on disk.

    A folder of that name changes places with it, or is moved into ``aside`` where the system cannot
    do that. ``keep`` is asked before: it says whether the folder that is there will do as well.
    """
    settle_folder(made)
    for attempt in range(ATTEMPTS):
        try:
            made.rename(to)
        except OSError as error:
            failure = error
            if keep():
                return
            if not exchange(made, to):
                with suppress(OSError):
                    to.rename(aside / f"replaced-{attempt}")
                continue
        _sync_names(to.parent)
        return
    raise failure


def exchange(one: Path, two: Path) -> bool:
    """Let two folders change names in one step; False where the system cannot."""
    system = ctypes.CDLL(None, use_errno=True) if sys.platform != "win32" else None
    names = os.fsencode(one), os.fsencode(two)
    if (rename := getattr(system, "renameat2", None)) is not None:  # Linux
        return bool(rename(AT_CURRENT, names[0], AT_CURRENT, names[1], SWAP) == 0)
    if (rename := getattr(system, "renamex_np", None)) is not None:  # macOS
        return bool(rename(*names, SWAP) == 0)
    return False


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Give a private folder inside another one, which goes away at the end."""
    clear_scratch(parent, prefix)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as scratch,
        locked(Path(scratch) / SCRATCH_LOCK, wait=True),
    ):
        yield Path(scratch)


def clear_scratch(parent: Path, prefix: str) -> None:
    """Remove the scratch folders that killed processes left: nobody holds their locks."""
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError, UsageError):
            if time.time() - left.stat().st_mtime > SCRATCH_SECONDS:
                with locked(left / SCRATCH_LOCK, wait=False):
                    pass
                shutil.rmtree(left, ignore_errors=True)


def _sync(file: Path) -> None:
    with file.open("r+b") as handle:  # Windows waits only for what may be written.
        os.fsync(handle.fileno())


def _sync_names(folder: Path) -> None:
    if sys.platform != "win32":
        names = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(names)
        finally:
            os.close(names)


# Locking.


@contextmanager
def locked(
    file: Path,
    *,
    wait: bool,
    busy: str = "another process is at work here: wait for it",
    private: bool = False,
    remove: bool = False,
) -> Iterator[None]:
    """Keep other processes out of this block; the lock of a process that was killed is free.

    wait
        For the process that has the lock; else there is an error at once, with the message
        ``busy``.
    private
        Nobody else may open the file.
    remove
        Remove the file when the block ends without an error.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file, mode=0o600) if private else FileLock(file)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        raise UsageError(busy) from None
    try:
        yield
        if remove:
            # Before the lock is let go: whoever waits for it sees that the file is gone.
            with suppress(OSError):
                file.unlink()
    finally:
        lock.release()
