"""Exact output laws of noise mechanisms in the plane, by integrating along rays.

From a word's vector, a ray in direction u meets the Voronoi cells of the words in intervals of
the radius; the radius has a Gamma(2, 1/epsilon) law, whose distribution function is closed.
What remains is a smooth periodic integral over the angle, done by the trapezoidal rule.
"""

from __future__ import annotations

import numpy as np


def plane_law(vectors, directions, epsilon):
    """Row w, column o: the probability that word w comes out as word o.

    ``directions`` are the rays, one for each of many equally likely angles; a ray's length is
    the noise per unit of radius.
    """
    words = np.asarray(vectors, dtype=np.float64)
    law = np.zeros((len(words), len(words)))
    for row, centre in enumerate(words):
        offset = words - centre
        slope = directions @ offset.T  # how fast each word gains along each ray
        square = (offset * offset).sum(axis=1)
        for column in range(len(words)):
            # |radius u - offset_o|^2 <= |radius u - offset_p|^2 for every p
            gain = 2 * (slope - slope[:, [column]])
            margin = square - square[column]
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = margin / gain
            upper = np.where(gain > 0, limit, np.inf).min(axis=1)
            lower = np.where(gain < 0, limit, 0.0).max(axis=1)
            blocked = ((gain == 0) & (margin < 0)).any(axis=1)
            inside = radius_law(upper, epsilon) - radius_law(np.maximum(lower, 0), epsilon)
            law[row, column] = np.where(blocked, 0.0, np.maximum(inside, 0.0)).mean()
    return law


def radius_law(radius, epsilon):
    """Distribution function of Gamma(2, 1/epsilon)."""
    scaled = epsilon * np.maximum(radius, 0.0)
    finite = np.where(np.isfinite(scaled), scaled, 0.0)
    return np.where(np.isfinite(scaled), 1 - np.exp(-finite) * (1 + finite), 1.0)


def circle(count=40_000):
    """Directions uniform on the unit circle."""
    angle = (np.arange(count) + 0.5) * 2 * np.pi / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def worst(law, distances, epsilon):
    """(log-ratio, bound, input, other input, output) of the pair that exceeds its bound most."""
    logs = np.log(law)
    ratios = logs[:, None, :] - logs[None, :, :]
    excess = ratios - epsilon * distances[:, :, None]
    np.einsum("iij->ij", excess)[:] = -np.inf
    first, second, output = np.unravel_index(np.argmax(excess), excess.shape)
    bound = epsilon * distances[first, second]
    return float(ratios[first, second, output]), float(bound), int(first), int(second), int(output)
