"""Means over queries with 95 % intervals, many settings at once."""

from __future__ import annotations

import numpy as np

from sottovoce.experiments.report.table import Number
from sottovoce.experiments.results import Grid, Setting
from sottovoce.statistics import bootstrap_means, clopper_pearson
from sottovoce.types import Float64Array

SHARES = ("lazy[", "active[", "query[")
"""Measures that are 0 or 1 for each query, so that their mean is a share of queries."""
SHARES_SAID = "95 % Clopper–Pearson intervals"
BOOTSTRAP_SAID = "95 % bootstrap intervals over queries"


def estimates(grid: Grid, measure: str) -> dict[Setting, Number]:
    """The mean of each setting over its queries, with the interval that suits the measure."""
    here = np.flatnonzero((~np.isnan(grid.values)).any(axis=1))
    values = grid.values[here]
    low, high = shares(values) if measure.startswith(SHARES) else bootstrap_means(values)
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
    return clopper_pearson(hits, np.maximum(counts, 1))
