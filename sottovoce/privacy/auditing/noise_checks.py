"""Noise at the level of densities: log-ratios at points, draws against the density, and the plane.

In the plane the laws of words are exact: the density is integrated over the cell of each word.
From a word's vector, a ray meets the Voronoi cells of the words in intervals of the radius. Along
each interval the density is integrated by Gauss-Legendre, over the angle by the trapezoidal rule.
Any density will do that falls off at infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.auditing.exact import close_words
from sottovoce.privacy.auditing.findings import (
    RISK_OF_A_CHECK,
    Claim,
    Figures,
    Finding,
    Points,
    Step,
    Subject,
    Verdict,
    Witness,
    claims,
    structural,
)
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, FloatArray, IntArray

LogDensity = Callable[[Float64Array], Float64Array]

POINTS = 16
"""Noisy points drawn for each pair."""
ROUNDING = 1e-6
"""Share by which a difference of log-densities may exceed its bound: rounding."""
STEPS = (1e-3, 1e-1, 1.0, 10.0)
AXES = 4
SMALLEST = 1e-12
"""No noise of a continuous law is shorter."""
DIRECTIONS = 8
FITTED_AT_ONCE = 4096

ANGLES = 8192
NODES = 32
FALL = 40.0
"""Nats below its peak at which the mass along a ray no longer counts."""
ERROR = 1e-4
"""How far a log-ratio may be off by quadrature; a test measures a tenth of it."""


# Ratios of densities.


def density_ratios(subject: Subject[NoiseMechanism], _: Step) -> list[Finding]:
    """Compare log f(z - w) with log f(z - w') at drawn and at adversarial points z."""
    mechanism, vectors = subject.mechanism, subject.mechanism.space.vectors
    near = close_words(mechanism.space, subject.words, 2)
    words, others = np.repeat(subject.words, near.shape[1]), near.ravel()
    one, two = vectors[words].astype(np.float64), vectors[others].astype(np.float64)
    best, where = np.full(len(words), -np.inf), np.empty_like(one)
    points = _points(mechanism, words, one, two, subject.rng)
    for point in points:
        values = mechanism.log_density(point - one) - mechanism.log_density(point - two)
        better = values > best
        best[better], where[better] = values[better], point[better]
    count, findings = len(points) * len(words), []
    for claim in filter(lambda claim: claim.is_metric, subject.claims):
        far = claim.distances(mechanism, words, others)
        bounds = claim.epsilon * far
        excess, slack = best - bounds, ROUNDING * (1 + bounds)
        worst = int(np.argmax(excess - slack))
        largest_share = float((best / np.maximum(bounds, 1e-300)).max())
        figures: Figures = {"points": count, "pairs": len(words)}
        figures |= {"largest_share_of_bound": largest_share, "worst_excess": float(excess[worst])}
        witness = None
        sentence = (
            f"at {count:,} points, drawn and adversarial, for {len(words)} close pairs no "
            f"log-ratio of densities exceeds its bound; the largest reaches {largest_share:.1%} of "
            "it."
        )
        if excess[worst] > slack[worst]:
            sentence = "the density of the noisy point exceeds the bound for two close words."
            first, second = mechanism.space.words(np.array([words[worst], others[worst]]))
            length = float(np.linalg.norm(where[worst] - one[worst]))
            output = f"a noisy point at distance {length:.3g} from the first"
            witness = Witness(first, second, output, None, float(best[worst]), float(bounds[worst]))
        verdict: Verdict = "REFUTED" if witness else "NOT REFUTED"
        compared = Points(far, best, bounds)
        finding = Finding("density", claim.label, verdict, sentence, witness, figures, compared)
        findings.append(finding)
    return findings


def _points(
    mechanism: NoiseMechanism, words: IntArray, one: Float64Array, two: Float64Array, rng: Generator
) -> list[Float64Array]:
    """Where to look: draws; beyond w, seen from w'; near either, along the axes of the space."""
    drawn = (mechanism.perturb(words, Draws([(rng, len(words))])) for _ in range(POINTS))
    points = [noisy.astype(np.float64) for noisy in drawn]
    apart = two - one
    length = np.linalg.norm(apart, axis=1, keepdims=True)
    points += [one - step * apart for step in STEPS]
    axes = np.linalg.eigh(mechanism.space.covariance)[1].T
    for axis in np.unique(np.concatenate([axes[:AXES], axes[-AXES:]]), axis=0):
        for step in STEPS[:3]:
            points += [
                centre + sign * step * length * axis for centre in (one, two) for sign in (1, -1)
            ]
    return points


# Draws against their density.


def draws_follow_density(subject: Subject[NoiseMechanism], _: Step) -> list[Finding]:
    """Whether what is added to words has the density that is stated for it."""
    mechanism, rng, added = subject.mechanism, subject.rng, []
    for start in range(0, subject.few_draws, FITTED_AT_ONCE):
        count = min(FITTED_AT_ONCE, subject.few_draws - start)
        words = rng.integers(mechanism.space.size, size=count)
        points = mechanism.perturb(words, Draws([(rng, count)]))
        added.append(points.astype(np.float64) - mechanism.space.vectors[words])
    return fit_of_density(mechanism.log_density, np.concatenate(added), rng)


def fit_of_density(log_density: LogDensity, noise: Float64Array, rng: Generator) -> list[Finding]:
    """Whether noise vectors follow a density: their radii and their directions.

    Along a ray, all these densities fall exponentially: what was lost since the ray's start,
    log f(0+) - log f(x), then has a Gamma(d) law. In any direction v, integrating by parts gives
    E[(v.x) (v.grad log f(x))] = -1, which fails for a wrong scale or shape along v.
    """
    from scipy.special import gammainc, ndtri

    (draws, dimension), name = noise.shape, "draws follow the density"
    if still := int((np.abs(noise).max(axis=1) < SMALLEST).sum()):
        sentence = f"{still:,} of {draws:,} noise vectors are zero: nothing is added."
        return structural(name, "REFUTED", sentence, {"draws": draws})
    full, half = (log_density(noise * share) for share in (1.0, 0.5))
    start = log_density(noise * 1e-9)
    lost = start - full
    figures: Figures = {"draws": draws}
    wrong: list[str] = []
    # Half the way loses half as much: otherwise the radius has another law than Gamma.
    if np.allclose(start - half, lost / 2, rtol=1e-6, atol=1e-6):
        chance = uneven(gammainc(dimension, lost))
        figures["radius_p_value"] = chance
        figures["mean_radius_ratio"] = float(lost.mean() / dimension)
        if chance < RISK_OF_A_CHECK / 2:
            wrong.append(
                f"their lengths are {lost.mean() / dimension:.3g} times what the density says"
            )
    moments = _moments(log_density, noise, rng)
    # Sums of skewed terms: ask for more than the normal law would.
    limit = float(-ndtri(RISK_OF_A_CHECK / (40 * len(moments))))
    largest = float(np.abs(moments).max())
    figures |= {"direction_z": largest, "direction_limit": limit}
    if largest > limit:
        wrong.append("their spread along some direction is not what the density says")
    if wrong:
        sentence = f"{draws:,} noise vectors do not follow the stated density: " + "; ".join(wrong)
        return structural(name, "REFUTED", sentence + ".", figures)
    sentence = f"lengths and directions of {draws:,} noise vectors fit the stated density."
    return structural(name, "NOT REFUTED", sentence, figures)


def uneven(shares: Float64Array) -> float:
    """How likely shares as uneven as these are at most, if any share from 0 to 1 is as likely.

    The test of Kolmogorov and Smirnov: twice the exact chance of one side, which where it is small
    is that of both. scipy.stats would take longer to import than this check takes.
    """
    from scipy.special import smirnov

    steps = np.arange(len(shares) + 1) / len(shares)
    ordered = np.sort(shares)
    gap = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    return min(1.0, 2 * float(smirnov(len(shares), gap)))


def _moments(log_density: LogDensity, noise: Float64Array, rng: Generator) -> Float64Array:
    """z-scores of the identity in directions: random ones, and the axes of most and least spread.

    The axes come from one half of the draws, the scores from the other.
    """
    pilot, fresh = noise[::2], noise[1::2]
    axes = np.linalg.eigh(np.atleast_2d(np.cov(pilot, rowvar=False)))[1].T
    random = rng.standard_normal((DIRECTIONS, noise.shape[1]))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    directions = np.concatenate([axes[:AXES], axes[-AXES:], random])
    scores, here = np.empty(len(directions)), log_density(fresh)
    step = 1e-5 * np.linalg.norm(fresh, axis=1, keepdims=True)
    for row, direction in enumerate(directions):
        # v.x times the slope of log f along v.
        slope = (log_density(fresh + step * direction) - here) / step[:, 0]
        terms = fresh @ direction * slope + 1
        scores[row] = terms.mean() / (terms.std(ddof=1) / np.sqrt(len(terms)) + 1e-12)
    return scores


# Exact laws in the plane.


def in_the_plane(flat: NoiseMechanism) -> list[Finding]:
    """The exact audit of a noise rebuilt on the plane's six words, for each metric claim."""
    law = plane_law(flat.space.vectors, flat.log_density)
    return [_plane_finding(flat, claim, law) for claim in claims(flat) if claim.is_metric]


def plane_law(vectors: FloatArray, log_density: LogDensity, angles: int = ANGLES) -> Float64Array:
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


def _ends(rays: Float64Array, log_density: LogDensity) -> tuple[Float64Array, float]:
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
    log_density: LogDensity,
    peak: float,
) -> Float64Array:
    """The integral of density times radius over each interval of each ray."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    masses = np.zeros_like(lower)
    # Most rays miss most cells.
    met = np.nonzero(upper > lower)
    start, half = lower[met], (upper[met] - lower[met]) / 2
    total = np.zeros_like(half)
    for node, weight in zip(nodes, weights, strict=True):
        radius = start + half * (1 + node)
        logs = log_density(rays[met[0]] * radius[:, None])
        total += weight * half * radius * np.exp(logs - peak)
    masses[met] = total
    return masses


def worst_of(law: Float64Array, bounds: Float64Array) -> tuple[float, float, int, int, int]:
    """(log-ratio, bound, input, other input, output) of the pair that exceeds its bound most."""
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    ratios = logs[:, None, :] - logs[None, :, :]
    excess = ratios - bounds[:, :, None]
    np.einsum("iij->ij", excess)[:] = -np.inf
    one, other, output = map(int, np.unravel_index(np.argmax(excess), excess.shape))
    return float(ratios[one, other, output]), float(bounds[one, other]), one, other, output


def _plane_finding(mechanism: NoiseMechanism, claim: Claim, law: Float64Array) -> Finding:
    count = len(law)
    one, other = (index.ravel() for index in np.indices((count, count)))
    far = claim.distances(mechanism, one, other)
    bounds = claim.epsilon * far
    ratio, bound, first, second, output = worst_of(law, bounds.reshape(count, count))
    losses = np.log(law)[:, None, :] - np.log(law)[None, :, :]
    apart = one != other
    points = Points(far[apart], losses.max(axis=2).ravel()[apart], bounds[apart])
    figures: Figures = {"log_ratio": ratio, "bound": bound}
    where = "its noise on six words of the plane, integrated over their cells "
    where += f"({claim.guarantee.metric}):"
    if ratio <= bound + ERROR:
        sentence = f"{where} at most {ratio:.3g} nats where {bound:.3g} are allowed."
        return Finding("plane, exact", claim.label, "NOT REFUTED", sentence, None, figures, points)
    chances = float(law[first, output]), float(law[second, output])
    ids = (first, second, output)
    witness = Witness.of_words(mechanism.space, ids, chances, ratio, bound)
    if not mechanism.releases_nearest:
        nearest = f"{witness.output} as the word nearest to the noisy point, which is not always "
        witness = replace(witness, output=f"{nearest}released")
    sentence = f"{where} a bound is exceeded."
    return Finding("plane, exact", claim.label, "REFUTED", sentence, witness, figures, points)
