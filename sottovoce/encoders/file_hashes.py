"""Hashes of a model's files, remembered: to read hundreds of megabytes at every start takes long.

A hash is remembered by where its files are, how large they are, and when they were last changed:
a file that is written to, or replaced, is read again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sottovoce.files import files_hash, write_whole
from sottovoce.paths import cache_folder

SETTLED = 2.0
"""Seconds after which a file's time of change tells a later change apart."""


def remembered_hash(files: Sequence[Path]) -> str:
    """The sha256 of the contents of files, as ``files_hash`` computes it."""
    stamps = [_stamp(file) for file in files]
    name = hashlib.sha256(json.dumps(stamps).encode()).hexdigest()
    note = cache_folder() / "hashes" / name
    with suppress(OSError, ValueError):
        if (
            len(bytes.fromhex(known := note.read_text(encoding="ascii")))
            == hashlib.sha256().digest_size
        ):
            return known
    known = files_hash(files)
    settled = all(time.time() - changed / 1e9 > SETTLED for *_, changed in stamps)
    if settled and stamps == [_stamp(file) for file in files]:
        with suppress(OSError):
            note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(note, known.encode("ascii"))
    return known


def _stamp(file: Path) -> tuple[str, int, int, int]:
    """Where a file is, its size, its number, and when anything of it was changed."""
    about = file.stat()
    return str(file.resolve()), about.st_size, about.st_ino, about.st_ctime_ns
