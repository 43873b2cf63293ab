"""The figures of a report, one file a kind; only those whose data are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sottovoce.experiments.report.figures.boxes import box_figures
from sottovoce.experiments.report.figures.curves import Legend, ReportFigure
from sottovoce.experiments.report.figures.lines import (
    audit_figures,
    recovery_figures,
    similarity_figures,
    task_figures,
    utility_figures,
)
from sottovoce.experiments.report.figures.planes import plane_figures, radar_figures
from sottovoce.experiments.report.figures.words import (
    deniability_figures,
    neighbour_figures,
    relative_figures,
)
from sottovoce.experiments.results import Results
from sottovoce.types import Progress

__all__ = ["KINDS", "Legend", "ReportFigure", "figures"]

KINDS: tuple[Callable[[Results, Legend], Iterator[ReportFigure]], ...] = (
    utility_figures,
    plane_figures,
    recovery_figures,
    similarity_figures,
    radar_figures,
    box_figures,
    deniability_figures,
    neighbour_figures,
    relative_figures,
    task_figures,
    audit_figures,
)


def figures(results: Results, progress: Progress | None = None) -> Iterator[ReportFigure]:
    """All figures, one by one; no two have the same name. ``progress`` counts kinds."""
    legend = Legend.of(results)
    names: dict[str, int] = {}
    for done, kind in enumerate(KINDS, start=1):
        for figure in kind(results, legend):
            names[figure.name] = number = names.get(figure.name, 0) + 1
            yield figure if number == 1 else replace(figure, name=f"{figure.name}-{number}")
        if progress is not None:
            progress(done, len(KINDS))
