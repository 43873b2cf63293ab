"""Heat maps of WBB over its boxes, k by n: figures 5 and 6 of the WBB paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from sottovoce.experiments.report.figures.boxes_grid import Box, box_of
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
from sottovoce.experiments.results import Results, Setting
from sottovoce.types import Float64Array

MOST_EPSILONS = 3
WIDEST = 11.0
"""Inches that maps may take side by side."""

Values = Mapping[tuple[Box, float | None], float]


def box_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """Recall, nDCG and similarity, wherever two settings of k or n were run."""
    boxes = {name: box for name in cast.mechanisms if (box := box_of(results, name)) is not None}
    if len({(box.k, box.n) for box in boxes.values()}) < 2:
        return
    everywhere = searched(results)
    for where in everywhere:
        for measure in utility_measures(results, where.collection):
            if measure == MAIN_MEASURE or measure.startswith("pooled recall"):
                yield from _figures(results, boxes, measure, where)
    for collection in dict.fromkeys(each.collection for each in results.groups):
        yield from _figures(results, boxes, SIMILARITY, Place(collection, "", ""))


def _figures(
    results: Results, boxes: Mapping[str, Box], measure: str, where: Place
) -> Iterator[Figured]:
    """One for each release, n, and rest of the settings."""
    sets: dict[tuple[str, ...], dict[tuple[Box, float | None], float]] = {}
    for setting, value in means(results, measure, **where._asdict()).items():
        if (box := boxes.get(setting.mechanism)) is not None:
            key = _way(setting, box)
            sets.setdefault(key, {})[box, setting.epsilon] = value
    telling = _differing(sets)
    for way, values in sets.items():
        if len({(box.k, box.n) for box, _ in values}) > 1:
            yield _figure(results, measure, where, [way[at] for at in telling], values)


def _figure(
    results: Results, measure: str, where: Place, way: Sequence[str], values: Values
) -> Figured:
    from sottovoce.plotting import heat_map

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
    figure, plots = sheet(
        len(shown),
        columns=min(
            len(distances) if len(distances) > 1 else len(shown), int(WIDEST // width) or 1
        ),
        width=width,
        height=max(1.8, 0.34 * len(ks) + 0.9),
    )
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
    queries = counted(len(results.grid(measure, **where._asdict()).queries), "query", "queries")
    best = baseline(results, measure, where) if where.engine else None
    largest, value = _largest(values)
    by = f"re-ranked by {where.reranker}" if where.reranker else ""
    here = ", ".join(filter(None, (last_part(where.collection), where.engine, by, *way)))
    return Figured(
        name=slug("boxes", measure, *where, *way),
        title=f"WBB, {measure} by its boxes: {here}",
        caption=f"Means over {queries}, by the size k of the safe box, the size n of the candidate "
        "box, and the distance that orders words; a lighter cell has a larger value. "
        + (f"Without privacy {measure} is {best:.3f}. " if best is not None else "")
        + f"The largest is {value:.3f}, {largest}.",
        figure=figure,
        alt=f"Heat maps of {measure}, from {every.min():.2f} to {every.max():.2f}, the largest "
        f"{largest}.",
    )


def _way(setting: Setting, box: Box) -> tuple[str, ...]:
    return setting.release, f"n={setting.n}", *(f"{name}={value}" for name, value in box.rest)


def _differing(ways: Collection[tuple[str, ...]]) -> list[int]:
    """Which parts of the ways tell them apart."""
    return [at for at, parts in enumerate(zip(*ways, strict=True)) if len(set(parts)) > 1]


def _fullest(values: Values) -> list[float | None]:
    """The epsilons at which most boxes were run; of several, some spread over their range."""
    counts = Counter(epsilon for _, epsilon in values)
    most = max(counts.values())
    full = sorted((each for each in counts if counts[each] == most), key=lambda each: each or 0.0)
    return spread(full, MOST_EPSILONS)


def _largest(values: Values) -> tuple[str, float]:
    """Where the greatest value is, in words, and the value."""
    (box, epsilon), value = max(values.items(), key=lambda each: each[1])
    at = "" if epsilon is None else f", epsilon {epsilon:g}"
    return f"with k={box.k} and n={box.n} ({box.measure}{at})", value
