"""The ledger's anchor: how far it was, kept elsewhere, so that an older copy of it is noticed.

A ledger that was put back from a backup is sound in itself: its chain just ends earlier. The anchor
names the last record. It is written while no other process can write the ledger, after the record
is on disk, so that it may lag behind the ledger after a crash, and never leads.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sottovoce.files import beside
from sottovoce.ledger.book import Book
from sottovoce.paths import ledger_anchor, ledger_folder


@dataclass(frozen=True)
class Anchor:
    """Which ledger, by its key, how many records it has, and the hash of the last one."""

    ledger: str
    records: int
    head: str


def anchor_file(folder: Path) -> Path:
    """Where the anchor of the ledger in a folder is: not in that folder."""
    if folder == ledger_folder():
        return ledger_anchor()
    return folder.with_name(f"{folder.name}.anchor")


def read(folder: Path) -> Anchor | None:
    """The anchor of the ledger in a folder; None where there is none that can be read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(anchor_file(folder).read_bytes())
        return Anchor(str(content["ledger"]), int(content["records"]), str(content["head"]))
    return None


def holds(anchor: Anchor | None, book: Book) -> bool:
    """Whether a ledger has the record that its anchor names; an anchor of another one is none."""
    return anchor is None or anchor.ledger != book.name or book.has(anchor.records, anchor.head)


def write(folder: Path, book: Book) -> None:
    """Note where the ledger ends, as it is on disk; where that cannot be written, it lags."""
    file = anchor_file(folder)
    part = beside(file, secrets.token_hex(4))
    content = json.dumps(asdict(Anchor(book.name, *book.end))).encode()
    with suppress(OSError):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as out:
                out.write(content)
            # Nothing waits for the disk: what a power cut leaves of it is older, or unreadable.
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Forget how far the ledger was."""
    anchor_file(folder).unlink(missing_ok=True)
