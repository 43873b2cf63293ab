"""Which words may be the most probable ones, found without the laws of all words.

Of an exponential mechanism, log p(y|w) = -epsilon/2 c(d(w, y)) - log Z(w), only Z(w) takes a pass
over all words. It has a lower bound without one. With y uniform over the m words that may be
released, other than w, and c concave, Jensen's inequality (twice) gives

    Z(w) >= 1[w may be released] + m exp(-epsilon/2 c(sqrt(E |w - y|^2))),

and E |w - y|^2 follows from E y and E |y|^2. So the distances to the words seen bound every word's
score from above. A word whose bound lies below the exact score of another one is out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.privacy.attacks.target import Target
from sottovoce.spaces.distances import Distances
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

LEADERS = 4
"""Words of the highest bounds whose exact scores set the bar of a position."""
BOUNDS_AT_ONCE = 1 << 24
"""Bounds held at once: 128 MiB."""
WORDS_AT_A_TIME, LAWS_AT_A_TIME = 256, 128
ROUNDING = 1e-9

Exact = Callable[[IntArray], Float64Array]
"""The exact scores (rows, words) of some words."""


def bounded(mechanism: WordMechanism) -> bool:
    """Whether the bound holds: all words have one law, and its cost is concave."""
    return isinstance(mechanism, ExponentialMechanism) and mechanism.has_concave_cost


def contenders(target: Target, seen: Any, columns: IntArray, exact: Exact) -> IntArray:
    """Ids, ascending, of all words that may have the highest score of some row of ``seen``.

    ``seen`` is a sparse matrix of counts: how often each of the words ``columns`` was seen.
    """
    mechanism, size = target.mechanism, target.space.size
    assert isinstance(mechanism, ExponentialMechanism)  # noqa: S101 - asked before
    least = _least_normalisers(mechanism)
    found = [np.empty(0, dtype=np.int64)]
    step = max(1, BOUNDS_AT_ONCE // size)
    for start in range(0, seen.shape[0], step):
        some = slice(start, min(start + step, seen.shape[0]))
        bounds = _bounds(target, mechanism, seen[some], columns, least)
        count = min(LEADERS, size)
        leaders = np.unique(np.argpartition(-bounds, count - 1, axis=1)[:, :count])
        parts = np.split(leaders, range(LAWS_AT_A_TIME, len(leaders), LAWS_AT_A_TIME))
        bar = np.max(parallel_map(lambda part: exact(part)[some].max(axis=1), parts), axis=0)  # noqa: B023
        # Nobody wins where nothing was seen, or something that no word releases (-inf).
        open_ = np.isfinite(bar) & (seen[some].getnnz(axis=1) > 0)
        bar = np.where(open_, bar - ROUNDING * (1 + np.abs(bar)), np.inf)
        found += [leaders, np.flatnonzero((bounds >= bar[:, None]).any(axis=0))]
    return np.unique(np.concatenate(found))


def _bounds(
    target: Target,
    mechanism: ExponentialMechanism,
    seen: Any,
    columns: IntArray,
    least: Float64Array,
) -> Float64Array:
    """Upper bounds of the scores of all words, (rows, words of the space)."""
    here = np.flatnonzero(seen.getnnz(axis=0))
    counts = seen[:, here]
    distances = Distances(target.space, columns[here])
    total = np.asarray(counts.sum(axis=1))
    out = np.empty((seen.shape[0], target.space.size))

    def fill(start: int) -> None:
        words = np.arange(start, min(start + WORDS_AT_A_TIME, target.space.size))
        costs = mechanism.cost(distances.rows(words)) * (-0.5 * mechanism.epsilon)
        out[:, words] = counts @ costs.T - total * least[words] + target.prior(words)

    parallel_map(fill, range(0, target.space.size, WORDS_AT_A_TIME))
    return out


def _least_normalisers(mechanism: ExponentialMechanism) -> Float64Array:
    """What log Z of no word of the space falls below."""
    vectors, released = mechanism.space.vectors, mechanism.released
    first, second = np.zeros(mechanism.space.dimension), 0.0
    for start in range(0, len(released), WORDS_AT_A_TIME):
        some = vectors[released[start : start + WORDS_AT_A_TIME]].astype(np.float64)
        first += some.sum(axis=0)
        second += float((some * some).sum())
    squares = np.empty(mechanism.space.size)
    for start in range(0, len(squares), WORDS_AT_A_TIME):
        some = vectors[start : start + WORDS_AT_A_TIME].astype(np.float64)
        own = (some * some).sum(axis=1) * len(released) - 2 * some @ first + second
        squares[start : start + len(some)] = own
    others = np.full(len(squares), len(released))
    others[released] -= 1
    typical = np.sqrt(np.maximum(squares, 0.0) / np.maximum(others, 1))
    with np.errstate(divide="ignore"):
        least = np.log(others) - 0.5 * mechanism.epsilon * mechanism.cost(typical)
    least[released] = np.logaddexp(least[released], 0.0)
    return np.asarray(least - ROUNDING)
