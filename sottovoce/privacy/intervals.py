"""Confidence intervals for shares that were counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.types import Float64Array

LEVEL = 0.95
"""The confidence of every interval unless told otherwise."""


def at_least(successes: ArrayLike, draws: ArrayLike, risk: float = 1 - LEVEL) -> Float64Array:
    """The one-sided Clopper-Pearson bound from below: wrong with probability ``risk`` at most."""
    from scipy.stats import beta

    hit, all_ = _counts(successes, draws)
    return np.asarray(np.where(hit == 0, 0.0, beta.ppf(risk, hit, all_ - hit + 1)))


def at_most(successes: ArrayLike, draws: ArrayLike, risk: float = 1 - LEVEL) -> Float64Array:
    """The one-sided Clopper-Pearson bound from above: wrong with probability ``risk`` at most."""
    from scipy.stats import beta

    hit, all_ = _counts(successes, draws)
    return np.asarray(np.where(hit == all_, 1.0, beta.ppf(1 - risk, hit + 1, all_ - hit)))


def interval(
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
