"""Heat maps of WBB over its boxes, k by n: figures 5 and 6 of the WBB paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sottovoce.experiments.measures import MAIN_MEASURE, MAIN_SIMILARITY, Measure
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.figures.curves import (
    Box,
    Legend,
    ReportFigure,
    baseline,
    box_of,
    searched,
    sheet,
    spread,
    utility_measures,
)
from sottovoce.experiments.results import Place, Results
from sottovoce.plotting import heat_map
from sottovoce.types import Float64Array

MOST_EPSILONS = 3
WIDEST = 11.0
"""Inches that maps may take side by side."""

Values = Mapping[tuple[Box, float | None], float]


def box_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """Recall, nDCG and similarity, wherever two settings of k or n were run."""
    boxes = {name: box for name in legend.mechanisms if (box := box_of(results, name)) is not None}
    if len({(box.k, box.n) for box in boxes.values()}) < 2:
        return
    for place in searched(results):
        for measure in utility_measures(results, place.collection):
            if measure == MAIN_MEASURE or measure.kind == "pooled recall":
                yield from _figures(results, boxes, measure, place)
    for collection in results.collections:
        yield from _figures(results, boxes, MAIN_SIMILARITY, Place(collection, "", ""))


def _figures(
    results: Results, boxes: Mapping[str, Box], measure: Measure, place: Place
) -> Iterator[ReportFigure]:
    """One for each release, n, and rest of the settings."""
    sets: dict[tuple[str, ...], dict[tuple[Box, float | None], float]] = {}
    for setting, value in results.means(measure, place).items():
        if (box := boxes.get(setting.mechanism)) is not None:
            way = (setting.release, f"n={setting.n}", *(f"{key}={rest}" for key, rest in box.rest))
            sets.setdefault(way, {})[box, setting.epsilon] = value
    telling = [at for at, parts in enumerate(zip(*sets, strict=True)) if len(set(parts)) > 1]
    for way, values in sets.items():
        if len({(box.k, box.n) for box, _ in values}) > 1:
            yield _figure(results, measure, place, [way[at] for at in telling], values)


def _figure(
    results: Results, measure: Measure, place: Place, way: Sequence[str], values: Values
) -> ReportFigure:
    label = measure.label
    ks, ns = (sorted({getattr(box, side) for box, _ in values}) for side in ("k", "n"))
    distances = list(dict.fromkeys(box.measure for box, _ in values))
    epsilons = _fullest(values)
    values = {key: value for key, value in values.items() if key[1] in epsilons}
    shown: dict[tuple[float | None, str], Float64Array] = {}
    for epsilon in epsilons:
        for distance in distances:
            cells = np.full((len(ks), len(ns)), np.nan)
            for (box, at), value in values.items():
                if (at, box.measure) == (epsilon, distance):
                    cells[ks.index(box.k), ns.index(box.n)] = value
            if not np.isnan(cells).all():
                shown[epsilon, distance] = cells
    width = max(2.4, 0.46 * len(ns) + 0.8)
    height = max(1.8, 0.34 * len(ks) + 0.9)
    beside = len(distances) if len(distances) > 1 else len(shown)
    columns = min(beside, int(WIDEST // width) or 1)
    figure, plots = sheet(len(shown), columns=columns, width=width, height=height)
    every = np.array(list(values.values()))
    for plot, ((epsilon, distance), cells) in zip(plots, shown.items(), strict=True):
        heat_map(
            plot,
            cells,
            rows=[str(k) for k in ks],
            columns=[str(n) for n in ns],
            low=float(every.min()),
            high=float(every.max()),
            title=distance if epsilon is None else f"{distance}, epsilon {epsilon:g}",
            x="n, candidate box (words)",
            y="k, safe box (words)",
        )
    queries = counted(len(results.grid(measure, place).queries), "query", "queries")
    best = baseline(results, measure, place) if place.engine else None
    largest, value = _largest(values)
    by = f"re-ranked by {place.reranker}" if place.reranker else ""
    parts = (last_part(place.collection), place.engine, by, *way)
    return ReportFigure(
        name=slug("boxes", label, *place, *way),
        title=f"WBB, {label} by its boxes: {', '.join(filter(None, parts))}",
        caption=f"Means over {queries}, by the size k of the safe box, the size n of the candidate "
        "box, and the distance that orders words; a lighter cell has a larger value. "
        + (f"Without privacy {label} is {best:.3f}. " if best is not None else "")
        + f"The largest is {value:.3f}, {largest}.",
        figure=figure,
        alt=f"Heat maps of {label}, from {every.min():.2f} to {every.max():.2f}, the largest "
        f"{largest}.",
    )


def _fullest(values: Values) -> list[float | None]:
    """The epsilons at which most boxes were run; of several, some spread over their range."""
    counts = Counter(epsilon for _, epsilon in values)
    most = max(counts.values())
    full = (epsilon for epsilon, count in counts.items() if count == most)
    return spread(sorted(full, key=lambda epsilon: epsilon or 0.0), MOST_EPSILONS)


def _largest(values: Values) -> tuple[str, float]:
    """Where the greatest value is, in words, and the value."""
    (box, epsilon), value = max(values.items(), key=lambda item: item[1])
    at = "" if epsilon is None else f", epsilon {epsilon:g}"
    return f"with k={box.k} and n={box.n} ({box.measure}{at})", value
