"""What models still learn, by mechanism, epsilon and what was obfuscated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.table import Cell, Number, Table, by_epsilon
from sottovoce.experiments.results import Results, grouped
from sottovoce.statistics import mean_over_seeds

KEYS = ("task", "measure", "model", "obfuscated", "mechanism", "epsilon", "seed")
BLIND = {MAJORITY: "the most frequent label, always", CHANCE: "a random order"}


def task_tables(results: Results) -> Iterator[Table]:
    """A table for each task and measure: clean first, then each mechanism and regime."""
    tables: dict[tuple[str, str], dict[tuple[Any, ...], list[tuple[Any, Any]]]] = {}
    for (task, measure, *key, _), both in grouped(results.tasks, KEYS, ("item", "value")):
        tables.setdefault((task, measure), {}).setdefault(tuple(key), []).append(both)
    for (task, measure), found in tables.items():
        rows: dict[tuple[str, str, str], dict[float | None, Cell]] = {}
        for (model, regime, mechanism, epsilon), seeds in found.items():
            items, values = zip(*seeds, strict=True)
            value, interval = mean_over_seeds(items, values, (0.0, 1.0))
            label = (model, mechanism or "nothing obfuscated", regime if mechanism else "–")
            rows.setdefault(label, {})[epsilon] = Number(value, interval)
        columns, cells = by_epsilon(("model", "mechanism", "obfuscated"), rows.items())
        most = max(len(each) for each in found.values())
        tested = len(np.unique(np.concatenate([i for each in found.values() for i, _ in each])))
        models = {key[0] for key in found}
        yield Table(
            name=slug("task", task, measure),
            title=f"Downstream: {last_part(task)}, {measure}",
            caption=f"Mean {measure} over test items and seeds. {counted(tested, 'test item')}, "
            f"{counted(most, 'seed')}; no queries; 95 % t intervals over items and seeds.",
            columns=columns,
            rows=cells,
            notes=tuple(f"{each}: {said}." for each, said in BLIND.items() if each in models),
        )
