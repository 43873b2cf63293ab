"""Noise at the level of densities: log-ratios at points, and whether draws follow the density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.audit.chance import SHARE
from sottovoce.privacy.audit.claims import Claim
from sottovoce.privacy.audit.exact import neighbours
from sottovoce.privacy.audit.verdicts import STRUCTURE, Finding, Points, Witness
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, IntArray

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


def density_ratios(
    mechanism: NoiseMechanism, claims: list[Claim], words: IntArray, rng: Generator
) -> list[Finding]:
    """Compare log f(z - w) with log f(z - w') at drawn and at adversarial points z."""
    near = neighbours(mechanism, words, 2)
    ids, others = np.repeat(words, near.shape[1]), near.ravel()
    vectors = mechanism.space.vectors
    one, two = vectors[ids].astype(np.float64), vectors[others].astype(np.float64)
    best, at = np.full(len(ids), -np.inf), np.empty_like(one)
    count = 0
    for points in _points(mechanism, ids, one, two, rng):
        values = mechanism.log_density(points - one) - mechanism.log_density(points - two)
        better = values > best
        best[better], at[better] = values[better], points[better]
        count += len(points)
    return [
        _ratio_finding(mechanism, claim, ids, others, best, at, count)
        for claim in claims
        if claim.guarantee.notion == "metric"
    ]


def _points(
    mechanism: NoiseMechanism,
    ids: IntArray,
    one: Float64Array,
    two: Float64Array,
    rng: Generator,
) -> list[Float64Array]:
    """Where to look: draws; beyond w, seen from w'; near either, along the axes of the space."""
    points = [
        mechanism.perturb(ids, Draws([(rng, len(ids))])).astype(np.float64) for _ in range(POINTS)
    ]
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


def _ratio_finding(
    mechanism: NoiseMechanism,
    claim: Claim,
    ids: IntArray,
    others: IntArray,
    best: Float64Array,
    at: Float64Array,
    count: int,
) -> Finding:
    far = claim.distances(mechanism, ids, others)
    bounds = claim.epsilon * far
    excess = best - bounds
    worst = int(np.argmax(excess - ROUNDING * (1 + bounds)))
    figures: dict[str, float | int | None] = {
        "points": count,
        "pairs": len(ids),
        "largest_share_of_bound": float((best / np.maximum(bounds, 1e-300)).max()),
        "worst_excess": float(excess[worst]),
    }
    points = Points(far, best, bounds)
    name = "density"
    if excess[worst] > ROUNDING * (1 + bounds[worst]):
        first, second = mechanism.space.words(np.array([ids[worst], others[worst]]))
        length = float(np.linalg.norm(at[worst] - mechanism.space.vectors[ids[worst]]))
        witness = Witness(
            first,
            second,
            f"a noisy point at distance {length:.3g} from the first",
            None,
            float(best[worst]),
            float(bounds[worst]),
        )
        sentence = "the density of the noisy point exceeds the bound for two close words."
        return Finding(name, claim.label, "REFUTED", sentence, witness, figures, points)
    sentence = (
        f"at {count:,} points, drawn and adversarial, for {len(ids)} close pairs no log-ratio of "
        f"densities exceeds its bound; the largest reaches "
        f"{figures['largest_share_of_bound']:.1%} of it."
    )
    return Finding(name, claim.label, "NOT REFUTED", sentence, None, figures, points)


def draws_follow_density(mechanism: NoiseMechanism, draws: int, rng: Generator) -> Finding:
    """Whether what is added to words has the density that is stated for it."""
    noise = np.concatenate(
        [
            _noise(mechanism, min(FITTED_AT_ONCE, draws - start), rng)
            for start in range(0, draws, FITTED_AT_ONCE)
        ]
    )
    return fit_of_density(mechanism.log_density, noise, rng)


def fit_of_density(log_density: LogDensity, noise: Float64Array, rng: Generator) -> Finding:
    """Whether noise vectors follow a density: their radii and their directions.

    Along a ray, all these densities fall exponentially: what was lost since the ray's start,
    log f(0+) - log f(x), then has a Gamma(d) law. In any direction v, integrating by parts gives
    E[(v.x) (v.grad log f(x))] = -1, which fails for a wrong scale or shape along v.
    """
    from scipy import stats

    (draws, dimension), name = noise.shape, "draws follow the density"
    if still := int((np.abs(noise).max(axis=1) < SMALLEST).sum()):
        sentence = f"{still:,} of {draws:,} noise vectors are zero: nothing is added."
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, {"draws": draws})
    full, half = (log_density(noise * share) for share in (1.0, 0.5))
    start = log_density(noise * 1e-9)
    lost = start - full
    figures: dict[str, float | int | None] = {"draws": draws}
    wrong: list[str] = []
    # Half the way loses half as much: otherwise the radius has another law than Gamma.
    if np.allclose(start - half, lost / 2, rtol=1e-6, atol=1e-6):
        fit = stats.kstest(lost, stats.gamma(dimension).cdf)
        figures["radius_p_value"] = float(fit.pvalue)
        figures["mean_radius_ratio"] = float(lost.mean() / dimension)
        if fit.pvalue < SHARE / 2:
            wrong.append(
                f"their lengths are {lost.mean() / dimension:.3g} times what the density says"
            )
    moments = _moments(log_density, noise, rng)
    # Sums of skewed terms: ask for more than the normal law would.
    limit = float(stats.norm.isf(SHARE / (40 * len(moments))))
    largest = float(np.abs(moments).max())
    figures |= {"direction_z": largest, "direction_limit": limit}
    if largest > limit:
        wrong.append("their spread along some direction is not what the density says")
    if wrong:
        sentence = f"{draws:,} noise vectors do not follow the stated density: " + "; ".join(wrong)
        return Finding(name, STRUCTURE, "REFUTED", sentence + ".", None, figures)
    sentence = f"lengths and directions of {draws:,} noise vectors fit the stated density."
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def _noise(mechanism: NoiseMechanism, count: int, rng: Generator) -> Float64Array:
    """What ``perturb`` really adds to a vector."""
    ids = rng.integers(mechanism.space.size, size=count)
    points = mechanism.perturb(ids, Draws([(rng, count)]))
    return points.astype(np.float64) - mechanism.space.vectors[ids]


def _moments(log_density: LogDensity, noise: Float64Array, rng: Generator) -> Float64Array:
    """z-scores of the identity in directions: random ones, and the axes of most and least spread.

    The axes come from one half of the draws, the scores from the other.
    """
    pilot, fresh = noise[::2], noise[1::2]
    dimension = noise.shape[1]
    axes = np.linalg.eigh(np.atleast_2d(np.cov(pilot, rowvar=False)))[1].T
    random = rng.standard_normal((DIRECTIONS, dimension))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    chosen = np.concatenate([axes[:AXES], axes[-AXES:], random])
    scores = np.empty(len(chosen))
    for row, axis in enumerate(chosen):
        along = fresh @ axis
        step = 1e-5 * np.linalg.norm(fresh, axis=1, keepdims=True)
        ahead, behind = fresh + step * axis, fresh - step * axis
        slope = (log_density(ahead) - log_density(behind)) / (2 * step[:, 0])
        terms = along * slope + 1
        scores[row] = terms.mean() / (terms.std(ddof=1) / np.sqrt(len(terms)) + 1e-12)
    return scores
