"""A Gaussian cut off by many half-spaces, by expectation propagation (Minka 2001), in float32.

Each half-space ``normals[j] @ x > limits[j]`` is stood in for by a Gaussian factor along its
normal: a precision ``widths[j]`` and a linear term ``shifts[j]``, matched to the two moments of
the truth. All factors are matched at once, damped, a fixed number of times, so that the result is
deterministic. Half-spaces that x is safely inside of are dropped on the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.blas import ssyrk, strmm
from scipy.linalg.lapack import spotrf, spotrs, strtri
from scipy.special import erfcx

from sottovoce.types import Float32Array, Float64Array, IntArray

DAMPING = 0.9
FLOOR = np.float32(1e-6)
"""A width that says nothing."""
SMALLEST = 1e-6
"""No factor may narrow a direction by more than this at once."""
SAFE = 4.5
"""Half-spaces whose edge is so many deviations away are dropped."""
WORTH_DROPPING = 0.2
"""They are dropped once they are this share of all."""


class Cut(NamedTuple):
    """Mean of x, and which half-spaces are left with what factors."""

    mean: Float32Array
    rows: IntArray
    widths: Float32Array
    shifts: Float32Array


def cut_off(
    normals: Float32Array,
    limits: Float32Array,
    widths: Float32Array,
    shifts: Float32Array,
    sweeps: int,
) -> Cut:
    """The mean of a standard normal x with ``normals @ x > limits``, from factors to start with."""
    rows = np.arange(len(normals))
    for _ in range(sweeps):
        mean, variances = _marginals(normals, widths, shifts)
        # ``dot``: after ``@`` numpy warns of flags that BLAS sets for numbers it does not use.
        inside, new_widths, new_shifts = _matched(
            np.dot(normals, mean).astype(np.float64), variances, widths, shifts, limits
        )
        widths = (widths + DAMPING * (new_widths - widths)).astype(np.float32)
        shifts = (shifts + DAMPING * (new_shifts - shifts)).astype(np.float32)
        near = inside < SAFE
        if near.sum() < (1 - WORTH_DROPPING) * len(near):
            normals, limits, rows = normals[near], limits[near], rows[near]
            widths, shifts = widths[near], shifts[near]
    return Cut(_mean(normals, widths, shifts)[0], rows, widths, shifts)


def _mean(
    normals: Float32Array, widths: Float32Array, shifts: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """The mean of x given the factors, and the lower Cholesky factor of its precision."""
    strong = widths > FLOOR
    scaled = normals[strong] * np.sqrt(widths[strong])[:, None]
    size = normals.shape[1]
    precision = ssyrk(1.0, scaled.T, lower=1) if len(scaled) else np.zeros((size, size), np.float32)
    precision.flat[:: size + 1] += 1.0
    lower, failed = spotrf(precision, lower=1, clean=1)
    if failed:  # Some factors are so narrow that single precision loses the others beside them.
        exact = scaled.astype(np.float64)
        factor = np.linalg.cholesky(exact.T @ exact + np.eye(size))
        mean = cho_solve((factor, True), normals.T.astype(np.float64) @ shifts)
        return mean.astype(np.float32), factor.astype(np.float32)
    return spotrs(lower, normals.T @ shifts, lower=1)[0].ravel(), lower


def _marginals(
    normals: Float32Array, widths: Float32Array, shifts: Float32Array
) -> tuple[Float32Array, Float64Array]:
    """The mean of x, and the variance of x along each normal."""
    if not (widths > FLOOR).any():  # Nothing matched yet: x is as it was before looking.
        return normals.T @ shifts, np.einsum("ij,ij->i", normals, normals).astype(np.float64)
    mean, lower = _mean(normals, widths, shifts)
    half = strmm(1.0, strtri(lower, lower=1)[0], normals.T, lower=1)
    return mean, np.einsum("ij,ij->j", half, half).astype(np.float64)


def _matched(
    along: Float64Array,
    variances: Float64Array,
    widths: Float32Array,
    shifts: Float32Array,
    limits: Float32Array,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """How far inside each half-space x is, and the factors with the moments of the cut-off."""
    # The cavity: what all other factors say about this direction.
    rest = np.maximum(1 / variances - widths, SMALLEST / variances)
    center = (along / variances - shifts) / rest
    deviation = 1 / np.sqrt(rest)
    inside = (center - limits) / deviation
    # Mean and variance of a Gaussian cut off there, with phi / Phi by the scaled erfc.
    hazard = np.sqrt(2 / np.pi) / erfcx(-inside / np.sqrt(2))
    variance_left = np.clip(1 - hazard * (hazard + inside), SMALLEST, 1.0)
    new_widths = np.maximum(rest * (1 / variance_left - 1), FLOOR)
    new_shifts = (center + deviation * hazard) * rest / variance_left - center * rest
    return inside, new_widths, new_shifts
