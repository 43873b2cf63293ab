"""Gaussians cut off by many half-spaces, by expectation propagation (Minka 2001).

Each half-space is stood in for by a Gaussian factor along its normal, matched to the two moments
of the truth; all factors are matched at once, damped, a fixed number of times. So the result is
deterministic, and close enough for an attacker to read the mean off it.
"""

from __future__ import annotations

import numpy as np

from sottovoce.types import Float64Array

DAMPING = 0.8
SMALLEST = 1e-10
"""No factor may narrow a direction by more than this at once."""


def truncated(normals: Float64Array, offsets: Float64Array, sweeps: int) -> Float64Array:
    """The mean of a standard normal x with ``normals @ x > offsets``."""
    from scipy.linalg import cho_solve, solve_triangular

    width = np.zeros(len(normals))
    shift = np.zeros(len(normals))
    for last in (*[False] * sweeps, True):
        precision = (normals.T * width) @ normals
        precision.flat[:: len(precision) + 1] += 1.0
        root = np.linalg.cholesky(precision)
        mean = cho_solve((root, True), normals.T @ shift, check_finite=False)
        if last:
            break
        along = solve_triangular(root, normals.T, lower=True, check_finite=False)
        wanted = _matched(normals @ mean, (along**2).sum(axis=0), width, shift, offsets)
        width += DAMPING * (wanted[0] - width)
        shift += DAMPING * (wanted[1] - shift)
    return np.asarray(mean)


def _matched(
    means: Float64Array,
    variances: Float64Array,
    width: Float64Array,
    shift: Float64Array,
    offsets: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """The factors that give each half-space's normal the moments of the truncated marginal."""
    from scipy.special import log_ndtr

    rest = np.maximum(1 / variances - width, SMALLEST / variances)
    cavity = 1 / rest
    centre = cavity * (means / variances - shift)
    deviation = np.sqrt(cavity)
    inside = (centre - offsets) / deviation
    hazard = np.exp(-0.5 * inside**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(inside))
    mean = centre + deviation * hazard
    variance = cavity * np.clip(1 - hazard * (hazard + inside), SMALLEST, 1.0)
    return 1 / variance - rest, mean / variance - centre * rest
