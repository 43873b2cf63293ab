"""Numbers out of results: means with intervals, the strongest attack, QuIPU and task scores.

The strongest attack on a setting is what an attacker gets who tries them all. Attacks on words give
the share of a query's words that came back. Query inference that names the right query at the first
guess has all its words, otherwise none is counted. So both are shares of words, and for mechanisms
that leave no words to line up there is still a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sottovoce.experiments.measures import MAIN_MEASURE, STRONGEST, Measure
from sottovoce.experiments.results import Grid, Place, Results, Setting, curves, grouped
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.privacy.attacks.headline import strongest as _strongest
from sottovoce.privacy.quipu_score import QuipuScore, quipu
from sottovoce.statistics import bootstrap_means, clopper_pearson, mean_over_seeds
from sottovoce.types import Float64Array, IntArray

LAW_ALONE = "law alone"
"""The attack on sets of who knows how they are drawn, and nothing of what people ask."""
MOST_ON_SETS = 6


class Estimate(NamedTuple):
    """A mean over queries, and its 95 % interval."""

    value: float
    interval: tuple[float, float]


def estimates(grid: Grid, measure: Measure) -> dict[Setting, Estimate]:
    """The mean of each setting over its queries, with the interval that suits the measure."""
    rows = np.flatnonzero((~np.isnan(grid.values)).any(axis=1))
    values = grid.values[rows]
    low, high = shares(values) if measure.is_share else bootstrap_means(values)
    means = np.nanmean(values, axis=1) if len(rows) else []
    return {
        grid.settings[row]: Estimate(float(mean), (float(start), float(end)))
        for row, mean, start, end in zip(rows, means, low, high, strict=True)
    }


def shares(values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Clopper and Pearson over queries: several seeds of a query are one observation, a mean."""
    counts = (~np.isnan(values)).sum(axis=1)
    hits = np.minimum(np.nansum(values, axis=1), counts)
    return clopper_pearson(hits, np.maximum(counts, 1))


@dataclass(frozen=True)
class Strongest:
    """The attack with the greatest mean over queries, and its values."""

    attack: Measure
    queries: tuple[str, ...]
    values: Float64Array

    @property
    def mean(self) -> float:
        """The share of words that came back, over the queries."""
        return float(self.values.mean())

    @property
    def by_query(self) -> dict[str, float]:
        """The share of each query's words that came back."""
        return dict(zip(self.queries, self.values.tolist(), strict=True))


def strongest(results: Results, collection: str) -> dict[Setting, Strongest]:
    """The strongest attack on each setting; settings that nothing attacked are left out.

    So are sets that were not attacked as such: who compares texts with a log gets little from them,
    and that says nothing. Query inference that names the query at the first guess has all of its
    words.
    """
    unattacked = not_attacked_as_sets(results, collection)
    by_setting: dict[Setting, list[Strongest]] = {}
    for measure in results.measures(Place(collection), "words", "lazy"):
        grid = results.grid(measure, Place(collection))
        for setting, row in zip(grid.settings, grid.values, strict=True):
            measured = np.flatnonzero(~np.isnan(row))
            if not len(measured) or setting in unattacked:
                continue
            queries = tuple(grid.queries[number] for number in measured)
            by_setting.setdefault(setting, []).append(Strongest(measure, queries, row[measured]))
    return {
        setting: best for setting, attacks in by_setting.items() if (best := _strongest(attacks))
    }


def not_attacked_as_sets(results: Results, collection: str) -> list[Setting]:
    """The settings that send sets, and that no attack on sets was run on."""
    place = Place(collection)
    grids = {measure: results.grid(measure, place) for measure in results.measures(place, "lazy")}
    attacked = {
        setting
        for measure, grid in grids.items()
        if results.is_on_sets(measure.detail)
        for setting in grid.settings
    }
    measured = dict.fromkeys(setting for grid in grids.values() for setting in grid.settings)
    return [setting for setting in measured if setting.axis.is_set and setting not in attacked]


def shown_on_sets(results: Results, collection: str) -> list[Measure]:
    """The attacks on sets that figures have room for: the strongest few, the strongest first.

    That of who knows nothing of what people ask is among them: what it gets is proven.
    """
    place = Place(collection)
    gets = {
        measure: max(results.means(measure, place).values())
        for measure in results.measures(place, "lazy")
        if results.is_on_sets(measure.detail)
    }
    by_strength = sorted(gets, key=lambda measure: -gets[measure])
    weaker = [measure for measure in by_strength[MOST_ON_SETS:] if measure.detail == LAW_ALONE]
    return by_strength[: MOST_ON_SETS - len(weaker)] + weaker


def quipu_scores(
    results: Results,
    place: Place,
    risk: Measure | str = STRONGEST,
    utility: Measure | str = MAIN_MEASURE,
) -> dict[Setting, QuipuScore]:
    """The score of each curve that has at least two epsilons, by its ``Setting.curve``.

    risk
        A measure, as ``motivated[light]`` or ``words[mode]``; or ``strongest``: at each epsilon the
        attack that gets most there.

    Points go from the most private to the least, as :func:`curves` has them. Over queries that
    have both values at every one of them; the anchored score ends at the utility of those queries
    without privacy.
    """
    utilities = results.values(utility, place)
    if Measure.read(risk) == STRONGEST:
        attacks = strongest(results, place.collection)
        risks = {setting: attack.by_query for setting, attack in attacks.items()}
    else:
        risks = results.values(risk, Place(place.collection))
    itself = next(iter(results.values(utility, place, NO_PRIVACY).values()), {})
    scores: dict[Setting, QuipuScore] = {}
    for curve, points in curves(setting for setting in utilities if setting in risks).items():
        measured = [utilities[point] for point in points] + [risks[point] for point in points]
        queries = [query for query in measured[0] if all(query in values for values in measured)]
        if len(points) < 2 or not queries:
            continue
        best = [itself[query] for query in queries if query in itself]
        scores[curve] = quipu(
            [[risks[point][query] for query in queries] for point in points],
            [[utilities[point][query] for query in queries] for point in points],
            best=best if len(best) == len(queries) else None,
        )
    return scores


@dataclass(frozen=True)
class TaskScore:
    """A score of one model on one task, over all seeds."""

    task: str
    measure: str
    model: str
    obfuscated: str
    """Which texts were: nothing, only those learnt from, …"""
    mechanism: str
    epsilon: float | None
    value: float
    interval: tuple[float, float]
    items: IntArray
    """Numbers of the test items."""
    seeds: int


def task_scores(results: Results) -> Iterator[TaskScore]:
    """All scores of downstream tasks, with intervals over items and seeds."""
    keys = ("task", "measure", "model", "obfuscated", "mechanism", "epsilon", "seed")
    by_setting: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for (*fields, _), of_seed in grouped(results.tasks, keys, ("item", "value")):
        by_setting.setdefault(tuple(fields), []).append(of_seed)
    for setting, of_seeds in by_setting.items():
        items, values = zip(*of_seeds, strict=True)
        value, interval = mean_over_seeds(items, values, (0.0, 1.0))
        distinct, seeds = np.unique(np.concatenate(items)), len(of_seeds)
        named = dict(zip(keys, setting, strict=False))
        yield TaskScore(**named, value=value, interval=interval, items=distinct, seeds=seeds)
