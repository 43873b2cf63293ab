"""Arrays that follow from a space alone, kept beside it on disk so that they are made once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from sottovoce.files import whole_file
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
    # A folder that cannot be written to is no reason to fail.
    with suppress(OSError), whole_file(file) as part, part.open("wb") as out:
        np.save(out, made.astype(np.int32))
    return made
