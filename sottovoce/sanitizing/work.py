"""Work in progress: a private folder beside the output, from which a killed run can go on.

Each block is on disk before the journal says so; what the journal does not mention is cut off when
the work goes on. So every row is written exactly once, wherever the process was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import NO_LINKS, locked, parse_json, write_through, write_whole
from sottovoce.sanitizing.sanitizer import DatasetCounts
from sottovoce.sanitizing.sources import START, Mark

PLAN, JOURNAL, OUTPUT, LOCK = "plan.json", "journal", "output", "lock"
START_ANEW = "start anew with --overwrite"


class WorkLostError(SottovoceError):
    """What an earlier run left cannot be used: everything has to be done again."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: {START_ANEW}")


@dataclass(frozen=True)
class State:
    """How far the work is: rows done, where the input goes on, how long the output is."""

    rows: int = 0
    mark: Mark = START
    size: int = 0
    counts: DatasetCounts = field(default_factory=DatasetCounts)
    complete: bool = False

    def line(self) -> bytes:
        """One line of the journal, with a checksum."""
        content = {**vars(self), "counts": self.counts.to_dict()}
        body = json.dumps(content).encode()
        return b"%08x %s\n" % (zlib.crc32(body), body)

    @classmethod
    def of(cls, line: bytes) -> State | None:
        """Read a line of the journal; None if it is not whole."""
        check, _, body = line.rstrip(b"\n").partition(b" ")
        if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(body):
            return None
        content = parse_json(body)
        mark, counts = tuple(content["mark"]), DatasetCounts(**content["counts"])
        return cls(**{**content, "mark": mark, "counts": counts})


def work_folder(out: Path) -> Path:
    """Where the work for an output file is."""
    return out.with_name(f".{out.name}.sanitizing")


class Work:
    """The folder, held by one process at a time."""

    def __init__(self, folder: Path, journal: FileIO) -> None:
        self.folder, self._journal = folder, journal
        self.output = folder / OUTPUT
        self.state = State()
        self.fresh = not (folder / PLAN).exists()
        """Whether nothing of an earlier run is here."""

    def plan(self) -> dict[str, Any] | None:
        """The plan of a run that was begun here, if there is one."""
        try:
            plan: dict[str, Any] = parse_json((self.folder / PLAN).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise WorkLostError("what an earlier run left is damaged") from None
        return plan

    def begin(self, plan: dict[str, Any]) -> None:
        """Discard what an earlier run left, and write the plan of this one."""
        (self.folder / PLAN).unlink(missing_ok=True)
        self._journal.truncate(0)
        with _private(self.output) as file:
            file.truncate(0)
        write_whole(self.folder / PLAN, json.dumps(plan).encode(), 0o600)
        self.fresh = True

    def restore(self) -> None:
        """Go back to the last block that the journal lists, and cut off what follows it.

        A line that is not whole, and all after it, is what a power cut left: it is done again.
        """
        self._journal.seek(0)
        good = 0
        for line in self._journal.read().splitlines(keepends=True):
            if (state := State.of(line)) is None:
                break
            self.state, good = state, good + len(line)
        self._journal.truncate(good)
        if self.state.complete and not self.output.exists():
            return  # It has its own name already.
        with _private(self.output) as file:
            if os.fstat(file.fileno()).st_size < self.state.size:
                raise WorkLostError("the output of the earlier run is damaged")
            file.truncate(self.state.size)

    @contextmanager
    def appending(self) -> Iterator[Appender]:
        """Open the output for further blocks."""
        with _private(self.output) as file:
            yield Appender(self, file)

    def note(self, state: State) -> None:
        """Append a state to the journal, and wait until it is on disk."""
        write_through(self._journal, state.line())
        self.state = state

    def remove(self) -> None:
        """Remove the folder; the plan goes first, since a folder without one is no work."""
        with suppress(FileNotFoundError):
            (self.folder / PLAN).unlink()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Appender:
    """Writes blocks to the output of some work."""

    work: Work
    file: FileIO

    def append(self, data: bytes, state: State) -> None:
        """Write a block, then note in the journal that it was written."""
        write_through(self.file, data)
        self.work.note(state)


@contextmanager
def open_work(out: Path, *, resume: bool, overwrite: bool) -> Iterator[Work]:
    """The folder for this output, for this process alone; one without any work is removed."""
    folder = work_folder(out)
    if folder.exists() and (folder / PLAN).exists() and not (resume or overwrite):
        raise UsageError(
            "an earlier run on this output was stopped: go on with --resume, or " + START_ANEW
        )
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_own(folder)
    busy = "another process is writing this output: wait for it"
    with (
        locked(folder / LOCK, wait=False, busy=busy, private=True),
        _private(folder / JOURNAL) as journal,
    ):
        work = Work(folder, journal)
        try:
            yield work
        finally:
            if work.fresh and not work.state.rows:
                work.remove()


def _check_own(folder: Path) -> None:
    """Others may write where the output goes: what they made beforehand is not used."""
    status = folder.lstat()
    owner = getattr(os, "geteuid", lambda: status.st_uid)()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner:
        raise UsageError(
            "the work folder beside the output (its name begins with a dot and ends in "
            ".sanitizing) is a link or another user's: remove it, or write elsewhere"
        )
    folder.chmod(0o700)


def _private(file: Path) -> FileIO:
    """Open for reading, and for writing at the end; without a buffer that could fail later."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINKS, 0o600)
    return open(descriptor, "a+b", buffering=0)
