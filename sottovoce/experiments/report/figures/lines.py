"""Against epsilon: utility (figure 3 of the QuIPU paper), words recovered, similarity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sottovoce.experiments.measures import Measure
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.figures.curves import (
    Legend,
    ReportFigure,
    baseline,
    draw_lines,
    in_words,
    lines_of,
    rises,
    searched,
    sheet,
    utility_measures,
)
from sottovoce.experiments.report.table import interval_kind
from sottovoce.experiments.results import Place, Results
from sottovoce.plotting import legend_below

RECALL_NOTE = (
    " A pool of several answers holds more documents than one answer: compare with the same depth, "
    "in the tables."
)


def utility_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each measure of a collection and re-ranker: a plot for each engine."""
    by_reranker: dict[tuple[str, str], list[Place]] = {}
    for place in searched(results):
        by_reranker.setdefault((place.collection, place.reranker), []).append(place)
    for (collection, _), places in by_reranker.items():
        for measure in utility_measures(results, collection):
            if (figure := _utility(results, legend, measure, places)) is not None:
                yield figure


def _utility(
    results: Results, legend: Legend, measure: Measure, places: list[Place]
) -> ReportFigure | None:
    by_place = {
        place: lines
        for place in places
        if rises(lines := lines_of(results, legend, measure, place))
    }
    if not by_place:
        return None
    label = measure.label
    figure, plots = sheet(len(by_place), columns=2, width=4.4 if len(by_place) > 1 else 6.4)
    top = max(1.0, *(line.high.max() for lines in by_place.values() for line in lines))
    for plot, (place, lines) in zip(plots, by_place.items(), strict=True):
        level = {"no privacy": baseline(results, measure, place)}
        draw_lines(plot, lines, legend, title=place.engine, y=label, levels=level, top=top)
    legend_below(figure, plots)
    collection, reranker = last_part(places[0].collection), places[0].reranker
    queries = len(results.grid(measure, places[0]).queries)
    return ReportFigure(
        name=slug("utility", label, collection, reranker),
        title=f"{label} against epsilon: {collection}, re-ranked by {reranker}",
        caption=f"How good answers are at each epsilon: means over "
        f"{counted(queries, 'query', 'queries')}; bands are {interval_kind(measure)}. The dashed "
        "line is the query itself, without privacy. Epsilons of different mechanisms mean "
        "different things: the planes compare them."
        + (RECALL_NOTE if measure.kind == "pooled recall" else "")
        + legend.left_out,
        figure=figure,
        alt=f"Line chart of {label} over epsilon. "
        + ". ".join(
            f"{place.engine}: {in_words(lines, legend)}" for place, lines in by_place.items()
        )
        + ".",
    )


def recovery_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each collection: a plot for each attack on words."""
    for collection in results.collections:
        yield from _leaks(
            results,
            legend,
            collection,
            results.measures(Place(collection), "words"),
            name="recovered",
            title="Words recovered",
            y="share of words recovered",
            caption="The share of the words of a query that an attacker gets back who knows the "
            "mechanism. An attack that is not shown for a mechanism does not apply to it, which "
            "is no protection from the others.",
        )


def similarity_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each collection: a plot for each measure of similarity."""
    for collection in results.collections:
        yield from _leaks(
            results,
            legend,
            collection,
            results.measures(Place(collection), "similarity"),
            name="similarity",
            title="Similarity of query and variants",
            y="similarity",
            caption="How alike the query and its variants are. A high similarity shows a leak; a "
            "low one does not show that there is none.",
        )


def _leaks(
    results: Results,
    legend: Legend,
    collection: str,
    measures: Sequence[Measure],
    *,
    name: str,
    title: str,
    y: str,
    caption: str,
) -> Iterator[ReportFigure]:
    """A plot for each measure, if there is anything to draw."""
    by_detail = {
        measure.detail: lines
        for measure in measures
        if rises(lines := lines_of(results, legend, measure, Place(collection)))
    }
    if not by_detail:
        return
    figure, plots = sheet(len(by_detail), columns=3, width=3.5, height=3.0)
    for plot, (detail, lines) in zip(plots, by_detail.items(), strict=True):
        draw_lines(plot, lines, legend, title=detail, y=y)
    legend_below(figure, plots)
    queries = len(results.grid(measures[0], Place(collection)).queries)
    yield ReportFigure(
        name=slug(name, collection),
        title=f"{title} against epsilon: {last_part(collection)}",
        caption=f"{caption} Means over {counted(queries, 'query', 'queries')}; bands are "
        f"{interval_kind(measures[0])}." + legend.left_out,
        figure=figure,
        alt="Line charts over epsilon. "
        + ". ".join(f"{detail}: {in_words(lines, legend)}" for detail, lines in by_detail.items())
        + ".",
    )
