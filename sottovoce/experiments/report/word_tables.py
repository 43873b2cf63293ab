"""Plausible deniability, word by word, and how far words are from their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.table import Cell, Number, Table
from sottovoce.experiments.results import Results, grouped
from sottovoce.types import Float64Array

SHARES = (5, 50, 95)
NEIGHBOUR = "distance to neighbour "
WORST = {"N_w": np.max, "S_w": np.min}
"""Deniability is as good as for the word that is worst off."""


def word_tables(results: Results) -> Iterator[Table]:
    """A table of N_w and S_w and one of distances for each space."""
    keys = ("space", "mechanism", "epsilon", "measure")
    found = {key: values for key, (values,) in grouped(results.words, keys)}
    for space in dict.fromkeys(key[0] for key in found):
        here = {key[1:]: values for key, values in found.items() if key[0] == space}
        yield from _deniability(space, here)
        yield from _neighbours(space, here)


def _deniability(
    space: str, found: dict[tuple[str, float | None, str], Float64Array]
) -> Iterator[Table]:
    settings = dict.fromkeys(key[:2] for key in found if key[2] in WORST)
    if not settings:
        return
    measures = [each for each in WORST if any(key[2] == each for key in found)]
    means = [each for each in ("distinct", "moved") if any(key[2] == each for key in found)]
    columns = ["mechanism", "ε"]
    for measure in measures:
        columns += [f"{measure} mean", *(f"{measure} {share} %" for share in SHARES)]
        columns += [f"{measure} worst"]
    rows: list[tuple[Cell, ...]] = []
    for mechanism, epsilon in settings:
        row: list[Cell] = [mechanism, "–" if epsilon is None else f"{epsilon:g}"]
        for measure in measures:
            values = found.get((mechanism, epsilon, measure), np.array([np.nan]))
            row += [*_percentiles(values), Number(float(WORST[measure](values)))]
        for measure in means:
            values = found.get((mechanism, epsilon, measure), np.array([np.nan]))
            row.append(Number(float(values.mean())))
        rows.append(tuple(row))
    words = max(len(values) for key, values in found.items() if key[2] in WORST)
    yield Table(
        name=slug("deniability", space),
        title=f"Plausible deniability, {last_part(space)}",
        caption="N_w: how often a word comes back as itself. S_w: how many words make up 99 % of "
        "its releases. Mean, percentiles and worst over words: the greatest N_w, the least S_w. "
        + ("Distinct and moved: means over words of what was drawn. " if means else "")
        + f"{counted(words, 'word')}, 1 seed, no queries.",
        columns=(*columns, *means),
        rows=tuple(rows),
        notes=("Neither says what can be guessed from many releases of one word.",),
    )


def _neighbours(
    space: str, found: dict[tuple[str, float | None, str], Float64Array]
) -> Iterator[Table]:
    distances = {
        int(measure.removeprefix(NEIGHBOUR)): values
        for (_, _, measure), values in found.items()
        if measure.startswith(NEIGHBOUR)
    }
    if not distances:
        return
    words = max(len(each) for each in distances.values())
    yield Table(
        name=slug("neighbour-distances", space),
        title=f"Distances to neighbours, {last_part(space)}",
        caption="Euclidean distance of a word to its nearest, tenth nearest … neighbour: mean and "
        f"percentiles over {counted(words, 'word')}; no chance and no queries.",
        columns=("neighbour", "mean", *(f"{share} %" for share in SHARES)),
        rows=tuple((rank, *_percentiles(distances[rank])) for rank in sorted(distances)),
        notes=(
            "Where privacy is metric in Euclidean distance, epsilon counts for each unit of it.",
        ),
    )


def _percentiles(values: Float64Array) -> list[Cell]:
    return [Number(float(each)) for each in (values.mean(), *np.percentile(values, SHARES))]
