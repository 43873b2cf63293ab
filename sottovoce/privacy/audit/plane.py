"""Noise in the plane: exact laws of the nearest word, by integrating the density over cells.

From a word's vector, a ray meets the Voronoi cells of the words in intervals of the radius. Along
each interval the density is integrated by Gauss-Legendre, over the angle by the trapezoidal rule.
Any density will do that falls off at infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.mechanisms.vickrey import Vickrey
from sottovoce.privacy.audit.claims import Claim, claims
from sottovoce.privacy.audit.verdicts import Finding, Points, Witness
from sottovoce.types import Float64Array, FloatArray

Density = Callable[[Float64Array], Float64Array]

ANGLES = 8192
NODES = 32
FALL = 40.0
"""Nats below its peak at which the mass along a ray no longer counts."""
ERROR = 1e-4
"""How far a log-ratio may be off by quadrature; a test measures a tenth of it."""


def plane_law(vectors: FloatArray, log_density: Density, angles: int = ANGLES) -> Float64Array:
    """Row w, column o: the probability that o is the word nearest to w's noisy point."""
    words = np.asarray(vectors, dtype=np.float64)
    angle = (np.arange(angles) + 0.5) * 2 * np.pi / angles
    rays = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ends, peak = _ends(rays, log_density)
    law = np.empty((len(words), len(words)))
    for row, centre in enumerate(words):
        lower, upper = _intervals(words - centre, rays)
        upper = np.maximum(np.minimum(upper, ends[:, None]), lower)
        law[row] = _masses(rays, lower, upper, log_density, peak).sum(axis=0)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def _ends(rays: Float64Array, log_density: Density) -> tuple[Float64Array, float]:
    """Where each ray's mass has fallen off, and the largest mass per log-radius of all."""
    radii = 2.0 ** np.arange(-40, 40, 0.25)
    masses = np.stack([log_density(rays * radius) + 2 * np.log(radius) for radius in radii], axis=1)
    alive = masses > masses.max(axis=1, keepdims=True) - FALL
    last = alive.shape[1] - 1 - np.argmax(alive[:, ::-1], axis=1)
    return radii[np.minimum(last + 1, len(radii) - 1)], float(masses.max())


def _intervals(offsets: Float64Array, rays: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Between which radii each ray is in each word's cell, (rays, words) each."""
    slope = rays @ offsets.T
    square = (offsets * offsets).sum(axis=1)
    # |r u - o|^2 <= |r u - p|^2 for every p: r * gain <= margin.
    gain = 2 * (slope[:, None, :] - slope[:, :, None])
    margin = square[None, None, :] - square[None, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = margin / gain
    upper = np.where(gain > 0, limit, np.inf).min(axis=2)
    lower = np.where(gain < 0, limit, 0.0).max(axis=2)
    blocked = ((gain == 0) & (margin < 0)).any(axis=2)
    lower = np.maximum(lower, 0.0)
    return np.where(blocked, 0.0, lower), np.where(blocked, 0.0, upper)


def _masses(
    rays: Float64Array,
    lower: Float64Array,
    upper: Float64Array,
    log_density: Density,
    peak: float,
) -> Float64Array:
    """The integral of density times radius over each interval of each ray."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = (upper - lower) / 2
    total = np.zeros_like(half)
    for node, weight in zip(nodes, weights, strict=True):
        radius = lower + half * (1 + node)
        logs = log_density(rays[:, None, :] * radius[:, :, None])
        total += weight * half * radius * np.exp(np.where(half > 0, logs - peak, -np.inf))
    return total


def worst_of(law: Float64Array, bounds: Float64Array) -> tuple[float, float, int, int, int]:
    """(log-ratio, bound, input, other input, output) of the pair that exceeds its bound most."""
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    ratios = logs[:, None, :] - logs[None, :, :]
    excess = ratios - bounds[:, :, None]
    np.einsum("iij->ij", excess)[:] = -np.inf
    one, other, output = (int(each) for each in np.unravel_index(np.argmax(excess), excess.shape))
    return float(ratios[one, other, output]), float(bounds[one, other]), one, other, output


def in_the_plane(flat: NoiseMechanism) -> list[Finding]:
    """The exact audit of a noise rebuilt on the plane's six words, for each metric claim."""
    law = plane_law(flat.space.vectors, flat.log_density)
    return [
        _finding(flat, claim, law) for claim in claims(flat) if claim.guarantee.notion == "metric"
    ]


def _finding(mechanism: NoiseMechanism, claim: Claim, law: Float64Array) -> Finding:
    count = len(law)
    one, other = (each.ravel() for each in np.indices((count, count)))
    far = claim.distances(mechanism, one, other)
    bounds = claim.epsilon * far
    ratio, bound, first, second, output = worst_of(law, bounds.reshape(count, count))
    losses = np.log(law)[:, None, :] - np.log(law)[None, :, :]
    apart = one != other
    points = Points(far[apart], losses.max(axis=2).ravel()[apart], bounds[apart])
    figures: dict[str, float | int | None] = {"log_ratio": ratio, "bound": bound}
    name = "plane, exact"
    said = (
        "its noise on six words of the plane, integrated over their cells "
        f"({claim.guarantee.metric}):"
    )
    if ratio > bound + ERROR:
        words = mechanism.space.words(np.array([first, second, output]))
        chances = float(law[first, output]), float(law[second, output])
        released = f"'{words[2]}'"
        if isinstance(mechanism, Vickrey):
            released += " as the word nearest to the noisy point, which is not always released"
        witness = Witness(words[0], words[1], released, chances, ratio, bound)
        return Finding(
            name, claim.label, "REFUTED", f"{said} a bound is exceeded.", witness, figures, points
        )
    sentence = f"{said} at most {ratio:.3g} nats where {bound:.3g} are allowed."
    return Finding(name, claim.label, "NOT REFUTED", sentence, None, figures, points)
