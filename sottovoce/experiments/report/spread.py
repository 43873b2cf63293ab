"""Means over queries with 95 % intervals, many settings at once."""

from __future__ import annotations

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.evaluation.downstream.scores import NOTHING_SEEN
from sottovoce.experiments.report.table import Number
from sottovoce.experiments.results import Grid, Setting
from sottovoce.privacy import intervals
from sottovoce.privacy.intervals import LEVEL
from sottovoce.types import Float64Array

SAMPLES = 2000
SHARES = ("lazy[", "active[", "query[")
"""Measures that are 0 or 1 for each query, so that their mean is a share of queries."""
SHARES_SAID = "95 % Clopper–Pearson intervals"
BOOTSTRAP_SAID = "95 % bootstrap intervals over queries"


def estimates(grid: Grid, measure: str) -> dict[Setting, Number]:
    """The mean of each setting over its queries, with the interval that suits the measure."""
    here = np.flatnonzero((~np.isnan(grid.values)).any(axis=1))
    values = grid.values[here]
    low, high = shares(values) if measure.startswith(SHARES) else bootstrap(values)
    means = np.nanmean(values, axis=1) if len(here) else []
    return {
        grid.settings[place]: Number(float(mean), (float(start), float(end)))
        for place, mean, start, end in zip(here, means, low, high, strict=True)
    }


def interval_said(measure: str) -> str:
    """Which interval :func:`estimates` gives."""
    return SHARES_SAID if measure.startswith(SHARES) else BOOTSTRAP_SAID


def shares(values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Clopper and Pearson over queries: several seeds of a query are one observation, a mean."""
    counts = (~np.isnan(values)).sum(axis=1)
    hits = np.minimum(np.nansum(values, axis=1), counts)
    return intervals.interval(hits, np.maximum(counts, 1))


def bootstrap(values: Float64Array, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Percentiles of means of resampled queries, (settings, queries), the same for all settings.

    Where no query differs from another, resampling sees nothing: the rule of three speaks for what
    so few queries cannot show. Every setting has a value for at least one query.
    """
    if not values.size:
        return np.empty(0), np.empty(0)
    measured = ~np.isnan(values)
    filled = np.where(measured, values, 0.0)
    queries = values.shape[1]
    rng = Generator(PCG64(seed))
    drawn = rng.multinomial(queries, np.full(queries, 1 / queries), size=SAMPLES).T.astype(float)
    counts = measured.astype(float) @ drawn
    means = np.divide(filled @ drawn, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    tail = (1 - LEVEL) / 2
    quantile = np.nanquantile if np.isnan(means).any() else np.quantile
    low, high = quantile(means, [tail, 1 - tail], axis=1)
    least, most = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    alike = (most - least < 1e-12) & (least >= 0) & (most <= 1)
    reach = NOTHING_SEEN / measured.sum(axis=1)
    low = np.where(alike, np.maximum(least - reach, 0.0), low)
    return low, np.where(alike, np.minimum(most + reach, 1.0), high)
