"""The public function behind the vectors of a space that was made with a text encoder.

A word that such a space lacks has a vector, too: encoded by the same function, and projected onto
the same axes where the space has fewer dimensions than its encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float32Array, Float64Array

ROWS_AT_A_TIME = 16384


@dataclass(frozen=True)
class SpaceEncoder:
    """Which text encoder gave the words of a space their vectors.

    name
        What the encoder is loaded by.
    fingerprint
        The hash of everything that decides its vectors: another one is another function.
    dimension
        Of the encoder's vectors; those of the space have fewer where they were projected.
    """

    name: str
    fingerprint: str
    dimension: int


def principal_axes(vectors: Float32Array, count: int) -> Float64Array:
    """The directions in which the vectors differ most, one a column, (dimension, count)."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    spread = np.zeros((len(mean), len(mean)))
    with single_threaded_blas():
        for start in range(0, len(vectors), ROWS_AT_A_TIME):
            centered = vectors[start : start + ROWS_AT_A_TIME] - mean
            spread += centered.T @ centered
        # Eigenvectors come in ascending order of their variance.
        return np.ascontiguousarray(np.linalg.eigh(spread)[1][:, ::-1][:, :count])


def projected(vectors: Float32Array, axes: Float64Array) -> Float32Array:
    """The coordinates of vectors along the axes; a vector's do not depend on the others.

    BLAS rounds differently for different shapes, so every row is a product of its own.
    """
    width = vectors.shape[1]
    out = np.empty((len(vectors), axes.shape[1]), dtype=np.float32)
    with single_threaded_blas():
        for start in range(0, len(vectors), ROWS_AT_A_TIME):
            rows = vectors[start : start + ROWS_AT_A_TIME].astype(np.float64)
            out[start : start + len(rows)] = np.matmul(rows[:, None, :], axes[:width])[:, 0]
    # An affine map has one row more, which is added to all.
    out += axes[width:].sum(axis=0).astype(np.float32)
    return out
