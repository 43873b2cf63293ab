"""What a word space looks like: how far neighbours are, and where a word's relatives lie."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.experiments.report.figures.cast import RELATIVE, Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.results import Results, grouped
from sottovoce.types import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PERCENTILES = (5, 20, 50, 80, 95)
MOST_NAMED = 6

KINDS = {"synonym": "synonyms", "hyponym": "hyponyms", "neighbour": "other words"}
LOOKS: dict[str, dict[str, Any]] = {
    "other words": {"color": "#999999", "marker": "o", "markersize": 3.5, "markerfacecolor": "w"},
    "hyponyms": {"color": "#d55e00", "marker": "x", "markersize": 6, "markeredgewidth": 1.6},
    "synonyms": {"color": "#0072b2", "marker": "s", "markersize": 5},
}


def neighbour_figures(results: Results, _: Cast) -> Iterator[Figured]:
    """Percentiles of the distance to the k-th neighbour: figure 1 of the CMP paper."""
    spaces: dict[str, dict[int, Float64Array]] = {}
    for (space, measure), (values,) in grouped(results.words, ("space", "measure")):
        if found := re.fullmatch(r"distance to neighbour (\d+)", measure):
            spaces.setdefault(space, {})[int(found[1])] = values
    if spaces:
        yield _neighbours(spaces)


def relative_figures(results: Results, _: Cast) -> Iterator[Figured]:
    """A word, its synonyms, hyponyms and others by distance and angle: figure 3 of WBB."""
    found: dict[tuple[str, str], dict[str, dict[str, dict[str, float]]]] = {}
    keys = ("space", "mechanism", "measure")
    for (space, name, measure), (words, values) in grouped(results.words, keys, ("word", "value")):
        if relative := RELATIVE.fullmatch(name):
            kinds = found.setdefault((space, relative[2]), {})
            pairs = dict(zip(words.tolist(), values.tolist(), strict=True))
            kinds.setdefault(KINDS[relative[1]], {})[measure] = pairs
    for (space, word), kinds in found.items():
        yield _relatives(space, word, kinds)


def _neighbours(spaces: Mapping[str, Mapping[int, Float64Array]]) -> Figured:
    from sottovoce.plotting import legend_below, lines, look

    figure, plots = sheet(len(spaces), columns=2, width=4.4, height=3.4)
    middle = []
    for plot, (space, by_rank) in zip(plots, spaces.items(), strict=True):
        ranks = sorted(by_rank)
        cuts = np.array([np.percentile(by_rank[rank], PERCENTILES) for rank in ranks])
        lines(
            plot,
            {f"{at} %": (ranks, cuts[:, number]) for number, at in enumerate(PERCENTILES)},
            looks={f"{at} %": look(number) for number, at in enumerate(PERCENTILES)},
            title=last_part(space),
            x="k, the rank of the neighbour",
            y="Euclidean distance",
            log_x=True,
            legend=False,
        )
        plot.set_xticks(ranks, [str(rank) for rank in ranks])
        plot.minorticks_off()
        plot.set_ylim(bottom=0)
        half = cuts[:, PERCENTILES.index(50)]
        middle.append(
            f"{last_part(space)}: half of the words have their nearest neighbour within "
            f"{half[0]:.2f}, and neighbour {ranks[-1]} within {half[-1]:.2f}"
        )
    legend_below(figure, plots)
    words = max(len(values) for by_rank in spaces.values() for values in by_rank.values())
    return Figured(
        name="neighbours",
        title="How far neighbours are",
        caption=f"Percentiles over {counted(words, 'word')} of the distance to the k-th nearest "
        "word. A metric guarantee is epsilon times such a distance: what it hides are words within "
        "a few units of 1/epsilon.",
        figure=figure,
        alt=f"Line chart of percentiles over k. {'. '.join(middle)}.",
    )


def _relatives(
    space: str, word: str, kinds: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Figured:
    from sottovoce.plotting import legend_below, polar_scatter

    points = {
        kind: {
            relative: (distance, kinds[kind]["angle"][relative])
            for relative, distance in kinds[kind]["distance"].items()
        }
        for kind in LOOKS
        if kind in kinds
    }
    figure, plots = sheet(1, width=6.6, height=4.6)
    polar_scatter(
        plots[0],
        {kind: tuple(zip(*each.values(), strict=True)) for kind, each in points.items()},  # type: ignore[misc]
        looks=LOOKS,
        x=f"distance from '{word}' (Euclidean)",
    )
    _name(plots[0], points)
    legend_below(figure, plots)
    said = "; ".join(
        f"{len(each)} {kind}, mean distance {np.mean([d for d, _ in each.values()]):.2f}, mean "
        f"angle {np.mean([a for _, a in each.values()]):.0f} degrees"
        for kind, each in points.items()
    )
    return Figured(
        name=slug("relatives", word, space),
        title=f"The relatives of '{word}': {last_part(space)}",
        caption=f"The word is in the middle; another word is as far from it as the vectors are "
        f"apart, in the direction of the angle between them (degrees). {said}. Words between the "
        "middle and its relatives are what a safe box leaves out together with them.",
        figure=figure,
        alt=f"Polar plot: {said}.",
    )


def _name(plot: Axes, points: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Write the nearest relatives beside their points, as long as no two names meet."""
    from sottovoce.plotting import beside

    farthest = max(distance for each in points.values() for distance, _ in each.values())
    taken: list[tuple[float, float]] = []
    for kind in ("synonyms", "hyponyms"):
        named = 0
        by_distance = sorted(points.get(kind, {}).items(), key=lambda each: each[1])
        for word, (distance, angle) in by_distance:
            at = np.radians(angle)
            x, y = distance * np.cos(at), distance * np.sin(at)
            if named < MOST_NAMED and all(
                abs(x - other) > 0.3 * farthest or abs(y - above) > 0.06 * farthest
                for other, above in taken
            ):
                beside(plot, word, (x, y), color=LOOKS[kind]["color"])
                taken.append((x, y))
                named += 1
