"""How well scores tell members from others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.types import Float64Array


def auc(members: ArrayLike, others: ArrayLike) -> float:
    """The area under the ROC curve: how often a member scores above another; ties count half."""
    inside, outside = _scores(members, others)
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, side="left").astype(np.float64)
    not_above = np.searchsorted(ordered, inside, side="right")
    return float((below + not_above).sum() / (2 * len(inside) * len(outside)))


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


def _scores(members: ArrayLike, others: ArrayLike) -> tuple[Float64Array, Float64Array]:
    inside, outside = np.asarray(members, np.float64), np.asarray(others, np.float64)
    if not (inside.size and outside.size):
        raise UsageError("at least one member and one other are needed")
    if not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise UsageError("scores must be finite numbers")
    return inside, outside
