"""Are two systems really different? Paired randomisation tests, corrected for how many there are.

Under the null hypothesis the two values of a query might as well be exchanged, so the sign of their
difference is a coin (Fisher). The p value is the share of all ways the coins could have fallen that
give a mean difference at least as far from 0. Holm's correction keeps the probability of even one
false claim in a family at the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.experiments.report.places import Place
from sottovoce.experiments.results import Grid, Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

ALPHA = 0.05
PERMUTATIONS = 10_000
EXACT_QUERIES = 16
"""Up to so many queries, all ways that the coins can fall are counted."""
RARE = 10
"""Tests with fewer chances to come as far get more random signs, where more are needed."""
SIGNS_AT_A_TIME = 1 << 11
NUMBERS_AT_A_TIME = 1 << 18
SAME = 1e-9
"""Sums as near as this, relative to the largest possible one, count as equal."""


@dataclass(frozen=True)
class Comparison:
    """One test. ``other`` is None for the original query, sent without privacy."""

    one: Setting
    other: Setting | None
    difference: float
    """Mean over queries of the first less the second."""
    effect: float
    """That mean in standard deviations of the differences; infinite where they are all alike."""
    p: float
    adjusted: float
    queries: int

    @property
    def significant(self) -> bool:
        """After correction, at the level of 5 %."""
        return self.adjusted <= ALPHA


@dataclass(frozen=True)
class Comparisons:
    """Two families of tests on one measure, each corrected by itself.

    against_none
        Every setting against the original query without privacy.
    between
        Every two rows (mechanism, release, n) at the same epsilon.
    """

    against_none: dict[Setting, Comparison]
    between: dict[tuple[Setting, Setting], Comparison]

    def distinguishable(self, one: Setting, other: Setting) -> bool:
        """Whether two settings differ significantly; if they were not compared they may."""
        found = self.between.get((one, other)) or self.between.get((other, one))
        return found is None or found.significant


Compare: TypeAlias = Callable[[str, Place], Comparisons]
"""What :func:`compare` gives for a measure and a place."""


def comparing(results: Results) -> Compare:
    """Compare, and never the same twice."""
    return cache(lambda measure, place: compare(results, measure, **place._asdict()))


def compare(
    results: Results, measure: str, *, collection: str, engine: str, reranker: str
) -> Comparisons:
    """Test a measure against no privacy, and between the settings that share an epsilon."""
    where = {"collection": collection, "engine": engine, "reranker": reranker}
    grid = results.grid(measure, **where)
    itself = results.grid(measure, **where, system=NO_PRIVACY)
    alone = [(setting, None) for setting in grid.settings] if itself.settings else []
    pairs = [
        (one, other)
        for number, one in enumerate(grid.settings)
        for other in grid.settings[number + 1 :]
        if one.epsilon == other.epsilon
    ]
    return Comparisons(
        {each.one: each for each in _family(grid, itself, alone)},
        {(each.one, each.other): each for each in _family(grid, itself, pairs) if each.other},
    )


def _family(
    grid: Grid, itself: Grid, pairs: Sequence[tuple[Setting, Setting | None]]
) -> list[Comparison]:
    """Test the pairs on the queries that each two have in common; Holm over all of them."""
    place = {setting: number for number, setting in enumerate(grid.settings)}
    baseline = dict(zip(itself.queries, itself.values[0], strict=True)) if itself.settings else {}
    none = np.array([baseline.get(query, np.nan) for query in grid.queries])
    if not pairs:
        return []
    differences = np.stack(
        [
            grid.values[place[one]] - (none if other is None else grid.values[place[other]])
            for one, other in pairs
        ]
    )
    measured = ~np.isnan(differences)
    differences = np.where(measured, differences, 0.0)
    counts = measured.sum(axis=1)
    means = differences.sum(axis=1) / np.maximum(counts, 1)
    p = randomisation(differences)
    adjusted = holm(p)
    return [
        Comparison(
            one=one,
            other=other,
            difference=float(means[number]),
            effect=_effect(differences[number][measured[number]]),
            p=float(p[number]),
            adjusted=float(adjusted[number]),
            queries=int(counts[number]),
        )
        for number, (one, other) in enumerate(pairs)
    ]


def randomisation(differences: Float64Array, *, seed: int = 0) -> Float64Array:
    """Two-sided p values of paired differences, (tests, queries); a difference of 0 says nothing.

    Exact for few queries. Otherwise over random signs, the same for all tests; tests that hardly
    ever came as far get more of them where there are so many tests that the correction would leave
    nothing of the smallest p.
    """
    tests, queries = differences.shape
    if queries <= EXACT_QUERIES:
        return np.asarray(_as_far(differences, _every_sign(queries)) / (1 << queries))
    rng = Generator(PCG64(seed))
    as_far = _as_far(differences, _random_signs(rng, PERMUTATIONS, queries)) + 1
    p = as_far / (PERMUTATIONS + 1)
    more = permutations_for(tests) - PERMUTATIONS
    rare = np.flatnonzero(as_far <= RARE)
    if more > 0 and len(rare):
        as_far[rare] += _as_far(differences[rare], _random_signs(rng, more, queries))
        p[rare] = as_far[rare] / (PERMUTATIONS + more + 1)
    return p


def _as_far(differences: Float64Array, signs: Iterator[Float64Array]) -> Float64Array:
    """How often each test's sum comes as far from 0 as it is, with signs in blocks."""
    slack = SAME * np.abs(differences).sum(axis=1)
    observed = np.abs(differences.sum(axis=1)) - slack
    at_a_time = max(1, NUMBERS_AT_A_TIME // SIGNS_AT_A_TIME)
    parts = [slice(at, at + at_a_time) for at in range(0, len(differences), at_a_time)]
    found = np.zeros(len(differences))
    for block in signs:

        def count(part: slice, block: Float64Array = block) -> None:
            sums = block @ differences[part].T
            found[part] += np.count_nonzero(np.abs(sums, out=sums) >= observed[part], axis=0)

        parallel_map(count, parts)
    return found


def _every_sign(queries: int) -> Iterator[Float64Array]:
    for start in range(0, 1 << queries, SIGNS_AT_A_TIME):
        numbers = np.arange(start, min(start + SIGNS_AT_A_TIME, 1 << queries))[:, None]
        yield _signs((numbers >> np.arange(queries)) & 1)


def _random_signs(rng: Generator, count: int, queries: int) -> Iterator[Float64Array]:
    for start in range(0, count, SIGNS_AT_A_TIME):
        size = min(SIGNS_AT_A_TIME, count - start)
        yield _signs(rng.integers(0, 2, size=(size, queries), dtype=np.int8))


def _signs(coins: IntArray) -> Float64Array:
    return 2 * coins.astype(np.float64) - 1


def permutations_for(tests: int) -> int:
    """How many random signs so many tests need, lest the correction leave nothing."""
    return max(PERMUTATIONS, math.ceil(4 * tests / ALPHA))


def holm(p: Float64Array) -> Float64Array:
    """Holm's step-down adjusted p values: times the number of hypotheses not yet rejected."""
    order: IntArray = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def _effect(differences: Float64Array) -> float:
    """Cohen's d for pairs."""
    if len(differences) < 2:
        return math.nan
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread < SAME:
        return 0.0 if abs(mean) < SAME else math.copysign(math.inf, mean)
    return mean / spread
