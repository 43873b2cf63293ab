"""What models still learn: accuracy against epsilon; DP-COMET figure 2 and CMP figure 5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY
from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet
from sottovoce.experiments.report.figures.over_epsilon import draw_lines
from sottovoce.experiments.report.figures.points import Line
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.results import Results, Setting, grouped
from sottovoce.statistics import mean_over_seeds

NOTHING = "nothing"


@dataclass(frozen=True)
class Scored:
    """A score of one model on one task, over all seeds."""

    task: str
    model: str
    regime: str
    mechanism: str
    epsilon: float | None
    measure: str
    value: float
    interval: tuple[float, float]
    items: int


def task_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each task and measure: a row of plots a model, a plot for each regime."""
    scores = list(_scores(results))
    for task, measure in dict.fromkeys((each.task, each.measure) for each in scores):
        here = [each for each in scores if (each.task, each.measure) == (task, measure)]
        if any(each.epsilon is not None for each in here):
            yield _figure(cast, here)


def _scores(results: Results) -> Iterator[Scored]:
    """All scores, with intervals over items and seeds."""
    keys = ("task", "model", "obfuscated", "mechanism", "epsilon", "measure", "seed")
    together: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for (*setting, _), (items, values) in grouped(results.tasks, keys, ("item", "value")):
        together.setdefault(tuple(setting), []).append((items, values))
    for (task, model, regime, mechanism, epsilon, measure), seeds in together.items():
        items = [each for each, _ in seeds]
        value, interval = mean_over_seeds(items, [each for _, each in seeds], (0.0, 1.0))
        count = len(np.unique(np.concatenate(items)))
        yield Scored(task, model, regime, mechanism, epsilon, measure, value, interval, count)


def _figure(cast: Cast, scores: list[Scored]) -> Figured:
    from sottovoce.plotting import legend_below

    task, measure = scores[0].task, scores[0].measure
    hidden = [each for each in scores if each.regime != NOTHING]
    models = list(dict.fromkeys(each.model for each in hidden))
    regimes = list(dict.fromkeys(each.regime for each in hidden))
    places = [(model, regime) for model in models for regime in regimes]
    figure, plots = sheet(len(places), columns=len(regimes), width=3.5, height=3.0)
    told = []
    for plot, (model, regime) in zip(plots, places, strict=True):
        lines = list(_lines(cast, [e for e in hidden if (e.model, e.regime) == (model, regime)]))
        clean = _value(scores, model)
        levels = {"clean": clean} | {
            name: value
            for name in (MAJORITY, CHANCE)
            if (value := _value(scores, name)) is not None
        }
        title = f"{model}: {regime} obfuscated"
        draw_lines(plot, lines, cast, title=title, y=measure, levels=levels)
        ends = ", ".join(f"{cast.name(e.curve)} {e.means[-1]:.2f}" for e in lines)
        told.append(f"{title}, at the largest epsilon {ends}")
    legend_below(figure, plots)
    items = max(each.items for each in scores)
    return Figured(
        name=slug("task", measure, task),
        title=f"{measure} against epsilon: {last_part(task)}",
        caption=f"What a model gets right that learnt from, or is asked with, obfuscated texts: "
        f"means over {counted(items, 'test item')} with 95 % intervals. The dashed line is the "
        "same model on clean texts, the dotted one a model that looks at nothing: a score there "
        "means that nothing was learnt.",
        figure=figure,
        alt=f"Line charts of {measure} over epsilon. {'. '.join(told)}.",
    )


def _lines(cast: Cast, scores: list[Scored]) -> Iterator[Line]:
    for mechanism in dict.fromkeys(each.mechanism for each in scores):
        if mechanism in cast.aside:
            continue
        points = sorted(
            (each for each in scores if each.mechanism == mechanism),
            key=lambda each: each.epsilon or 0.0,
        )
        epsilons = [each.epsilon for each in points]
        yield Line(
            Setting(mechanism, None, "", 0),
            None if None in epsilons else np.array(epsilons, dtype=np.float64),
            np.array([each.value for each in points]),
            np.array([each.interval[0] for each in points]),
            np.array([each.interval[1] for each in points]),
        )


def _value(scores: list[Scored], model: str) -> float | None:
    """A model's score on clean texts."""
    found = (each.value for each in scores if each.regime == NOTHING and each.model == model)
    return next(found, None)
