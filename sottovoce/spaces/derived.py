"""Arrays that follow from a space alone, kept beside it on disk so that they are made once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from sottovoce.types import IntArray


def remembered(folder: Path | None, name: str, size: int, make: Callable[[], IntArray]) -> IntArray:
    """The array of this name and size, read from the folder, or made and, if possible, kept."""
    if folder is None:
        return make()
    file = folder / f"{name}.npy"
    with suppress(OSError, ValueError, EOFError):
        found: IntArray = np.load(file)
        if found.shape == (size,) and found.dtype.kind == "i":
            return found.astype(np.int64)
    made = make()
    with suppress(OSError):  # A folder that cannot be written to is no reason to fail.
        _write(file, made.astype(np.int32))
    return made


def _write(file: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> None:
    handle, aside = tempfile.mkstemp(prefix=".", suffix=".npy", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            np.save(out, array)
        os.chmod(aside, 0o644)
        os.replace(aside, file)
    except BaseException:
        os.unlink(aside)
        raise
