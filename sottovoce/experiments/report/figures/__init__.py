"""The figures of a report, one file a kind; only those whose data are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sottovoce.experiments.report.figures.boxes import box_figures
from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.deniability import deniability_figures
from sottovoce.experiments.report.figures.figured import Figured
from sottovoce.experiments.report.figures.leaks import recovery_figures, similarity_figures
from sottovoce.experiments.report.figures.planes import plane_figures
from sottovoce.experiments.report.figures.radars import radar_figures
from sottovoce.experiments.report.figures.spaces import neighbour_figures, relative_figures
from sottovoce.experiments.report.figures.tasks import task_figures
from sottovoce.experiments.report.figures.utility import utility_figures
from sottovoce.experiments.results import Results

__all__ = ["KINDS", "Cast", "Figured", "figures"]

KINDS: tuple[Callable[[Results, Cast], Iterator[Figured]], ...] = (
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
)


def figures(
    results: Results, progress: Callable[[int, int], None] | None = None
) -> Iterator[Figured]:
    """All figures, one by one; no two have the same name. ``progress`` counts kinds."""
    cast = Cast.of(results)
    names: dict[str, int] = {}
    for done, kind in enumerate(KINDS):
        for figured in kind(results, cast):
            names[figured.name] = number = names.get(figured.name, 0) + 1
            yield figured if number == 1 else replace(figured, name=f"{figured.name}-{number}")
        if progress is not None:
            progress(done + 1, len(KINDS))
