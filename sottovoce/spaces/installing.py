"""How what is added gets onto this machine: made aside, then moved into place as a whole."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sottovoce.errors import SpaceError
from sottovoce.files import move_folder

Say = Callable[[str], None]
"""Called with a sentence about what is going on, for people."""


@dataclass(frozen=True)
class Listed:
    """A space or other resource that is on this machine, or could be added to it."""

    name: str
    alias: str | None
    about: str
    words: int
    dimension: int | None
    installed: bool
    disk_bytes: int | None = None
    problem: str | None = None
    """Why an installed one cannot be opened, and what to do about it."""
    kind: str = "word space"


@contextmanager
def room_to_write(folder: Path) -> Iterator[Path]:
    """Give a scratch folder inside this one; what is left in it afterwards goes away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as scratch:
            yield Path(scratch)
    except OSError as error:
        raise SpaceError(
            f"could not write to {folder} ({error.strerror}): make room there, or choose "
            "another folder with the environment variable SOTTOVOCE_HOME"
        ) from None


def move_into_place(made: Path, target: Path, aside: Path, intact: Callable[[], bool]) -> None:
    """Move the finished folder into place; keep an existing intact one, replace a damaged one."""
    try:
        move_folder(made, target, aside, keep=intact)
    except OSError as error:
        raise SpaceError(
            f"could not write {target} ({error.strerror}): is the folder yours to write?"
        ) from None
