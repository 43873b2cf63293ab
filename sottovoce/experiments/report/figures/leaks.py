"""What variants give away against epsilon: words recovered by attack, and similarity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet
from sottovoce.experiments.report.figures.over_epsilon import draw_lines
from sottovoce.experiments.report.figures.points import lines_of, rises, told
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.spread import interval_said
from sottovoce.experiments.report.strongest import measures_like
from sottovoce.experiments.results import Results

SIMILARITIES = ("jaccard", "semantic", "bleu", "meteor")


def recovery_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each collection: a plot for each attack on words."""
    for collection in dict.fromkeys(each.collection for each in results.groups):
        measures = measures_like(results, collection, "words[")
        figured = _figure(
            results,
            cast,
            collection,
            measures,
            [each.removeprefix("words[").removesuffix("]") for each in measures],
            name="recovered",
            title="Words recovered",
            y="share of words recovered",
            caption="The share of the words of a query that an attacker gets back who knows the "
            "mechanism. An attack that is not shown for a mechanism does not apply to it, which "
            "is no protection from the others.",
        )
        if figured is not None:
            yield figured


def similarity_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each collection: a plot for each measure of similarity."""
    for collection in dict.fromkeys(each.collection for each in results.groups):
        found = measures_like(results, collection, *SIMILARITIES)
        figured = _figure(
            results,
            cast,
            collection,
            found,
            found,
            name="similarity",
            title="Similarity of query and variants",
            y="similarity",
            caption="How alike the query and its variants are. A high similarity shows a leak; a "
            "low one does not show that there is none.",
        )
        if figured is not None:
            yield figured


def _figure(
    results: Results,
    cast: Cast,
    collection: str,
    measures: Sequence[str],
    titles: Sequence[str],
    *,
    name: str,
    title: str,
    y: str,
    caption: str,
) -> Figured | None:
    from sottovoce.plotting import legend_below

    found = {
        said: lines_of(results, cast, measure, collection=collection)
        for said, measure in zip(titles, measures, strict=True)
    }
    found = {said: lines for said, lines in found.items() if rises(lines)}
    if not found:
        return None
    figure, plots = sheet(len(found), columns=3, width=3.5, height=3.0)
    for plot, (said, lines) in zip(plots, found.items(), strict=True):
        draw_lines(plot, lines, cast, title=said, y=y)
    legend_below(figure, plots)
    queries = len(results.grid(measures[0], collection=collection).queries)
    return Figured(
        name=slug(name, collection),
        title=f"{title} against epsilon: {last_part(collection)}",
        caption=f"{caption} Means over {counted(queries, 'query', 'queries')}; bands are "
        f"{interval_said(measures[0])}." + cast.left_out,
        figure=figure,
        alt="Line charts over epsilon. "
        + ". ".join(f"{said}: {told(lines, cast)}" for said, lines in found.items())
        + ".",
    )
