"""Recall, nDCG and obfuscation at once: the radar plots of figure 1 of paper 003."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet, spread
from sottovoce.experiments.report.figures.points import (
    baseline,
    means,
    searched,
    utility_measures,
)
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.places import MAIN_MEASURE, SIMILARITY, Place
from sottovoce.experiments.results import Results, Setting, curves

AXES = ("recall", "nDCG", "obf.")
MOST_EPSILONS = 4


def radar_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each engine and re-ranker: a radar for each mechanism, a shape for each epsilon."""
    for where in searched(results):
        measures = utility_measures(results, where.collection)
        recall = next((each for each in measures if each.startswith("pooled recall")), None)
        if recall is None or MAIN_MEASURE not in measures:
            continue
        recalls = means(results, recall, **where._asdict())
        similarity = means(results, SIMILARITY, collection=where.collection)
        values = {
            setting: (recalls[setting], gain, 1 - similarity[setting])
            for setting, gain in means(results, MAIN_MEASURE, **where._asdict()).items()
            if setting in similarity and setting.mechanism not in cast.aside
        }
        if values:
            yield _figure(results, cast, recall, where, values)


def _figure(
    results: Results,
    cast: Cast,
    recall: str,
    where: Place,
    values: dict[Setting, tuple[float, float, float]],
) -> Figured:
    from sottovoce.plotting import MUTED, legend_below, radar

    lines = curves(values)
    epsilons = sorted({each.epsilon for each in values if each.epsilon is not None})
    shown = spread(epsilons, MOST_EPSILONS)
    itself = [baseline(results, measure, where) for measure in (recall, MAIN_MEASURE)]
    figure, plots = sheet(len(lines), columns=4, width=2.5, height=2.5, polar=True)
    for plot, (curve, settings) in zip(plots, lines.items(), strict=True):
        shapes: dict[str, Any] = {}
        looks: dict[str, dict[str, Any]] = {}
        if None not in itself:
            shapes["no privacy"] = (*itself, 0.0)
            looks["no privacy"] = {"color": MUTED, "linestyle": ":", "linewidth": 1.2}
        for setting in settings:
            if setting.epsilon is None or setting.epsilon in shown:
                name = "no epsilon" if setting.epsilon is None else f"epsilon {setting.epsilon:g}"
                shapes[name], looks[name] = values[setting], _shade(setting.epsilon, shown)
        radar(plot, AXES, shapes, looks=looks, title=cast.name(curve))
    legend_below(figure, plots)
    queries = len(results.grid(MAIN_MEASURE, **where._asdict()).queries)
    collection = last_part(where.collection)
    return Figured(
        name=slug("radar", *where),
        title=f"Recall, nDCG and obfuscation: {collection}, {where.engine}, "
        f"re-ranked by {where.reranker}",
        caption=f"Means over {counted(queries, 'query', 'queries')}: {recall}, {MAIN_MEASURE}, and "
        "obfuscation (obf.), 1 minus the semantic similarity of query and variants. A larger "
        "shape is better; darker shapes have a larger epsilon. Obfuscation is not the risk of an "
        "attack: that is in the planes." + cast.left_out,
        figure=figure,
        alt="Radar plots. "
        + "; ".join(
            f"{setting}: recall {each[0]:.2f}, nDCG {each[1]:.2f}, obfuscation {each[2]:.2f}"
            for setting, each in values.items()
            if setting.epsilon is None or setting.epsilon in shown
        )
        + ".",
    )


def _shade(epsilon: float | None, shown: list[float]) -> dict[str, Any]:
    """Darker, and another marker, the larger the epsilon."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    from sottovoce.plotting import MARKERS

    place = len(shown) - 1 if epsilon is None else shown.index(epsilon)
    depth = 0.75 * (1 - (place + 1) / max(len(shown), 1))
    return {
        "color": to_hex(colormaps["cividis"](depth)),
        "marker": "X" if epsilon is None else MARKERS[place],
        "markersize": 4,
        "linewidth": 1.4,
        "linestyle": "-",
    }
