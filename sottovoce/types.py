"""Types that the rooms share, and progress counted up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
Float32Array: TypeAlias = NDArray[np.float32]
Float64Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and of how much."""

UNKNOWN = -1
"""The id of a word that a space does not know."""
ENCODED = -2
"""The id of a word that a space does not list, but whose vector its encoder gives."""


def count_up(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Tells ``progress`` of everything so far, given how much was done since the last call."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    return count
