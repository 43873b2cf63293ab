"""Tables beside queries: of words, tasks and audits, and of what the numbers were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY
from sottovoce.experiments.estimates import TaskScore, task_scores
from sottovoce.experiments.measures import AUDITED, DISTINCT, MOVED, SUPPORT, UNCHANGED
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.table import Cell, Number, Table, point_column
from sottovoce.experiments.results import Point, Results, grouped
from sottovoce.types import Float64Array

PERCENTILES = (5, 50, 95)
WORST = {UNCHANGED: np.max, SUPPORT: np.min}
"""Deniability is as good as for the word that is worst off."""
BLIND = {MAJORITY: "the most frequent label, always", CHANCE: "a random order"}
ELSEWHERE = ("name", "description", "notes", "experiment")
"""Entries of the manifest that stand at the head of the page, and the experiment's own file."""


# Words


def word_tables(results: Results) -> Iterator[Table]:
    """A table of N_w and S_w and one of distances for each space."""
    deniability, distances = results.deniability(), results.neighbour_distances()
    for space in dict.fromkeys([*deniability, *distances]):
        if space in deniability:
            yield _deniability(results, space, deniability[space])
        if space in distances:
            yield _neighbours(space, distances[space])


def _deniability(
    results: Results,
    space: str,
    settings: Mapping[tuple[str, float | None], Mapping[str, Float64Array]],
) -> Table:
    measured = {measure for by_measure in settings.values() for measure in by_measure}
    in_full = [measure for measure in WORST if measure in measured]
    means = [measure for measure in (DISTINCT, MOVED) if measure in measured]
    head, values = point_column([_point(results, *setting) for setting in settings])
    columns = ["mechanism", head]
    for measure in in_full:
        columns += [f"{measure} mean", *(f"{measure} {share} %" for share in PERCENTILES)]
        columns += [f"{measure} worst"]
    rows: list[tuple[Cell, ...]] = []
    for ((mechanism, _), by_measure), value in zip(settings.items(), values, strict=True):
        row: list[Cell] = [mechanism, value]
        for measure in in_full:
            by_word = by_measure.get(measure, np.array([np.nan]))
            row += [*_percentiles(by_word), Number(float(WORST[measure](by_word)))]
        for measure in means:
            row.append(Number(float(by_measure.get(measure, np.array([np.nan])).mean())))
        rows.append(tuple(row))
    words = max(len(values) for by_measure in settings.values() for values in by_measure.values())
    return Table(
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


def _neighbours(space: str, by_rank: Mapping[int, Float64Array]) -> Table:
    words = max(len(distances) for distances in by_rank.values())
    return Table(
        name=slug("neighbour-distances", space),
        title=f"Distances to neighbours, {last_part(space)}",
        caption="Euclidean distance of a word to its nearest, tenth nearest … neighbour: mean and "
        f"percentiles over {counted(words, 'word')}; no chance and no queries.",
        columns=("neighbour", "mean", *(f"{share} %" for share in PERCENTILES)),
        rows=tuple((rank, *_percentiles(by_rank[rank])) for rank in sorted(by_rank)),
        notes=(
            "Where privacy is metric in Euclidean distance, epsilon counts for each unit of it.",
        ),
    )


def _point(results: Results, mechanism: str, value: float | None) -> Point:
    return Point.of(results.axis(mechanism), value)


def _percentiles(values: Float64Array) -> list[Cell]:
    return [Number(float(cut)) for cut in (values.mean(), *np.percentile(values, PERCENTILES))]


def sample_tables(results: Results) -> Iterator[Table]:
    """What was released for some words, where N_w has each level: table 1 of the CMP paper."""
    keys = ("space", "word", "mechanism", "level", "epsilon")
    by_space: dict[str, list[tuple[Cell, ...]]] = {}
    by_word = sorted(grouped(results.samples, keys, ("released",)), key=lambda item: item[0])
    for (space, word, mechanism, level, epsilon), (released,) in by_word:
        row = (word, mechanism, f"{level:g}", f"{epsilon:g}", ", ".join(released))
        by_space.setdefault(space, []).append(row)
    for space, rows in by_space.items():
        yield Table(
            name=slug("samples", space),
            title=f"What is released for a word, {last_part(space)}",
            caption="The first different words drawn for a word, other than itself, at the epsilon "
            "where words come back with probability N_w on average; 1 seed, no queries.",
            columns=("word", "mechanism", "mean N_w", "ε", "released"),
            rows=tuple(rows),
        )


# Membership


def audit_tables(results: Results) -> Iterator[Table]:
    """A table for each log: what each auditor finds, clean text first."""
    keys = ("log", "mechanism", "epsilon", "auditor", "measure")
    logs: dict[str, dict[tuple[str, Point, str], dict[str, Number]]] = {}
    for (log, *labels, measure), values in grouped(results.audits, keys, ("value", "low", "high")):
        mechanism, epsilon, auditor = labels
        row = (mechanism, _point(results, mechanism, epsilon), auditor)
        value, low, high = (float(column.mean()) for column in values)
        logs.setdefault(log, {}).setdefault(row, {})[measure] = Number(value, (low, high))
    for log, rows in logs.items():
        head, points = point_column([point for _, point, _ in rows])
        yield Table(
            name=slug("audit", log),
            title=f"Whose releases a model learnt from: {last_part(log)}",
            caption="An auditor asks a text model about users' original queries and tells whose "
            "releases it learnt from; half of the users are members, so a blind auditor has .5. "
            "Precision, recall and accuracy are at the auditor's own threshold. 95 % intervals "
            "over users.",
            columns=("released", head, "auditor", *AUDITED),
            rows=tuple(
                (mechanism or "clean text", point, auditor, *map(cells.get, AUDITED))
                for ((mechanism, _, auditor), cells), point in zip(
                    rows.items(), points, strict=True
                )
            ),
            notes=(
                "An AUC below .5 is no privacy: whoever is always wrong can invert the answer, and "
                "has max(AUC, 1 - AUC).",
            ),
        )


# Downstream tasks


def task_tables(results: Results) -> Iterator[Table]:
    """A table for each task and measure: clean first, then each mechanism and regime."""
    tables: dict[tuple[str, str], list[TaskScore]] = {}
    for score in task_scores(results):
        tables.setdefault((score.task, score.measure), []).append(score)
    for (task, measure), scores in tables.items():
        rows: dict[tuple[str, ...], dict[Point, Cell]] = {}
        for score in scores:
            regime = score.obfuscated if score.mechanism else "–"
            labels = (score.model, score.mechanism or "nothing obfuscated", regime)
            point = _point(results, score.mechanism, score.epsilon)
            rows.setdefault(labels, {})[point] = Number(score.value, score.interval)
        seeds = max(score.seeds for score in scores)
        items = len(np.unique(np.concatenate([score.items for score in scores])))
        models = {score.model for score in scores}
        yield Table.over_points(
            ("model", "mechanism", "obfuscated"),
            rows.items(),
            name=slug("task", task, measure),
            title=f"Downstream: {last_part(task)}, {measure}",
            caption=f"Mean {measure} over test items and seeds. {counted(items, 'test item')}, "
            f"{counted(seeds, 'seed')}; no queries; 95 % t intervals over items and seeds.",
            notes=tuple(f"{model}: {what}." for model, what in BLIND.items() if model in models),
        )


# Versions, hashes, seeds, times, and what did not apply


def manifest_tables(manifest: dict[str, Any]) -> Iterator[Table]:
    """A table of plain entries, and one for each group of them."""
    shown = {key: value for key, value in manifest.items() if key not in ELSEWHERE}
    groups = {key: value for key, value in shown.items() if isinstance(value, dict)}
    plain = {key: value for key, value in shown.items() if key not in groups}
    for name, entries in {"run": plain, **groups}.items():
        rows = tuple((_spaced(key), _written(value)) for key, value in entries.items())
        if rows:
            yield Table(
                name=f"manifest-{name}".replace("_", "-"),
                title=f"Manifest: {_spaced(name)}",
                caption="",
                columns=("what", "value"),
                rows=rows,
            )


def _spaced(key: str) -> str:
    return key.replace("_", " ")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_written(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_spaced(str(key))} {_written(item)}" for key, item in value.items())
    return json.dumps(value)
