"""Risk and utility together: planes (figure 4 of the QuIPU paper), radars (paper 003, figure 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sottovoce.experiments.estimates import Strongest, shown_on_sets, strongest
from sottovoce.experiments.measures import (
    CHANCE,
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
    directions,
    searched,
    sheet,
    spread,
    utility_measures,
)
from sottovoce.experiments.report.table import place_name
from sottovoce.experiments.results import Axis, Parameter, Place, Point, Results, Setting, curves
from sottovoce.plotting import DASHES, MARKERS, MUTED, legend_below, plane, radar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RISKS: dict[MeasureKind, str] = {
    "lazy": "found at the first guess",
    "active": "found within ten guesses",
    "motivated": "mean reciprocal rank",
}
READING = (
    "up and left is good. On the dotted diagonal the attacker gains as much as the person; the "
    "dashed line is the utility of the query itself."
)
OF_SETS = "Of sets: how often what stands for the query is named at the first guess. "
BLIND = (
    "Upright strokes are a blind guess at the same sets: left of its stroke an attacker is on the "
    "wrong track, and the set no safer."
)
AXES = ("recall", "nDCG", "obf.")
MOST_EPSILONS = 4


# Planes


def plane_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each engine and re-ranker: attackers by encoder, those on sets, then the strongest."""
    for place in searched(results):
        for measure in utility_measures(results, place.collection)[:1]:
            motivated = results.measures(Place(place.collection), "motivated")
            encoders = [risk.detail for risk in motivated if not results.is_on_sets(risk.detail)]
            risks = [Measure(kind, encoder) for encoder in encoders for kind in INFERENCE]
            if risks:
                yield _attackers(results, legend, place, measure, risks)
            if on_sets := shown_on_sets(results, place.collection):
                yield _on_sets(results, legend, place, measure, on_sets)
            if attacks := strongest(results, place.collection):
                yield _strongest(results, legend, place, measure, attacks)


def _attackers(
    results: Results, legend: Legend, place: Place, measure: Measure, risks: list[Measure]
) -> ReportFigure:
    figure, plots = sheet(len(risks), columns=3, width=3.4, height=3.5)
    words = []
    for plot, attacker in zip(plots, risks, strict=True):
        title = f"{attacker.kind}, {attacker.detail}"
        plot.set_xlabel(f"risk: {RISKS[attacker.kind]}")
        risk = results.means(attacker, Place(place.collection))
        words.append(f"{title}: {_draw_paths(plot, results, legend, place, measure, risk)}")
        plot.set_title(title, fontsize=10)
    legend_below(figure, plots)
    return ReportFigure(
        name=slug("plane", *place),
        title=f"Risk and utility: {place_name(place)}",
        caption=f"The risk that the query is found in a log, by attacker, against {measure.label}: "
        f"means over {_queries(results, measure, place)}. "
        f"{_reading(results, legend, risks, place)}" + legend.left_out,
        figure=figure,
        alt=f"Paths of risk and {measure.label}. " + ". ".join(words) + ".",
    )


def _on_sets(
    results: Results, legend: Legend, place: Place, measure: Measure, risks: list[Measure]
) -> ReportFigure:
    figure, plots = sheet(len(risks), columns=3, width=3.4, height=3.5)
    words = []
    for plot, attacker in zip(plots, risks, strict=True):
        plot.set_xlabel("risk: the right one named first")
        risk = results.means(attacker, Place(place.collection))
        paths = _draw_paths(plot, results, legend, place, measure, risk)
        _mark_chance(plot, results, place, measure)
        words.append(f"{attacker.detail}: {paths}")
        plot.set_title(attacker.detail, fontsize=10)
    legend_below(figure, plots)
    by_knowledge: dict[str, list[str]] = {}
    for attacker in risks:
        known = results.knowledge(attacker.detail, place.collection)
        by_knowledge.setdefault(known, []).append(attacker.detail)
    know = ". ".join(f"{', '.join(names)}: {known}" for known, names in by_knowledge.items())
    chance = f" {BLIND}" if results.means(CHANCE, Place(place.collection)) else ""
    return ReportFigure(
        name=slug("plane-sets", *place),
        title=f"Risk of sets and utility: {place_name(place)}",
        caption="How often an attacker names, at the first guess, which of the queries that left "
        f"stands for the one asked, against {measure.label}: means over "
        f"{_queries(results, measure, place)}. These are the strongest attacks on sets, and the "
        f"one that knows nothing of what people ask; tables have all of them.{chance} What each "
        f"knows: {know}. {_reading(results, legend, risks, place)}" + legend.left_out,
        figure=figure,
        alt=f"Paths of risk and {measure.label}. " + ". ".join(words) + ".",
    )


def _reading(results: Results, legend: Legend, risks: Iterable[Measure], place: Place) -> str:
    """How to read planes of these risks."""
    grids = (results.grid(risk, Place(place.collection)) for risk in risks)
    return _paths([setting for grid in grids for setting in grid.settings], legend)


def _paths(settings: Iterable[Setting], legend: Legend) -> str:
    """From where to where the paths of these settings go, and what is good."""
    go = directions(settings, legend)
    if not go:
        return READING.capitalize()
    return f"Each path goes {go}, written at its ends where there is room; {READING}"


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
    blind = _mark_chance(plots[0], results, place, measure)
    legend_below(figure, plots)
    names = dict.fromkeys(attack.attack.label for attack in attacks.values())
    on_sets = any(results.is_on_sets(attack.attack.detail) for attack in attacks.values())
    return ReportFigure(
        name=slug("plane-strongest", *place),
        title=f"Strongest attack and utility: {place_name(place)}",
        caption="The share of the words that the strongest attack on each setting brings back "
        f"({', '.join(names)}), against {measure.label}: means over "
        f"{_queries(results, measure, place)}{_attacked(attacks)}. {OF_SETS if on_sets else ''}"
        f"{f'{BLIND} ' if blind else ''}{_paths(attacks, legend)}" + legend.left_out,
        figure=figure,
        alt=f"Paths of words brought back and {measure.label}. {words}.",
    )


def _mark_chance(plot: Axes, results: Results, place: Place, measure: Measure) -> bool:
    """Mark how often a blind guess is right at each setting, if that is known of any."""
    utility = results.means(measure, place)
    chance = results.means(CHANCE, Place(place.collection))
    points = [(blind, utility[setting]) for setting, blind in chance.items() if setting in utility]
    if points:
        at = tuple(zip(*points, strict=True))
        plot.plot(*at, "|", markersize=9, color=MUTED, label="a blind guess")
    return bool(points)


def _draw_paths(
    plot: Axes,
    results: Results,
    legend: Legend,
    place: Place,
    measure: Measure,
    risk: Mapping[Setting, float],
) -> str:
    """Draw the paths of all settings that have both; say in words where each ends."""
    utility, label = results.means(measure, place), measure.label
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
            ends[name] = (_end(settings[0].point), _end(settings[-1].point))
    best = baseline(results, measure, place)
    if best is not None:
        plot.axhline(best, color=MUTED, linestyle="--", linewidth=1.2, label="no privacy")
    plane(plot, paths, looks=looks, ends=ends, x=plot.get_xlabel(), y=label, legend=False)
    return "; ".join(
        f"{name} ends at risk {risks[-1]:.2f}, {label} {utilities[-1]:.2f}"
        for name, (risks, utilities) in paths.items()
    )


def _end(point: Point) -> str:
    """A value at the end of a path; one that is no epsilon says what it is."""
    if point.parameter == Parameter():
        return f"{point.value:g}"
    return f"{point.parameter.name}={point.value:g}"


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
        recalls = results.means(recall, place)
        similarity = results.means(MAIN_SIMILARITY, Place(place.collection))
        values = {
            setting: (recalls[setting], gain, 1 - similarity[setting])
            for setting, gain in results.means(MAIN_MEASURE, place).items()
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
    shown = _shown(values)
    itself = [baseline(results, measure, place) for measure in (recall, MAIN_MEASURE)]
    figure, plots = sheet(len(by_curve), columns=4, width=2.5, height=2.5, polar=True)
    for plot, (curve, settings) in zip(plots, by_curve.items(), strict=True):
        shapes: dict[str, Any] = {}
        looks: dict[str, dict[str, Any]] = {}
        if None not in itself:
            shapes["no privacy"] = (*itself, 0.0)
            looks["no privacy"] = {"color": MUTED, "linestyle": ":", "linewidth": 1.2}
        for setting in settings:
            if setting.point in shown:
                value, parameter = setting.epsilon, legend.parameter(setting.axis.parameter)
                name = "no epsilon" if value is None else f"{parameter} {value:g}"
                shapes[name], looks[name] = values[setting], _shade(setting.point, shown)
        radar(plot, AXES, shapes, looks=looks, title=legend.name(curve))
    legend_below(figure, plots)
    return ReportFigure(
        name=slug("radar", *place),
        title=f"Recall, nDCG and obfuscation: {place_name(place)}",
        caption=f"Means over {_queries(results, MAIN_MEASURE, place)}: {recall.label}, "
        f"{MAIN_MEASURE.label}, and obfuscation (obf.), 1 minus the semantic similarity of query "
        f"and variants. A larger shape is better; shapes get darker {directions(values, legend)}. "
        "Obfuscation is not the risk of an attack: that is in the planes." + legend.left_out,
        figure=figure,
        alt="Radar plots. "
        + "; ".join(
            f"{setting}: recall {corners[0]:.2f}, nDCG {corners[1]:.2f}, obfuscation "
            f"{corners[2]:.2f}"
            for setting, corners in values.items()
            if setting.point in shown
        )
        + ".",
    )


def _shown(settings: Iterable[Setting]) -> list[Point]:
    """Some points of each parameter, the most private first; and what has nothing to vary."""
    by_axis: dict[Axis, set[float]] = {}
    for setting in settings:
        if setting.epsilon is not None:
            by_axis.setdefault(setting.axis, set()).add(setting.epsilon)
    shown = [
        Point(axis.parameter, value)
        for axis, all_values in by_axis.items()
        for value in spread(sorted(all_values, reverse=axis.larger_hides), MOST_EPSILONS)
    ]
    return [*shown, Point()]


def _shade(point: Point, shown: list[Point]) -> dict[str, Any]:
    """Darker the less private a point of its parameter is; no two have marker and dashes alike."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    same = [other for other in shown if other.parameter == point.parameter]
    alike = [other for other in same if other.value is not None]
    place = len(alike) - 1 if point.value is None else alike.index(point)
    parameters = list(dict.fromkeys(other.parameter for other in shown))
    depth = 0.75 * (1 - (place + 1) / max(len(alike), 1))
    return {
        "color": to_hex(colormaps["cividis"](depth)),
        "marker": "X" if point.value is None else MARKERS[shown.index(point) % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.4,
        "linestyle": DASHES[parameters.index(point.parameter) % len(DASHES)],
    }
