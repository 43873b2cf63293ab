"""How well scores tell members from others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.privacy.intervals import LEVEL
from sottovoce.types import Float64Array

_HAIR = 1e-12


def auc(members: ArrayLike, others: ArrayLike) -> float:
    """The area under the ROC curve: how often a member scores above another; ties count half."""
    inside, outside = _scores(members, others)
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, side="left").astype(np.float64)
    not_above = np.searchsorted(ordered, inside, side="right")
    return float((below + not_above).sum() / (2 * len(inside) * len(outside)))


def auc_interval(
    area: float, members: int, others: int, level: float = LEVEL
) -> tuple[float, float]:
    """The areas that a test at this level cannot tell from ``area``.

    The variance is Hanley and McNeil's (1982) at each candidate, so that the interval keeps a width
    where ``area`` is 0 or 1.
    """
    if not (0 <= area <= 1 and members >= 1 and others >= 1):
        raise UsageError("an interval needs an area between 0 and 1, and at least one user a side")
    from scipy.optimize import brentq
    from scipy.stats import norm

    z = float(norm.ppf((1 + level) / 2))

    def excess(candidate: float) -> float:
        spread = z * math.sqrt(_variance(candidate, members, others))
        return abs(area - candidate) - spread

    # Without noise at 0 and 1 these would solve the equation too, for nothing.
    low = 0.0 if area == 0 else float(brentq(excess, 0.0, area * (1 - _HAIR)))
    high = 1.0 if area == 1 else float(brentq(excess, 1 - (1 - area) * (1 - _HAIR), 1.0))
    return low, high


def either_way(low: float, high: float) -> tuple[float, float]:
    """The interval of max(area, 1 - area): who errs always may as well be turned around."""
    if low <= 0.5 <= high:
        return 0.5, max(high, 1 - low)
    return (low, high) if low > 0.5 else (1 - high, 1 - low)


def threshold_at(others: ArrayLike, share: float) -> float:
    """The score that at most this share of the others exceed."""
    _, outside = _scores([0.0], others)
    if not 0 <= share < 1:
        raise UsageError("the share of false alarms is at least 0 and less than 1")
    allowed = math.floor(share * len(outside) + 1e-9)
    return float(np.sort(outside)[::-1][allowed])


def _variance(area: float, members: int, others: int) -> float:
    more = (members - 1) * (1 - area) / (2 - area) + (others - 1) * area / (1 + area)
    return area * (1 - area) * (1 + more) / (members * others)


def _scores(members: ArrayLike, others: ArrayLike) -> tuple[Float64Array, Float64Array]:
    inside, outside = np.asarray(members, np.float64), np.asarray(others, np.float64)
    if not (inside.size and outside.size):
        raise UsageError("at least one member and one other are needed")
    if not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise UsageError("scores must be finite numbers")
    return inside, outside
