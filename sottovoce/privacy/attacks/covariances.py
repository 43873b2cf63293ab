"""Means and covariances: of the words of a space, and of the noise of a mechanism."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import Draws
from sottovoce.types import Float32Array, Float64Array

NOISE_DRAWS = 100
"""Draws for each dimension by which an unknown covariance is estimated."""
ROWS_AT_A_TIME = 4096


def noise_covariance(mechanism: NoiseMechanism, rng: Generator) -> Float64Array:
    """The covariance of the noise, exact or from draws of it; always invertible."""
    covariance = mechanism.noise_covariance
    if covariance is None:
        covariance = _estimated_covariance(mechanism, rng)
    # There may be directions without any noise.
    size = len(covariance)
    return np.asarray(covariance + 1e-6 * np.trace(covariance) / size * np.eye(size))


def _estimated_covariance(mechanism: NoiseMechanism, rng: Generator) -> Float64Array:
    dimension = mechanism.space.dimension
    total = np.zeros((dimension, dimension))
    left = count = NOISE_DRAWS * dimension
    while left:
        noise = mechanism.noise(Draws([(rng, min(left, ROWS_AT_A_TIME))]))
        total += noise.T @ noise
        left -= len(noise)
    return total / count


def moments(
    vectors: Float32Array, weights: Float64Array | None = None
) -> tuple[Float64Array, Float64Array]:
    """Mean and covariance of vectors, some rows at a time, perhaps weighted."""
    share = np.ones(len(vectors)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    dimension = vectors.shape[1]
    mean, second = np.zeros(dimension), np.zeros((dimension, dimension))
    for start in range(0, len(vectors), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        mean += share[rows] @ vectors[rows]
    for start in range(0, len(vectors), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        scaled = (vectors[rows] - mean) * np.sqrt(share[rows])[:, None]
        second += scaled.T @ scaled
    return mean, second
