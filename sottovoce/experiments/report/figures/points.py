"""What there is to draw: measures, and their means by curve and epsilon with intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.places import MAIN_MEASURE, POOL, Place, measures, places
from sottovoce.experiments.report.spread import estimates
from sottovoce.experiments.results import Results, Setting, curves
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE
from sottovoce.types import Float64Array


@dataclass(frozen=True)
class Line:
    """A curve's means over queries, the most private first. ``epsilons`` is None without any."""

    curve: Setting
    epsilons: Float64Array | None
    means: Float64Array
    low: Float64Array
    high: Float64Array


def searched(results: Results) -> list[Place]:
    """Everything that was searched with variants."""
    return [each for each in places(results) if measures(results, each)]


def utility_measures(results: Results, collection: str) -> list[str]:
    """The measures of answers in a collection, the one that planes show first."""
    found = dict.fromkeys(
        each.measure
        for each in results.groups
        if each.collection == collection and each.engine and each.system == PRIVATE
    )
    return sorted(
        found.keys() - {POOL}, key=lambda each: (each != MAIN_MEASURE, [*found].index(each))
    )


def means(results: Results, measure: str, **where: str) -> dict[Setting, float]:
    """A measure's mean over queries for each setting."""
    grid = results.grid(measure, **where)
    return dict(zip(grid.settings, np.nanmean(grid.values, axis=1).tolist(), strict=True))


def baseline(results: Results, measure: str, where: Place) -> float | None:
    """The mean of the original queries, where they were searched."""
    found = means(results, measure, **where._asdict(), system=NO_PRIVACY)
    return next(iter(found.values()), None)


def lines_of(results: Results, cast: Cast, measure: str, **where: str) -> list[Line]:
    """The curves of a measure that lines show, with 95 % intervals over queries."""
    found = estimates(results.grid(measure, **where), measure)
    lines = []
    for curve, settings in curves(found).items():
        if curve.mechanism not in cast.aside:
            ends = [found[each].interval or (np.nan, np.nan) for each in settings]
            epsilons = [each.epsilon for each in settings]
            line = Line(
                curve,
                None if None in epsilons else np.array(epsilons, dtype=np.float64),
                np.array([found[each].value for each in settings]),
                np.array([low for low, _ in ends]),
                np.array([high for _, high in ends]),
            )
            lines.append(line)
    return lines


def rises(lines: Iterable[Line]) -> bool:
    """Whether any line has an epsilon: without one there is nothing to draw over it."""
    return any(line.epsilons is not None for line in lines)


def told(lines: Iterable[Line], cast: Cast) -> str:
    """The lines in words, for those who cannot see them."""
    return "; ".join(
        f"{cast.name(line.curve)} {line.means[0]:.2f}"
        if line.epsilons is None or len(line.means) == 1
        else f"{cast.name(line.curve)} from {line.means[0]:.2f} at epsilon {line.epsilons[0]:g} "
        f"to {line.means[-1]:.2f} at {line.epsilons[-1]:g}"
        for line in lines
    )
