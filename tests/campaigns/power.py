"""Power cuts: what may be on a disk when the power goes, worked out from what was waited for.

Work is done once and watched: before and after every call that changes names or waits for the disk,
the whole folder is looked at. A cut at such a moment leaves

- the names as they were at some moment since names were last waited for;
- of each file what was waited for, or what was written since up to any byte of its last block,
  followed by nothing, by zeros, by noise, or by what was there before.

What SQLite does is not watched, it is another library's: ``log_of_a_charge`` has files to tear.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ledger_children import entry

from sottovoce.ledger import Ledger

CALLS = ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir", "chmod")
BLOCK = 4096


@dataclass(frozen=True)
class Seen:
    """A file or folder: its number on the disk, its mode, and what is in it."""

    inode: int
    mode: int
    content: bytes | None


@dataclass(frozen=True)
class Moment:
    """All names under a folder, what is surely on disk of each file, and since when names are."""

    names: dict[str, Seen]
    on_disk: dict[int, bytes]
    names_since: int


class Watched:
    """The moments of some work in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._on_disk: dict[int, bytes] = {}
        self._names_since = 0
        self.moments: list[Moment] = []
        self._renamed: list[int] = []
        """Moments right before and after a file or folder gets another name."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the folder around every call; what is there already is on disk."""
        self._look()
        for seen in self.moments[-1].names.values():
            if seen.content is not None:
                self._on_disk[seen.inode] = seen.content
        self.moments.clear()
        self._look()
        calls = {name: getattr(os, name) for name in CALLS}
        for name, call in calls.items():
            setattr(os, name, self._around(name, call))
        try:
            yield
        finally:
            for name, call in calls.items():
                setattr(os, name, call)
            self._look()

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self._look()
            if name in ("rename", "replace"):
                self._renamed += [len(self.moments) - 1, len(self.moments)]
            result = call(*arguments, **options)
            if name == "fsync":
                self._waited_for(arguments[0])
            self._look()
            return result

        return watched

    def _waited_for(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self._names_since = len(self.moments)
        else:
            self._on_disk[status.st_ino] = path.read_bytes()

    def _look(self) -> None:
        names = {}
        for path in sorted(self._folder.rglob("*")):
            try:
                status = path.lstat()
                content = None if path.is_dir() else path.read_bytes()
            except OSError:
                continue
            names[str(path.relative_to(self._folder))] = Seen(
                status.st_ino, status.st_mode & 0o777, content
            )
        since = min(self._names_since, len(self.moments))
        self.moments.append(Moment(names, dict(self._on_disk), since))

    def cut(self, rng: np.random.Generator, into: Path, *, at_end: bool) -> int:
        """Make the folder that a power cut leaves; answers how many files are not as written."""
        last = len(self.moments) - 1
        moments = self._renamed if self._renamed and rng.random() < 0.5 else range(last + 1)
        number = last if at_end else int(moments[int(rng.integers(0, len(moments)))])
        moment = self.moments[number]
        names = self.moments[int(rng.integers(moment.names_since, number + 1))].names
        newest = {seen.inode: seen.content for seen in moment.names.values()}
        torn_files = 0
        for name, seen in names.items():
            path = into / name
            if seen.content is None:
                path.mkdir(parents=True)
                path.chmod(seen.mode)
                continue
            written = newest.get(seen.inode) or seen.content
            kept = moment.on_disk.get(seen.inode, b"")
            data = written if written == kept else torn(kept, written, rng)
            torn_files += data != written
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(seen.mode)
        return torn_files


def torn(before: bytes, after: bytes, rng: np.random.Generator) -> bytes:
    """Some state between two contents of a file; writes reach the disk in any order."""
    how = int(rng.integers(0, 6))
    if how == 0:
        return before
    size = min(len(before), len(after))
    same = np.frombuffer(before[:size], np.uint8) == np.frombuffer(after[:size], np.uint8)
    first = size if same.all() else int(np.argmin(same))
    start = max(first, len(after) - BLOCK) if how < 4 else first
    place = int(rng.integers(start, len(after) + 1)) if start < len(after) else len(after)
    rest = len(after) - place
    tails = {
        1: b"",
        2: bytes(rest),
        3: rng.bytes(rest),
        4: before[place:],
        5: bytes(rest),
    }
    return after[:place] + tails[how]


@dataclass(frozen=True)
class LogOfACharge:
    """The files of a ledger before and after a charge, while its log is not yet taken over."""

    before: Path
    after: Path
    records: int = 3


def log_of_a_charge(folder: Path) -> LogOfACharge:
    """Charge while another connection keeps SQLite from emptying its log."""
    log = LogOfACharge(folder / "before", folder / "after")
    if folder.exists():
        return log
    ledger = Ledger.open(folder / "ledger")
    reader = sqlite3.connect(ledger.folder / "ledger.db")
    try:
        reader.execute("SELECT * FROM records").fetchall()
        for _ in range(log.records):
            ledger.charge(entry())
        shutil.copytree(ledger.folder, log.before)
        ledger.charge(entry())
        shutil.copytree(ledger.folder, log.after)
    finally:
        reader.close()
    for copy in (log.before, log.after):
        (copy / "ledger.db-shm").unlink()
    return log
