"""Words: deniability (figures 2 to 4 of the CMP paper), neighbours, relatives (WBB, figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sottovoce.experiments.measures import ANGLE, DISTANCE, SUPPORT, UNCHANGED, RelativeKind
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.figures.curves import (
    Legend,
    ReportFigure,
    epsilon_axis,
    log_axis,
    sheet,
    spread,
)
from sottovoce.experiments.results import Results
from sottovoce.plotting import beside, label, legend_below, lines, polar_scatter
from sottovoce.types import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ByWord: TypeAlias = Mapping[tuple[str, float | None], Mapping[str, Float64Array]]
"""N_w and S_w of all words, by mechanism and epsilon."""

MOST_EPSILONS = 6
ALL_SPACES = "all spaces"
AXES = {UNCHANGED: "N_w: chance to come back", SUPPORT: "S_w: words that stand in"}
PANELS: tuple[tuple[str, str, Callable[[Any], float]], ...] = (
    (UNCHANGED, "mean over words", np.mean),
    (SUPPORT, "mean over words", np.mean),
    (UNCHANGED, "the worst word", np.max),
    (SUPPORT, "the worst word", np.min),
)
PERCENTILES = (5, 20, 50, 80, 95)
MOST_NAMED = 6
KINDS: dict[RelativeKind, str] = {
    "neighbour": "other words",
    "hyponym": "hyponyms",
    "synonym": "synonyms",
}
"""In the order in which they are drawn, the last on top."""
LOOKS: dict[str, dict[str, Any]] = {
    "other words": {"color": "#999999", "marker": "o", "markersize": 3.5, "markerfacecolor": "w"},
    "hyponyms": {"color": "#d55e00", "marker": "x", "markersize": 6, "markeredgewidth": 1.6},
    "synonyms": {"color": "#0072b2", "marker": "s", "markersize": 5},
}


# N_w and S_w: averages against epsilon, and histograms


def deniability_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each space: averages, and histograms of both, for all mechanisms; and all together."""
    spaces = results.deniability()
    if len(spaces) > 1:  # Figures 3 and 4 of the CMP paper: several spaces over one axis.
        together = {
            setting: values for settings in spaces.values() for setting, values in settings.items()
        }
        yield _averages(results, legend, ALL_SPACES, together)
    for space, by_setting in spaces.items():
        if any(epsilon is not None for _, epsilon in by_setting):
            yield _averages(results, legend, space, by_setting)
        for measure in AXES:
            yield _histograms(results, legend, space, measure, by_setting)


def _averages(results: Results, legend: Legend, space: str, by_setting: ByWord) -> ReportFigure:
    mechanisms = [
        name
        for name in dict.fromkeys(name for name, epsilon in by_setting if epsilon is not None)
        if name not in legend.aside
    ]
    run_over = {mechanism: results.axis(mechanism).parameter for mechanism in mechanisms}
    parameters = dict.fromkeys(run_over.values())
    figure, plots = sheet(len(PANELS) * len(parameters), columns=2, width=4.2, height=2.9)
    ends = []
    panels = product(parameters, PANELS)
    for plot, (parameter, (measure, title, gather)) in zip(plots, panels, strict=True):
        by_mechanism: dict[str, Any] = {}
        for mechanism in [name for name in mechanisms if run_over[name] == parameter]:
            points = sorted(
                (epsilon, gather(values[measure]))
                for (name, epsilon), values in by_setting.items()
                if name == mechanism and epsilon is not None and measure in values
            )
            by_mechanism[mechanism] = tuple(zip(*points, strict=True))
            ends.append(f"{mechanism} from {points[0][1]:.3g} to {points[-1][1]:.3g}")
        y, looks = AXES[measure], {name: legend.plain_look(name) for name in by_mechanism}
        lines(
            plot,
            by_mechanism,
            looks=looks,
            title=title,
            x=legend.parameter(parameter),
            y=y,
            legend=False,
        )
        if measure == SUPPORT:
            log_axis(plot, "y", [value for _, values in by_mechanism.values() for value in values])
        epsilon_axis(plot, (value for at, _ in by_mechanism.values() for value in at))
        if measure == UNCHANGED:
            plot.set_ylim(-0.02, 1.02)
    legend_below(figure, plots)
    words = max(len(values[UNCHANGED]) for values in by_setting.values())
    return ReportFigure(
        name=slug("deniability", space),
        title=f"Plausible deniability against {legend.joined(parameters)}: {last_part(space)}",
        caption=f"Over {counted(words, 'word')}: how often a word is released for itself (N_w, "
        "low is private) and how many words stand in for it (S_w, high is private). The upper "
        f"plots show means, the lower ones the word that is worst off.{_draws_note(results)}",
        figure=figure,
        alt=f"Line charts of N_w and S_w over {legend.joined(parameters)}; mean N_w, then mean "
        f"S_w, then the worst: {'; '.join(ends)}.",
    )


def _histograms(
    results: Results, legend: Legend, space: str, measure: str, by_setting: ByWord
) -> ReportFigure:
    """A plot for each mechanism: one histogram above the other, the smallest epsilon on top."""
    run_over = {name: results.axis(name).parameter for name, _ in by_setting}
    names = dict.fromkeys(name for name, _ in by_setting)
    mechanisms = [name for name in names if name not in legend.aside]
    all_values = [values[measure] for values in by_setting.values()]
    edges, wide = _edges(measure, np.concatenate(all_values))
    figure, plots = sheet(len(mechanisms), columns=4, width=2.5, height=2.9)
    all_means = []
    for number, (plot, mechanism) in enumerate(zip(plots, mechanisms, strict=True)):
        run = (epsilon for name, epsilon in by_setting if name == mechanism)
        epsilons = spread(sorted(run, key=lambda epsilon: epsilon or 0.0), MOST_EPSILONS)
        colour = legend.plain_look(mechanism)["color"]
        samples = [by_setting[mechanism, epsilon][measure] for epsilon in epsilons]
        shares = [np.histogram(values, bins=edges)[0] / len(values) for values in samples]
        largest = max(share.max() for share in shares)
        floors = np.arange(len(epsilons))[::-1]
        for floor, values, share in zip(floors, samples, shares, strict=True):
            high = floor + 0.9 * share / largest
            plot.stairs(high, edges, baseline=floor, color=colour, fill=True, alpha=0.6)
            mean = values.mean()
            plot.plot([mean, mean], [floor, floor + 0.9], color="black", linewidth=1.2)
        ticks = ["none" if epsilon is None else f"{epsilon:g}" for epsilon in epsilons]
        plot.set_yticks(floors, ticks)
        plot.set_ylim(-0.05, len(epsilons))
        if wide:
            log_axis(plot, "x", edges[[0, -1]])
        axis_is_said = number % 4 and len({*run_over.values()}) == 1
        y = "" if axis_is_said else legend.parameter(run_over[mechanism])
        label(plot, title=mechanism, x=measure, y=y)
        means = ", ".join(f"{values.mean():.3g}" for values in samples)
        all_means.append(f"{mechanism} {means}")
    words = max(map(len, all_values))
    often, few = "right: these words often come back", "left: few words stand in for them"
    return ReportFigure(
        name=slug("histograms", measure, space),
        title=f"{AXES[measure]}, word by word: {last_part(space)}",
        caption=f"Shares of {counted(words, 'word')}, one histogram for each "
        f"{legend.joined(run_over.values())}, all over the same bins; a black bar is the mean. The "
        f"least protected words are at the far {often if measure == UNCHANGED else few}."
        + (_draws_note(results) if measure == SUPPORT else ""),
        figure=figure,
        alt=f"Histograms of {measure} by {legend.joined(run_over.values())}; means, the smallest "
        f"first: {'; '.join(all_means)}.",
    )


def _draws_note(results: Results) -> str:
    """A sentence on what was sampled, for captions."""
    asked = (results.manifest.get("experiment") or {}).get("deniability") or {}
    count = f", {asked['draws']:,}" if "draws" in asked else ""
    return f" Of a mechanism without an exact law S_w cannot exceed the draws of a word{count}."


def _edges(measure: str, values: Float64Array) -> tuple[Float64Array, bool]:
    """The bins that all epsilons share; on a log scale where S_w spans much."""
    if measure == UNCHANGED:
        return np.linspace(0, 1, 21), False
    low, high = max(1.0, float(values.min())), max(2.0, float(values.max()))
    if high / low > 20:
        return np.geomspace(low, high * 1.001, 21), True
    return np.linspace(low, high, 21), False


# What a word space looks like: how far neighbours are, and where a word's relatives lie


def neighbour_figures(results: Results, _: Legend) -> Iterator[ReportFigure]:
    """Percentiles of the distance to the k-th neighbour: figure 1 of the CMP paper."""
    spaces = results.neighbour_distances()
    if not spaces:
        return
    figure, plots = sheet(len(spaces), columns=2, width=4.4, height=3.4)
    medians = []
    for plot, (space, by_rank) in zip(plots, spaces.items(), strict=True):
        ranks = sorted(by_rank)
        cuts = np.array([np.percentile(by_rank[rank], PERCENTILES) for rank in ranks])
        by_share = {f"{at} %": (ranks, cuts[:, number]) for number, at in enumerate(PERCENTILES)}
        lines(plot, by_share, title=last_part(space), log_x=True, legend=False)
        plot.set(xlabel="k, the rank of the neighbour", ylabel="Euclidean distance")
        plot.set_xticks(ranks, [str(rank) for rank in ranks])
        plot.minorticks_off()
        plot.set_ylim(bottom=0)
        half = cuts[:, PERCENTILES.index(50)]
        medians.append(
            f"{last_part(space)}: half of the words have their nearest neighbour within "
            f"{half[0]:.2f}, and neighbour {ranks[-1]} within {half[-1]:.2f}"
        )
    legend_below(figure, plots)
    words = max(len(values) for by_rank in spaces.values() for values in by_rank.values())
    yield ReportFigure(
        name="neighbours",
        title="How far neighbours are",
        caption=f"Percentiles over {counted(words, 'word')} of the distance to the k-th nearest "
        "word. A metric guarantee is epsilon times such a distance: what it hides are words within "
        "a few units of 1/epsilon.",
        figure=figure,
        alt=f"Line chart of percentiles over k. {'. '.join(medians)}.",
    )


def relative_figures(results: Results, _: Legend) -> Iterator[ReportFigure]:
    """A word, its synonyms, hyponyms and others by distance and angle: figure 3 of WBB."""
    for (space, word), relatives in results.relatives().items():
        points = {
            name: {other: (seen[DISTANCE], seen[ANGLE]) for other, seen in relatives[kind].items()}
            for kind, name in KINDS.items()
            if kind in relatives
        }
        figure, plots = sheet(1, width=6.6, height=4.6)
        polar_scatter(
            plots[0],
            {name: tuple(zip(*places.values(), strict=True)) for name, places in points.items()},  # type: ignore[misc]
            looks=LOOKS,
            x=f"distance from '{word}' (Euclidean)",
        )
        _name_nearest(plots[0], points)
        legend_below(figure, plots)
        summary = "; ".join(
            f"{len(places)} {name}, mean distance {np.mean([d for d, _ in places.values()]):.2f}, "
            f"mean angle {np.mean([a for _, a in places.values()]):.0f} degrees"
            for name, places in points.items()
        )
        yield ReportFigure(
            name=slug("relatives", word, space),
            title=f"The relatives of '{word}': {last_part(space)}",
            caption=f"The word is in the middle; another word is as far from it as the vectors are "
            f"apart, in the direction of the angle between them (degrees). {summary}. Words "
            "between the middle and its relatives are what a safe box leaves out together with "
            "them.",
            figure=figure,
            alt=f"Polar plot: {summary}.",
        )


def _name_nearest(plot: Axes, points: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Write the nearest relatives beside their points, as long as no two names meet."""
    farthest = max(distance for places in points.values() for distance, _ in places.values())
    taken: list[tuple[float, float]] = []
    for name in ("synonyms", "hyponyms"):
        named = 0
        by_distance = sorted(points.get(name, {}).items(), key=lambda relative: relative[1])
        for word, (distance, angle) in by_distance:
            at = np.radians(angle)
            x, y = distance * np.cos(at), distance * np.sin(at)
            if named < MOST_NAMED and all(
                abs(x - other) > 0.3 * farthest or abs(y - above) > 0.06 * farthest
                for other, above in taken
            ):
                beside(plot, word, (x, y), color=LOOKS[name]["color"])
                taken.append((x, y))
                named += 1
