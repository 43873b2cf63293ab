"""Services for arrays of vectors: norms, blocks of rows, the rounding error of products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.types import Float32Array, Float64Array

UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""


def row_norms(rows: NDArray[Any]) -> Float64Array:
    """Euclidean norms in float64."""
    exact = rows.astype(np.float64)
    return np.asarray(np.sqrt((exact * exact).sum(axis=1)))


def unit_rows(rows: Float32Array) -> Float32Array:
    """The rows at length 1; rows of zeros stay."""
    norms = row_norms(rows)[:, None]
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float32)


def row_blocks(array: Float32Array, rows: int = 16384) -> Iterator[Float32Array]:
    """The rows of a (mapped) array, a block at a time."""
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def accumulated_error(length: int) -> float:
    """The classical bound n u / (1 - n u) of a float32 sum of ``length`` products, any order."""
    # A few more operations: rounding the operands that we derive (half norms, unit vectors).
    steps = length + 4
    return steps * UNIT_ROUNDOFF / (1 - steps * UNIT_ROUNDOFF)
