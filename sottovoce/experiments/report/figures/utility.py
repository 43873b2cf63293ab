"""Utility against the formal parameter: figure 3 of the QuIPU paper."""

from __future__ import annotations

from collections.abc import Iterator

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet
from sottovoce.experiments.report.figures.over_epsilon import draw_lines
from sottovoce.experiments.report.figures.points import (
    baseline,
    lines_of,
    rises,
    searched,
    told,
    utility_measures,
)
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.places import Place
from sottovoce.experiments.report.spread import interval_said
from sottovoce.experiments.results import Results

RECALL_NOTE = (
    " A pool of several answers holds more documents than one answer: compare with the same depth, "
    "in the tables."
)


def utility_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each measure of a collection and re-ranker: a plot for each engine."""
    everywhere = searched(results)
    for collection, reranker in dict.fromkeys((each[0], each[2]) for each in everywhere):
        here = [each for each in everywhere if (each[0], each[2]) == (collection, reranker)]
        for measure in utility_measures(results, collection):
            figured = _figure(results, cast, measure, here)
            if figured is not None:
                yield figured


def _figure(results: Results, cast: Cast, measure: str, here: list[Place]) -> Figured | None:
    from sottovoce.plotting import legend_below

    found = {where: lines_of(results, cast, measure, **where._asdict()) for where in here}
    found = {where: lines for where, lines in found.items() if rises(lines)}
    if not found:
        return None
    figure, plots = sheet(len(found), columns=2, width=4.4 if len(found) > 1 else 6.4)
    top = max(1.0, *(line.high.max() for lines in found.values() for line in lines))
    for plot, (where, lines) in zip(plots, found.items(), strict=True):
        level = {"no privacy": baseline(results, measure, where)}
        draw_lines(plot, lines, cast, title=where.engine, y=measure, levels=level, top=top)
    legend_below(figure, plots)
    collection, reranker = last_part(here[0].collection), here[0].reranker
    queries = len(results.grid(measure, **here[0]._asdict()).queries)
    return Figured(
        name=slug("utility", measure, collection, reranker),
        title=f"{measure} against epsilon: {collection}, re-ranked by {reranker}",
        caption=f"How good answers are at each epsilon: means over "
        f"{counted(queries, 'query', 'queries')}; bands are {interval_said(measure)}. The dashed "
        "line is the query itself, without privacy. Epsilons of different mechanisms mean "
        "different things: the planes compare them."
        + (RECALL_NOTE if measure.startswith("pooled") else "")
        + cast.left_out,
        figure=figure,
        alt=f"Line chart of {measure} over epsilon. "
        + ". ".join(f"{where.engine}: {told(lines, cast)}" for where, lines in found.items())
        + ".",
    )
