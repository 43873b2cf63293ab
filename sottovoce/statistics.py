"""How sure a measurement is: intervals of shares and means, resampling, tests, corrections.

Resampling has a seed, so that the same values always have the same interval; no privacy depends on
it. scipy resamples in another order, which would change every figure that was printed before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

LEVEL = 0.95
"""The confidence of every interval unless told otherwise."""
ALPHA = 0.05
"""The level of every test."""
NOTHING_SEEN = 3.0
"""Rule of three: what n items never showed has, with 95 % confidence, a share of at most 3 / n."""
SAMPLES = 2000
"""Resamples of a bootstrap of many rows at once."""
FINE_SAMPLES = 10_000
"""Resamples of a bootstrap of one mean."""
PERMUTATIONS = 10_000
"""Random signs of a randomization test."""
EXACT_PAIRS = 16
"""Up to so many pairs, a randomization test counts all signs."""
RARE = 10
"""Tests that came as far less often get more random signs, where more are needed."""
SAME = 1e-9
"""Sums as near as this, relative to the largest possible one, count as equal."""
NUMBERS_AT_A_TIME = 1 << 18
SIGNS_AT_A_TIME = 1 << 11
_HAIR = 1e-12


# Shares that were counted, by Clopper and Pearson.


def at_least(successes: ArrayLike, draws: ArrayLike, risk: float = 1 - LEVEL) -> Float64Array:
    """The one-sided Clopper-Pearson bound from below: wrong with probability ``risk`` at most."""
    from scipy.special import betaincinv

    hit, all_ = _counts(successes, draws)
    return np.asarray(np.where(hit == 0, 0.0, betaincinv(hit, all_ - hit + 1, risk)))


def at_most(successes: ArrayLike, draws: ArrayLike, risk: float = 1 - LEVEL) -> Float64Array:
    """The one-sided Clopper-Pearson bound from above: wrong with probability ``risk`` at most."""
    from scipy.special import betaincinv

    hit, all_ = _counts(successes, draws)
    return np.asarray(np.where(hit == all_, 1.0, betaincinv(hit + 1, all_ - hit, 1 - risk)))


def clopper_pearson(
    successes: ArrayLike, draws: ArrayLike, level: float = LEVEL
) -> tuple[Float64Array, Float64Array]:
    """The two-sided Clopper-Pearson interval."""
    tail = (1 - level) / 2
    return at_least(successes, draws, tail), at_most(successes, draws, tail)


def _counts(successes: ArrayLike, draws: ArrayLike) -> tuple[Float64Array, Float64Array]:
    hit, all_ = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    )
    if not ((all_ > 0) & (hit >= 0) & (hit <= all_)).all():
        raise UsageError("an interval needs at least one draw, and no more successes than draws")
    return hit, all_


# Means, by Student.


def t_interval(
    values: Float64Array, bounds: tuple[float, float], level: float = LEVEL
) -> tuple[float, float] | None:
    """Student's interval of the mean, within ``bounds``; there is none for a single value."""
    if values.size < 2:
        return None
    reach = _t_quantile(level, values.size - 1) * values.std(ddof=1) / values.size**0.5
    mean, (low, high) = values.mean(), bounds
    return max(float(mean - reach), low), min(float(mean + reach), high)


def mean_over_seeds(
    items: Sequence[IntArray], values: Sequence[Float64Array], bounds: tuple[float, float]
) -> tuple[float, tuple[float, float]]:
    """The mean over seeds of the mean over items, and its 95 % t interval.

    ``items`` are, for each seed, the numbers of the items whose values were measured. Two sources
    of chance are added: other items (one measured with several seeds counts once), and other seeds.
    Degrees of freedom by Welch and Satterthwaite. With one seed only the first is known; where
    nothing varied, the rule of three speaks for what was not seen.
    """
    means = np.array([by_item.mean() for by_item in values])
    # How far each item moves the mean, over all seeds it was measured with.
    influence = np.zeros(1 + max(int(numbers.max()) for numbers in items))
    for numbers, by_item in zip(items, values, strict=True):
        shares = (by_item - by_item.mean()) / (len(by_item) * len(means))
        np.add.at(influence, numbers, shares)
    measured = len(np.unique(np.concatenate(list(items))))
    by_items = float((influence**2).sum()) * measured / max(1, measured - 1)
    by_seeds = float(means.var(ddof=1)) / len(means) if len(means) > 1 else 0.0
    variance = by_items + by_seeds
    value = float(means.mean())
    if variance < 1e-24:
        reach = NOTHING_SEEN / measured
    else:
        freedom = by_items**2 / max(1, measured - 1) + by_seeds**2 / max(1, len(means) - 1)
        reach = _t_quantile(LEVEL, variance**2 / freedom) * float(np.sqrt(variance))
    low, high = bounds
    return value, (max(low, value - reach), min(high, value + reach))


def _t_quantile(level: float, freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + level) / 2, freedom))


# Means and more, by resampling.


def bootstrap_mean(
    values: Float64Array, level: float = LEVEL, samples: int = FINE_SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The percentile interval of the mean of some values; not numbers where there are none."""
    if not 0 < level < 1:
        raise UsageError(f"the level lies between 0 and 1, got {level}")
    if samples < 1:
        raise UsageError(f"a bootstrap needs at least 1 sample, got {samples}")
    if not len(values):
        return math.nan, math.nan
    rng, count = Generator(PCG64(seed)), len(values)
    at_a_time = max(1, NUMBERS_AT_A_TIME // count)
    sizes = [min(at_a_time, samples - start) for start in range(0, samples, at_a_time)]
    means = [values[rng.integers(count, size=(size, count))].mean(axis=1) for size in sizes]
    return percentiles(np.concatenate(means), level)


def bootstrap_means(values: Float64Array, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Percentile intervals of the means of rows, (rows, items), by the same resamples of items.

    Values that are not numbers were not measured; each row has at least one that was. Where all
    values of a row are alike, resampling sees nothing: the rule of three speaks for what so few
    items cannot show.
    """
    if not values.size:
        return np.empty(0), np.empty(0)
    measured = ~np.isnan(values)
    filled = np.where(measured, values, 0.0)
    (drawn,) = resamples(values.shape[1], SAMPLES, seed, at_a_time=SAMPLES)
    weights = drawn.T.astype(float)
    counts = measured.astype(float) @ weights
    means = np.divide(filled @ weights, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    quantile = np.nanquantile if np.isnan(means).any() else np.quantile
    low, high = quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    least, most = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    alike = (most - least < 1e-12) & (least >= 0) & (most <= 1)
    reach = NOTHING_SEEN / measured.sum(axis=1)
    low = np.where(alike, np.maximum(least - reach, 0.0), low)
    return low, np.where(alike, np.minimum(most + reach, 1.0), high)


def resamples(items: int, samples: int, seed: int, at_a_time: int) -> Iterator[IntArray]:
    """How often each item is in each resample, (samples, items), in blocks."""
    rng = Generator(PCG64(seed))
    share = np.full(items, 1 / items)
    for start in range(0, samples, at_a_time):
        yield rng.multinomial(items, share, size=min(at_a_time, samples - start))


def percentiles(resampled: Float64Array, level: float = LEVEL) -> tuple[float, float]:
    """The interval that holds the middle part of what was resampled."""
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


# Areas under ROC curves.


def auc_interval(
    area: float, positives: int, negatives: int, level: float = LEVEL
) -> tuple[float, float]:
    """The areas that a test at this level cannot tell from ``area``.

    The variance is Hanley and McNeil's (1982) at each candidate, so that the interval keeps a width
    where ``area`` is 0 or 1.
    """
    if not (0 <= area <= 1 and positives >= 1 and negatives >= 1):
        raise UsageError("an interval needs an area between 0 and 1, and at least one user a side")
    from scipy.optimize import brentq
    from scipy.stats import norm

    z = float(norm.ppf((1 + level) / 2))

    def excess(candidate: float) -> float:
        spread = z * math.sqrt(_auc_variance(candidate, positives, negatives))
        return abs(area - candidate) - spread

    # Without noise at 0 and 1 these would solve the equation too, for nothing.
    low = 0.0 if area == 0 else float(brentq(excess, 0.0, area * (1 - _HAIR)))
    high = 1.0 if area == 1 else float(brentq(excess, 1 - (1 - area) * (1 - _HAIR), 1.0))
    return low, high


def _auc_variance(area: float, positives: int, negatives: int) -> float:
    more = (positives - 1) * (1 - area) / (2 - area) + (negatives - 1) * area / (1 + area)
    return area * (1 - area) * (1 + more) / (positives * negatives)


# Paired tests.


def randomization_test(differences: Float64Array, *, seed: int = 0) -> Float64Array:
    """Two-sided p values of paired differences, (tests, pairs), by Fisher's randomization.

    Under the null hypothesis the two values of a pair might as well be exchanged, so the sign of
    their difference is a coin. The p value is the share of all ways the coins could have fallen
    that give a sum at least as far from 0; a difference of 0 says nothing.

    Exact for few pairs. Otherwise over random signs, the same for all tests; tests that hardly
    ever came as far get more of them where there are so many tests that the correction would leave
    nothing of the smallest p.
    """
    tests, pairs = differences.shape
    if pairs <= EXACT_PAIRS:
        return np.asarray(_as_far(differences, _every_sign(pairs)) / (1 << pairs))
    rng = Generator(PCG64(seed))
    as_far = _as_far(differences, _random_signs(rng, PERMUTATIONS, pairs)) + 1
    p = as_far / (PERMUTATIONS + 1)
    more = permutations_for(tests) - PERMUTATIONS
    rare = np.flatnonzero(as_far <= RARE)
    if more > 0 and len(rare):
        as_far[rare] += _as_far(differences[rare], _random_signs(rng, more, pairs))
        p[rare] = as_far[rare] / (PERMUTATIONS + more + 1)
    return p


def permutations_for(tests: int) -> int:
    """How many random signs so many tests need, lest the correction leave nothing."""
    return max(PERMUTATIONS, math.ceil(4 * tests / ALPHA))


def _as_far(differences: Float64Array, signs: Iterator[Float64Array]) -> Float64Array:
    """How often each test's sum comes as far from 0 as it is, with signs in blocks."""
    slack = SAME * np.abs(differences).sum(axis=1)
    observed = np.abs(differences.sum(axis=1)) - slack
    at_a_time = max(1, NUMBERS_AT_A_TIME // SIGNS_AT_A_TIME)
    parts = [slice(at, at + at_a_time) for at in range(0, len(differences), at_a_time)]
    times = np.zeros(len(differences))
    for block in signs:

        def count(part: slice, block: Float64Array = block) -> None:
            sums = block @ differences[part].T
            times[part] += np.count_nonzero(np.abs(sums, out=sums) >= observed[part], axis=0)

        parallel_map(count, parts)
    return times


def _every_sign(pairs: int) -> Iterator[Float64Array]:
    for start in range(0, 1 << pairs, SIGNS_AT_A_TIME):
        numbers = np.arange(start, min(start + SIGNS_AT_A_TIME, 1 << pairs))[:, None]
        yield _signs((numbers >> np.arange(pairs)) & 1)


def _random_signs(rng: Generator, count: int, pairs: int) -> Iterator[Float64Array]:
    for start in range(0, count, SIGNS_AT_A_TIME):
        size = min(SIGNS_AT_A_TIME, count - start)
        yield _signs(rng.integers(0, 2, size=(size, pairs), dtype=np.int8))


def _signs(coins: IntArray) -> Float64Array:
    return 2 * coins.astype(np.float64) - 1


def holm(p: Float64Array) -> Float64Array:
    """Holm's step-down adjusted p values: times the number of hypotheses not yet rejected.

    The probability of even one false claim in the family stays at the level.
    """
    order: IntArray = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def paired_effect(differences: Float64Array) -> float:
    """Cohen's d for pairs: the mean difference in standard deviations; infinite where all agree."""
    if len(differences) < 2:
        return math.nan
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread < SAME:
        return 0.0 if abs(mean) < SAME else math.copysign(math.inf, mean)
    return mean / spread
