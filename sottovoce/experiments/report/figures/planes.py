"""Risk and utility together: planes (figure 4 of the QuIPU paper), radars (paper 003, figure 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sottovoce.experiments.estimates import Strongest, strongest
from sottovoce.experiments.measures import (
    INFERENCE,
    MAIN_MEASURE,
    MAIN_SIMILARITY,
    Measure,
    MeasureKind,
)
from sottovoce.experiments.naming import counted, slug
from sottovoce.experiments.report.figures.curves import (
    Legend,
    ReportFigure,
    baseline,
    means,
    searched,
    sheet,
    spread,
    utility_measures,
)
from sottovoce.experiments.report.table import place_name
from sottovoce.experiments.results import Place, Results, Setting, curves
from sottovoce.plotting import MARKERS, MUTED, legend_below, plane, radar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RISKS: dict[MeasureKind, str] = {
    "lazy": "found at the first guess",
    "active": "found within ten guesses",
    "motivated": "mean reciprocal rank",
}
READING = (
    "Each path goes from the smallest epsilon to the largest, written at its ends; up and left is "
    "good. On the dotted diagonal the attacker gains as much as the person; the dashed line is the "
    "utility of the query itself."
)
AXES = ("recall", "nDCG", "obf.")
MOST_EPSILONS = 4


# Planes


def plane_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each engine and re-ranker of a collection: attackers by encoder; then the strongest."""
    for place in searched(results):
        for measure in utility_measures(results, place.collection)[:1]:
            motivated = results.measures(Place(place.collection), "motivated")
            encoders = [measure.detail for measure in motivated]
            risks = [Measure(kind, encoder) for encoder in encoders for kind in INFERENCE]
            if risks:
                yield _attackers(results, legend, place, measure, risks)
            if attacks := strongest(results, place.collection):
                yield _strongest(results, legend, place, measure, attacks)


def _attackers(
    results: Results, legend: Legend, place: Place, measure: Measure, risks: list[Measure]
) -> ReportFigure:
    figure, plots = sheet(len(risks), columns=3, width=3.4, height=3.5)
    words = []
    for plot, attacker in zip(plots, risks, strict=True):
        title = f"{attacker.kind}, {attacker.detail} encoder"
        plot.set_xlabel(f"risk: {RISKS[attacker.kind]}")
        risk = means(results, attacker, Place(place.collection))
        words.append(f"{title}: {_draw_paths(plot, results, legend, place, measure, risk)}")
        plot.set_title(title, fontsize=10)
    legend_below(figure, plots)
    return ReportFigure(
        name=slug("plane", *place),
        title=f"Risk and utility: {place_name(place)}",
        caption=f"The risk that the query is found in a log, by attacker, against {measure.label}: "
        f"means over {_queries(results, measure, place)}. {READING}" + legend.left_out,
        figure=figure,
        alt=f"Paths of risk and {measure.label}. " + ". ".join(words) + ".",
    )


def _strongest(
    results: Results,
    legend: Legend,
    place: Place,
    measure: Measure,
    attacks: Mapping[Setting, Strongest],
) -> ReportFigure:
    figure, plots = sheet(1, width=5.4, height=5.0)
    plots[0].set_xlabel("risk: words that the strongest attack brings back")
    risk = {setting: attack.mean for setting, attack in attacks.items()}
    words = _draw_paths(plots[0], results, legend, place, measure, risk)
    legend_below(figure, plots)
    names = dict.fromkeys(attack.attack.label for attack in attacks.values())
    return ReportFigure(
        name=slug("plane-strongest", *place),
        title=f"Strongest attack and utility: {place_name(place)}",
        caption="The share of the words that the strongest attack on each setting brings back "
        f"({', '.join(names)}), against {measure.label}: means over "
        f"{_queries(results, measure, place)}{_attacked(attacks)}. {READING}" + legend.left_out,
        figure=figure,
        alt=f"Paths of words brought back and {measure.label}. {words}.",
    )


def _draw_paths(
    plot: Axes,
    results: Results,
    legend: Legend,
    place: Place,
    measure: Measure,
    risk: Mapping[Setting, float],
) -> str:
    """Draw the paths of all settings that have both; say in words where each ends."""
    utility, label = means(results, measure, place), measure.label
    paths, looks, ends = {}, {}, {}
    for curve, settings in curves(setting for setting in utility if setting in risk).items():
        if curve.mechanism in legend.aside:
            continue
        name = legend.name(curve)
        paths[name] = (
            [risk[setting] for setting in settings],
            [utility[setting] for setting in settings],
        )
        looks[name] = legend.look(curve)
        if settings[0].epsilon is not None:
            ends[name] = (f"{settings[0].epsilon:g}", f"{settings[-1].epsilon:g}")
    best = baseline(results, measure, place)
    if best is not None:
        plot.axhline(best, color=MUTED, linestyle="--", linewidth=1.2, label="no privacy")
    plane(plot, paths, looks=looks, ends=ends, x=plot.get_xlabel(), y=label, legend=False)
    return "; ".join(
        f"{name} ends at risk {risks[-1]:.2f}, {label} {utilities[-1]:.2f}"
        for name, (risks, utilities) in paths.items()
    )


def _queries(results: Results, measure: Measure, place: Place) -> str:
    return counted(len(results.grid(measure, place).queries), "query", "queries")


def _attacked(attacks: Mapping[Setting, Strongest]) -> str:
    """Of how many queries the risks are, as far as attacks differ in that."""
    counts = sorted({len(attack.queries) for attack in attacks.values()})
    if len(counts) == 1:
        return f", risks over {counts[0]}"
    return f", risks over {counts[0]} to {counts[-1]}, by attack"


# Radars: recall, nDCG and obfuscation at once


def radar_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each engine and re-ranker: a radar for each mechanism, a shape for each epsilon."""
    for place in searched(results):
        measures = utility_measures(results, place.collection)
        recalls_measured = (measure for measure in measures if measure.kind == "pooled recall")
        recall = next(recalls_measured, None)
        if recall is None or MAIN_MEASURE not in measures:
            continue
        recalls = means(results, recall, place)
        similarity = means(results, MAIN_SIMILARITY, Place(place.collection))
        values = {
            setting: (recalls[setting], gain, 1 - similarity[setting])
            for setting, gain in means(results, MAIN_MEASURE, place).items()
            if setting in similarity and setting.mechanism not in legend.aside
        }
        if values:
            yield _radar(results, legend, recall, place, values)


def _radar(
    results: Results,
    legend: Legend,
    recall: Measure,
    place: Place,
    values: dict[Setting, tuple[float, float, float]],
) -> ReportFigure:
    by_curve = curves(values)
    epsilons = sorted({setting.epsilon for setting in values if setting.epsilon is not None})
    shown = spread(epsilons, MOST_EPSILONS)
    itself = [baseline(results, measure, place) for measure in (recall, MAIN_MEASURE)]
    figure, plots = sheet(len(by_curve), columns=4, width=2.5, height=2.5, polar=True)
    for plot, (curve, settings) in zip(plots, by_curve.items(), strict=True):
        shapes: dict[str, Any] = {}
        looks: dict[str, dict[str, Any]] = {}
        if None not in itself:
            shapes["no privacy"] = (*itself, 0.0)
            looks["no privacy"] = {"color": MUTED, "linestyle": ":", "linewidth": 1.2}
        for setting in settings:
            if setting.epsilon is None or setting.epsilon in shown:
                name = "no epsilon" if setting.epsilon is None else f"epsilon {setting.epsilon:g}"
                shapes[name], looks[name] = values[setting], _shade(setting.epsilon, shown)
        radar(plot, AXES, shapes, looks=looks, title=legend.name(curve))
    legend_below(figure, plots)
    return ReportFigure(
        name=slug("radar", *place),
        title=f"Recall, nDCG and obfuscation: {place_name(place)}",
        caption=f"Means over {_queries(results, MAIN_MEASURE, place)}: {recall.label}, "
        f"{MAIN_MEASURE.label}, and obfuscation (obf.), 1 minus the semantic similarity of query "
        "and variants. A larger shape is better; darker shapes have a larger epsilon. Obfuscation "
        "is not the risk of an attack: that is in the planes." + legend.left_out,
        figure=figure,
        alt="Radar plots. "
        + "; ".join(
            f"{setting}: recall {corners[0]:.2f}, nDCG {corners[1]:.2f}, obfuscation "
            f"{corners[2]:.2f}"
            for setting, corners in values.items()
            if setting.epsilon is None or setting.epsilon in shown
        )
        + ".",
    )


def _shade(epsilon: float | None, shown: list[float]) -> dict[str, Any]:
    """Darker, and another marker, the larger the epsilon."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    place = len(shown) - 1 if epsilon is None else shown.index(epsilon)
    depth = 0.75 * (1 - (place + 1) / max(len(shown), 1))
    return {
        "color": to_hex(colormaps["cividis"](depth)),
        "marker": "X" if epsilon is None else MARKERS[place],
        "markersize": 4,
        "linewidth": 1.4,
        "linestyle": "-",
    }
