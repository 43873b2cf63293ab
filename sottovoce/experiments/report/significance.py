"""Are two systems really different? Paired tests, corrected for how many there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from sottovoce.experiments.measures import SENT, Measure
from sottovoce.experiments.results import Grid, Place, Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.statistics import ALPHA, holm, paired_effect, randomization_test


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
    """Three families of tests on one measure, each corrected by itself.

    against_none
        Every setting against the original query without privacy.
    between
        Every two rows (mechanism, release, n) at the same epsilon.
    at_equal_queries
        Every set against every mechanism of words that sends as many queries.
    """

    against_none: dict[Setting, Comparison]
    between: dict[tuple[Setting, Setting], Comparison]
    at_equal_queries: dict[tuple[Setting, Setting], Comparison]

    def distinguishable(self, one: Setting, other: Setting) -> bool:
        """Whether two settings differ significantly; if they were not compared they may."""
        test = self.between.get((one, other)) or self.between.get((other, one))
        return test is None or test.significant


Compare: TypeAlias = Callable[[Measure, Place], Comparisons]
"""What :func:`compare` gives for a measure and a place."""


def comparing(results: Results) -> Compare:
    """Compare, and never the same twice."""
    return cache(partial(compare, results))


def compare(results: Results, measure: Measure | str, place: Place) -> Comparisons:
    """Test a measure against no privacy, and between settings at the same epsilon, k or cost."""
    grid, itself = results.grid(measure, place), results.grid(measure, place, NO_PRIVACY)
    alone = [(setting, None) for setting in grid.settings] if itself.settings else []
    pairs = [
        (one, other)
        for number, one in enumerate(grid.settings)
        for other in grid.settings[number + 1 :]
        if one.point == other.point
    ]
    sent = results.means(SENT, Place(place.collection))
    equal = [
        (one, other)
        for one in grid.settings
        for other in grid.settings
        if one.axis.is_set and not other.axis.is_set and _as_many(sent, one, other)
    ]
    return Comparisons(
        {test.one: test for test in _family(grid, itself, alone)},
        {(test.one, test.other): test for test in _family(grid, itself, pairs) if test.other},
        {(test.one, test.other): test for test in _family(grid, itself, equal) if test.other},
    )


def _as_many(sent: Mapping[Setting, float], one: Setting, other: Setting) -> bool:
    """Whether two settings send as many queries, to the nearest whole one."""
    return one in sent and other in sent and round(sent[one]) == round(sent[other])


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
    p = randomization_test(differences)
    adjusted = holm(p)
    return [
        Comparison(
            one=one,
            other=other,
            difference=float(means[number]),
            effect=paired_effect(differences[number][measured[number]]),
            p=float(p[number]),
            adjusted=float(adjusted[number]),
            queries=int(counts[number]),
        )
        for number, (one, other) in enumerate(pairs)
    ]
