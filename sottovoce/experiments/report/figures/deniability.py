"""N_w and S_w: histograms by epsilon, and averages against it; figures 2 to 4 of the CMP paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet, spread
from sottovoce.experiments.report.figures.over_epsilon import epsilon_axis, log_axis
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.results import Results, grouped
from sottovoce.types import Float64Array

MOST_EPSILONS = 6
BACK, SUPPORT = "N_w", "S_w"
SAID = {BACK: "N_w: chance to come back", SUPPORT: "S_w: words that stand in"}

ByWord = Mapping[tuple[str, float | None], Mapping[str, Float64Array]]
"""N_w and S_w of all words, by mechanism and epsilon."""


def deniability_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each space: averages, and histograms of both, for all mechanisms."""
    spaces: dict[str, dict[tuple[str, float | None], dict[str, Float64Array]]] = {}
    keys = ("space", "mechanism", "epsilon", "measure")
    for (space, mechanism, epsilon, measure), (values,) in grouped(results.words, keys):
        if measure in SAID:
            found = spaces.setdefault(space, {})
            found.setdefault((mechanism, epsilon), {})[measure] = values
    for space, found in spaces.items():
        if any(epsilon is not None for _, epsilon in found):
            yield _averages(cast, space, found, _draws(results))
        for measure in SAID:
            yield _histograms(cast, space, measure, found, _draws(results))


def _averages(cast: Cast, space: str, found: ByWord, draws: str) -> Figured:
    from sottovoce.plotting import legend_below, lines

    panels: list[tuple[str, str, Callable[[Any], float]]] = [
        (BACK, "mean over words", np.mean),
        (SUPPORT, "mean over words", np.mean),
        (BACK, "the worst word", np.max),
        (SUPPORT, "the worst word", np.min),
    ]
    mechanisms = [
        name
        for name in dict.fromkeys(name for name, epsilon in found if epsilon is not None)
        if name not in cast.aside
    ]
    figure, plots = sheet(len(panels), columns=2, width=4.2, height=2.9)
    told = []
    for plot, (measure, what, gathered) in zip(plots, panels, strict=True):
        curves = {}
        for mechanism in mechanisms:
            points = sorted(
                (epsilon, gathered(values[measure]))
                for (name, epsilon), values in found.items()
                if name == mechanism and epsilon is not None and measure in values
            )
            curves[mechanism] = tuple(zip(*points, strict=True))
            told.append(f"{mechanism} from {points[0][1]:.3g} to {points[-1][1]:.3g}")
        lines(
            plot,
            curves,  # type: ignore[arg-type]
            looks={name: cast.plain_look(name) for name in curves},
            title=what,
            x="epsilon",
            y=SAID[measure],
            legend=False,
        )
        if measure == SUPPORT:
            log_axis(plot, "y", [value for _, values in curves.values() for value in values])
        epsilon_axis(plot, (epsilon for _, epsilon in found if epsilon is not None))
        if measure == BACK:
            plot.set_ylim(-0.02, 1.02)
    legend_below(figure, plots)
    words = max(len(values[BACK]) for values in found.values())
    return Figured(
        name=slug("deniability", space),
        title=f"Plausible deniability against epsilon: {last_part(space)}",
        caption=f"Over {counted(words, 'word')}: how often a word is released for itself (N_w, "
        "low is private) and how many words stand in for it (S_w, high is private). The upper "
        f"plots show means, the lower ones the word that is worst off.{draws}",
        figure=figure,
        alt=f"Line charts of N_w and S_w over epsilon; mean N_w, then mean S_w, then the worst: "
        f"{'; '.join(told)}.",
    )


def _histograms(cast: Cast, space: str, measure: str, found: ByWord, draws: str) -> Figured:
    """A plot for each mechanism: one histogram above the other, the smallest epsilon on top."""
    from sottovoce.plotting import label

    mechanisms = [each for each in dict.fromkeys(n for n, _ in found) if each not in cast.aside]
    edges, wide = _edges(measure, np.concatenate([each[measure] for each in found.values()]))
    figure, plots = sheet(len(mechanisms), columns=4, width=2.5, height=2.9)
    told = []
    for number, (plot, mechanism) in enumerate(zip(plots, mechanisms, strict=True)):
        epsilons = spread(
            sorted((e for name, e in found if name == mechanism), key=lambda each: each or 0.0),
            MOST_EPSILONS,
        )
        colour = cast.plain_look(mechanism)["color"]
        samples = [found[mechanism, epsilon][measure] for epsilon in epsilons]
        shares = [np.histogram(values, bins=edges)[0] / len(values) for values in samples]
        floors = np.arange(len(epsilons))[::-1]
        for floor, values, share in zip(floors, samples, shares, strict=True):
            high = floor + 0.9 * share / max(each.max() for each in shares)
            plot.stairs(high, edges, baseline=floor, color=colour, fill=True, alpha=0.6)
            mean = values.mean()
            plot.plot([mean, mean], [floor, floor + 0.9], color="black", linewidth=1.2)
        plot.set_yticks(floors, ["none" if each is None else f"{each:g}" for each in epsilons])
        plot.set_ylim(-0.05, len(epsilons))
        if wide:
            log_axis(plot, "x", edges[[0, -1]])
        label(plot, title=mechanism, x=measure, y="" if number % 4 else "epsilon")
        means = ", ".join(f"{values.mean():.3g}" for values in samples)
        told.append(f"{mechanism} {means}")
    words = max(len(values[measure]) for values in found.values())
    worst = (
        "right: these words often come back"
        if measure == BACK
        else "left: few words stand in for them"
    )
    return Figured(
        name=slug("histograms", measure, space),
        title=f"{SAID[measure]}, word by word: {last_part(space)}",
        caption=f"Shares of {counted(words, 'word')}, one histogram for each epsilon, all over the "
        "same bins; a black bar is the mean. The least protected words are at the far "
        f"{worst}." + (draws if measure == SUPPORT else ""),
        figure=figure,
        alt=f"Histograms of {measure} by epsilon; means, smallest epsilon first: "
        f"{'; '.join(told)}.",
    )


def _draws(results: Results) -> str:
    """A sentence on what was sampled, for captions."""
    asked = (results.manifest.get("experiment") or {}).get("deniability") or {}
    count = f", {asked['draws']:,}" if "draws" in asked else ""
    return f" Of a mechanism without an exact law S_w cannot exceed the draws of a word{count}."


def _edges(measure: str, values: Float64Array) -> tuple[Float64Array, bool]:
    """The bins that all epsilons share; on a log scale where S_w spans much."""
    if measure == BACK:
        return np.linspace(0, 1, 21), False
    low, high = max(1.0, float(values.min())), max(2.0, float(values.max()))
    if high / low > 20:
        return np.geomspace(low, high * 1.001, 21), True
    return np.linspace(low, high, 21), False
