"""The k-subset law: which sets of public strings hide one string among others.

Wang et al., Mutual Information Optimally Local Private Discrete Distribution Estimation (arXiv
1607.08025), here also with decoys that are drawn by a public popularity. There are M strings, and x
is to be hidden. With probability p the set S holds x and k - 1 decoys, else k decoys. Decoys are
drawn one after the other with weights w that sum to 1, and all of them again until they are
different and none of them is x. So

    P(S | x) = W(S) inside(x)     if x is in S,       W(S) = product of w(y) over S,
               W(S) outside(x)    if it is not,
    inside(x)  = p (k - 1)! / (w(x) D(k - 1, x)),
    outside(x) = (1 - p) k! / D(k, x),

where D(j, x) is the probability that j draws are all different and none is x. With equal weights
these are p / C(M - 1, k - 1) and (1 - p) / C(M - 1, k). For a popularity pi the weights are such
that w(x) D(k - 1, x) is proportional to pi(x): then every member of a set has the same posterior
probability for whoever has pi as prior. Proofs are in ``docs/cover-law.md``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.types import Float64Array, IntArray

LARGEST_SHARE = 0.5
"""No string is expected as a decoy in more than this share of the sets."""
RAREST_SUCCESS = 1e-4
"""Sets of decoys that are all different must be drawn at least this often."""
SAME_WEIGHTS, MOST_DIVISIONS = 1e-13, 200
"""Weights are found when none changes by more than this share, after so many steps at most."""


class SubsetLaw:
    """The law of the sets of ``k`` strings out of ``size`` that hide one of them.

    ``popularity`` has a positive number for each string, of which only ratios count; None: decoys
    are drawn uniformly.
    """

    def __init__(self, size: int, k: int, p: float, popularity: Float64Array | None = None) -> None:
        if not 1 <= k < size:
            raise UsageError(
                f"a set of k = {k} needs a pool of more than {max(k, 1)} strings, and k of at "
                f"least 1; the pool has {size}: take a smaller k or a larger pool"
            )
        self.size, self.k, self.p = size, k, p
        self.popularity = None if popularity is None else _shares(popularity, size, k)
        share = k * (1 / size if self.popularity is None else float(self.popularity.max()))
        if not share <= p <= 1:
            raise UsageError(
                f"p must be between {share:.4g}, the share of sets in which a string is a decoy, "
                f"and 1, got {p:g}: below that, being in the set would speak against a string"
            )
        self._weights = None if self.popularity is None else _weights_for(self.popularity, k)

    # The law

    @cached_property
    def _logs(self) -> tuple[Float64Array, Float64Array]:
        """The logarithms of inside(x) and outside(x)."""
        k, size = self.k, self.size
        with np.errstate(divide="ignore"):  # p = 1: a set without x is impossible.
            chances = np.log([self.p, 1 - self.p])
        if self._weights is None:
            places = np.arange(1, k)
            # ln C(M - 1, k - 1), and C(M - 1, k) = C(M - 1, k - 1) (M - k) / k.
            ways = float(np.log((size - places) / places).sum())
            more = ways + math.log((size - k) / k)
            return np.full(size, chances[0] - ways), np.full(size, chances[1] - more)
        different = _all_different(self._weights, k)
        for_fewer, for_all = deque(_without_each(different, self._weights), maxlen=2)
        inside = chances[0] + math.lgamma(k) - np.log(self._weights * for_fewer)
        return inside, chances[1] + math.lgamma(k + 1) - np.log(for_all)

    @property
    def log_inside(self) -> Float64Array:
        """The logarithm of inside(x) for each string x."""
        return self._logs[0]

    @property
    def log_outside(self) -> Float64Array:
        """The logarithm of outside(x) for each string x; minus infinity for p = 1."""
        return self._logs[1]

    def log_weight(self, sets: IntArray) -> Float64Array:
        """The logarithm of W(S) of each row, which no input changes."""
        if self._weights is None:
            return np.zeros(len(sets))
        return np.asarray(np.log(self._weights)[sets].sum(axis=1))

    def log_law(self, sets: IntArray, inputs: IntArray) -> Float64Array:
        """The logarithm of P(S | x) of each set, a row of k places, for each x, (sets, inputs)."""
        sets, inputs = self._checked(sets), np.asarray(inputs, dtype=np.int64)
        members = np.zeros((len(sets), len(inputs)), dtype=bool)
        for column in sets.T:
            members |= column[:, None] == inputs
        either = np.where(members, self.log_inside[inputs], self.log_outside[inputs])
        return np.asarray(self.log_weight(sets)[:, None] + either)

    @cached_property
    def epsilon(self) -> float:
        """The most by which ln P(S | x) differs between any two inputs; infinite for p = 1."""
        if self.p == 1:
            return math.inf
        if self.popularity is None:
            return math.log(self.p * (self.size - self.k) / ((1 - self.p) * self.k))
        return max(0.0, *(loss for loss, _, _ in self.worst_pairs()))

    def worst_pairs(self) -> list[tuple[float, int, int]]:
        """For each way in which a set can meet two strings x, y: max ln P(S|x) / P(S|y), x, y."""
        inside, outside = self.log_inside, self.log_outside
        pairs = [_widest(inside, outside)]
        if np.isfinite(outside).all():
            pairs.append(_widest(outside, inside))
            if self.size >= self.k + 2:
                pairs.append(_widest(outside, outside))
        if self.k >= 2:
            pairs.append(_widest(inside, inside))
        return pairs

    # What a set tells

    def posterior(self, members: IntArray, prior: Float64Array | None = None) -> Float64Array:
        """How likely each string is the hidden one, given a set; exact, for a stated prior.

        Without a prior: the one that decoys match, for which all members are alike.
        """
        (members,) = self._checked(np.atleast_2d(members))
        beliefs = self.matched_prior if prior is None else np.asarray(prior, dtype=np.float64)
        if beliefs.shape != (self.size,) or not (beliefs >= 0).all() or not beliefs.any():
            raise UsageError(
                f"a prior has a number from 0 on for each of {self.size} strings, not 0 for all"
            )
        scores = self.log_outside.copy()
        scores[members] = self.log_inside[members]
        with np.errstate(divide="ignore"):
            scores += np.log(beliefs)
        if scores.max() == -np.inf:
            raise UsageError("the prior rules out every string that could have led to this set")
        chances = np.exp(scores - scores.max())
        return np.asarray(chances / chances.sum())

    @property
    def matched_prior(self) -> Float64Array:
        """The prior under which every member of a set is equally likely: the popularity."""
        return np.full(self.size, 1 / self.size) if self.popularity is None else self.popularity

    def decoy_chances(self, hidden: int) -> Float64Array:
        """The law of one decoy, any of those in a set that hides the string at this place."""
        chances = np.ones(self.size) if self._weights is None else self._weights.copy()
        if self._weights is not None and self.k > 1:
            # The first of j draws is y, and the others are different, neither it nor hidden.
            different = _all_different(self._weights, self.k)
            alone = self._weights[hidden : hidden + 1]
            different = np.concatenate(list(_without_each(different, alone)))
            fewer, some = deque(_without_each(different[:-1], self._weights), maxlen=2)
            chances *= self.p * fewer / different[-2] + (1 - self.p) * some / different[-1]
        chances[hidden] = 0
        return np.asarray(chances / chances.sum())

    # Drawing

    def draw(self, hidden: int, rng: Generator) -> IntArray:
        """One set that hides the string at this place: k places, ascending."""
        members = np.full(self.k, hidden)
        included = int(rng.random() < self.p)
        members[included:] = self._decoys(hidden, self.k - included, rng)
        members.sort()
        return members

    def _decoys(self, hidden: int, count: int, rng: Generator) -> IntArray:
        """``count`` different places, none of them ``hidden``."""
        if self._weights is None:
            places = rng.choice(self.size - 1, size=count, replace=False, shuffle=False)
            return np.asarray(places + (places >= hidden))
        while True:
            places = np.searchsorted(self._cumulated, rng.random(count), side="right")
            if len(np.unique(places)) == count and hidden not in places:
                return places

    @cached_property
    def _cumulated(self) -> Float64Array:
        assert self._weights is not None  # noqa: S101 - only asked for with weights
        sums = np.cumsum(self._weights)
        return np.asarray(sums[:-1] / sums[-1])

    def _checked(self, sets: IntArray) -> IntArray:
        rows = np.sort(np.asarray(sets, dtype=np.int64), axis=1)
        fits = rows.ndim == 2 and rows.shape[1] == self.k
        if not fits or (np.diff(rows, axis=1) <= 0).any() or rows.min() < 0:
            raise UsageError(f"a set has {self.k} different places of the pool")
        if rows.max() >= self.size:
            raise UsageError(f"the pool has {self.size} places, from 0")
        return rows


def _all_different(weights: Float64Array, k: int) -> Float64Array:
    """D(j), j = 0 ... k: the probability that j draws are all different.

    Newton's identities for the elementary symmetric polynomials e(j) = D(j) / j!.
    """
    powers = weights.copy()
    sums = []
    for _ in range(k):
        sums.append(float(powers.sum()))
        powers *= weights
    different = np.ones(k + 1)
    for j in range(1, k + 1):
        total, factor = 0.0, 1.0
        for i in range(1, j + 1):
            total += factor * different[j - i] * sums[i - 1]
            factor *= -(j - i)
        different[j] = total
    return different


def _without_each(different: Float64Array, weights: Float64Array) -> Iterator[Float64Array]:
    """D(j, x), j = 0, 1 ..., for each string: that j draws are different and none is x.

    D(j, x) = D(j) - j w(x) D(j - 1, x), since x can come in any of the j places.
    """
    without = np.ones(len(weights))
    yield without
    for j, chance in enumerate(different[1:], start=1):
        without = np.asarray(chance - j * weights * without)
        yield without


def _shares(popularity: Float64Array, size: int, k: int) -> Float64Array:
    """Positive weights as shares of 1, none so large that its string is nearly always a decoy."""
    weights = np.asarray(popularity, dtype=np.float64)
    if weights.shape != (size,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise UsageError(f"a popularity has a positive number for each of the {size} strings")
    shares, most = weights / weights.sum(), LARGEST_SHARE / k
    if most * size <= 1:
        return np.full(size, 1 / size)
    while shares.max() > most * (1 + 1e-12):
        # What is cut off the largest goes to all others in proportion.
        capped = shares >= most
        rest = shares[~capped].sum()
        shares = np.where(capped, most, shares * (1 - most * capped.sum()) / rest)
    return np.asarray(shares)


def _weights_for(popularity: Float64Array, k: int) -> Float64Array:
    """Weights with w(x) D(k - 1, x) proportional to the popularity of x, by repeated division."""
    weights = popularity
    for _ in range(MOST_DIVISIONS):
        different = _all_different(weights, k)
        if not different[k] >= RAREST_SUCCESS:
            raise UsageError(
                f"{k} different strings are hardly ever drawn from a pool of {len(weights)} with "
                "this popularity: take a smaller k, a larger pool, or decoys=uniform"
            )
        (fewer,) = deque(_without_each(different[:-1], weights), maxlen=1)
        better = popularity / fewer
        better /= better.sum()
        change = float(abs(better / weights - 1).max())
        weights = better
        if change < SAME_WEIGHTS:
            return weights
    raise UsageError("no weights match this popularity: take a smaller k, or decoys=uniform")


def _widest(first: Float64Array, second: Float64Array) -> tuple[float, int, int]:
    """The largest first[x] - second[y] over all x other than y, with x and y."""
    best, least = (np.argpartition(row, len(row) - 2)[-2:] for row in (first, -second))
    pairs = [(int(x), int(y)) for x in best for y in least if x != y]
    x, y = max(pairs, key=lambda pair: first[pair[0]] - second[pair[1]])
    return float(first[x] - second[y]), x, y
