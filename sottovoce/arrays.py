"""Services for arrays of vectors: files, norms, blocks of rows, the rounding error of products."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sottovoce.types import Float32Array, Float64Array

UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""
ROWS_IN_A_BLOCK = 16384


def read_array(file: Path, *, mapped: bool = True) -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped or read; ``ValueError`` if there is none in it."""
    try:
        if mapped:
            return npy.open_memmap(file, mode="r")
        with file.open("rb") as stream:
            array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
            return array
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # Of a damaged header numpy lets out what its parser happens to.
        raise ValueError(f"no array ({type(error).__name__})") from None


def row_norms(rows: NDArray[Any]) -> Float64Array:
    """Euclidean norms in float64."""
    exact = rows.astype(np.float64)
    return np.asarray(np.sqrt((exact * exact).sum(axis=1)))


def unit_rows(rows: Float32Array) -> Float32Array:
    """The rows at length 1; rows of zeros stay."""
    norms = row_norms(rows)[:, None]
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float32)


def row_blocks(array: Float32Array, rows: int = ROWS_IN_A_BLOCK) -> Iterator[Float32Array]:
    """The rows of a (mapped) array, a block at a time."""
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def accumulated_error(length: int) -> float:
    """The classical bound n u / (1 - n u) of a float32 sum of ``length`` products, any order."""
    # A few more operations: rounding the operands that we derive (half norms, unit vectors).
    steps = length + 4
    return steps * UNIT_ROUNDOFF / (1 - steps * UNIT_ROUNDOFF)
