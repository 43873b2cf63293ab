"""What models still learn: accuracy against epsilon; DP-COMET figure 2 and CMP figure 5."""

from __future__ import annotations

from collections.abc import Iterator

from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY
from sottovoce.experiments.estimates import TaskScore, task_scores
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.figures.curves import (
    Legend,
    Line,
    ReportFigure,
    draw_lines,
    sheet,
)
from sottovoce.experiments.results import Results, Setting
from sottovoce.plotting import legend_below

NOTHING = "nothing"


def task_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each task and measure: a row of plots a model, a plot for each regime."""
    by_task: dict[tuple[str, str], list[TaskScore]] = {}
    for score in task_scores(results):
        by_task.setdefault((score.task, score.measure), []).append(score)
    for scores in by_task.values():
        if any(score.epsilon is not None for score in scores):
            yield _figure(legend, scores)


def _figure(legend: Legend, scores: list[TaskScore]) -> ReportFigure:
    task, measure = scores[0].task, scores[0].measure
    obfuscated = [score for score in scores if score.obfuscated != NOTHING]
    models = list(dict.fromkeys(score.model for score in obfuscated))
    regimes = list(dict.fromkeys(score.obfuscated for score in obfuscated))
    panels = [(model, regime) for model in models for regime in regimes]
    figure, plots = sheet(len(panels), columns=len(regimes), width=3.5, height=3.0)
    ends = []
    for plot, (model, regime) in zip(plots, panels, strict=True):
        of_panel = [
            score for score in obfuscated if (score.model, score.obfuscated) == (model, regime)
        ]
        lines = list(_lines(legend, of_panel))
        levels = {"clean": _clean_value(scores, model)} | {
            name: value
            for name in (MAJORITY, CHANCE)
            if (value := _clean_value(scores, name)) is not None
        }
        title = f"{model}: {regime} obfuscated"
        draw_lines(plot, lines, legend, title=title, y=measure, levels=levels)
        last = ", ".join(f"{legend.name(line.curve)} {line.means[-1]:.2f}" for line in lines)
        ends.append(f"{title}, at the largest epsilon {last}")
    legend_below(figure, plots)
    items = max(len(score.items) for score in scores)
    return ReportFigure(
        name=slug("task", measure, task),
        title=f"{measure} against epsilon: {last_part(task)}",
        caption=f"What a model gets right that learnt from, or is asked with, obfuscated texts: "
        f"means over {counted(items, 'test item')} with 95 % intervals. The dashed line is the "
        "same model on clean texts, the dotted one a model that looks at nothing: a score there "
        "means that nothing was learnt.",
        figure=figure,
        alt=f"Line charts of {measure} over epsilon. {'. '.join(ends)}.",
    )


def _lines(legend: Legend, scores: list[TaskScore]) -> Iterator[Line]:
    for mechanism in dict.fromkeys(score.mechanism for score in scores):
        if mechanism not in legend.aside:
            points = [
                (score.epsilon, score.value, score.interval)
                for score in scores
                if score.mechanism == mechanism
            ]
            points.sort(key=lambda point: point[0] or 0.0)
            yield Line.of(Setting(mechanism, None, "", 0), points)


def _clean_value(scores: list[TaskScore], model: str) -> float | None:
    """A model's score on clean texts."""
    clean = (score for score in scores if score.obfuscated == NOTHING and score.model == model)
    return next((score.value for score in clean), None)
