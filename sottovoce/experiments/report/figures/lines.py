"""Against epsilon: utility (figure 3 of the QuIPU paper), words, similarity, tasks, audits.

Tasks are what models still learn: DP-COMET figure 2 and CMP figure 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY
from sottovoce.experiments.estimates import TaskScore, task_scores
from sottovoce.experiments.measures import AUC, Measure, MeasureKind
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.figures.curves import (
    Legend,
    Line,
    ReportFigure,
    baseline,
    by_parameter,
    draw_lines,
    in_words,
    lines_of,
    searched,
    sheet,
    utility_measures,
)
from sottovoce.experiments.report.table import interval_kind
from sottovoce.experiments.results import Parameter, Place, Results, Setting, grouped
from sottovoce.plotting import legend_below

Point: TypeAlias = tuple[float | None, float, tuple[float, float]]
"""An epsilon, a value, and its interval."""

NOTHING = "nothing"
RECALL_NOTE = (
    " A pool of several answers holds more documents than one answer: compare with the same depth, "
    "in the tables."
)


def utility_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each measure of a collection and re-ranker: a plot for each engine."""
    by_reranker: dict[tuple[str, str], list[Place]] = {}
    for place in searched(results):
        by_reranker.setdefault((place.collection, place.reranker), []).append(place)
    for (collection, _), places in by_reranker.items():
        for measure in utility_measures(results, collection):
            if (figure := _utility(results, legend, measure, places)) is not None:
                yield figure


def _utility(
    results: Results, legend: Legend, measure: Measure, places: list[Place]
) -> ReportFigure | None:
    panels = {
        (place, parameter): lines
        for place in places
        for parameter, lines in by_parameter(lines_of(results, legend, measure, place)).items()
    }
    if not panels:
        return None
    label = measure.label
    figure, plots = sheet(len(panels), columns=2, width=4.4 if len(panels) > 1 else 6.4)
    top = max(1.0, *(line.high.max() for lines in panels.values() for line in lines))
    for plot, ((place, _), lines) in zip(plots, panels.items(), strict=True):
        level = {"no privacy": baseline(results, measure, place)}
        draw_lines(plot, lines, legend, title=place.engine, y=label, levels=level, top=top)
    legend_below(figure, plots)
    collection, reranker = last_part(places[0].collection), places[0].reranker
    queries = len(results.grid(measure, places[0]).queries)
    against = legend.joined(parameter for _, parameter in panels)
    return ReportFigure(
        name=slug("utility", label, collection, reranker),
        title=f"{label} against {against}: {collection}, re-ranked by {reranker}",
        caption=f"How good answers are at each {against}: means over "
        f"{counted(queries, 'query', 'queries')}; bands are {interval_kind(measure)}. The dashed "
        "line is the query itself, without privacy. Epsilons of different mechanisms mean "
        "different things, and so do parameters: the planes compare them."
        + (RECALL_NOTE if measure.kind == "pooled recall" else "")
        + legend.left_out,
        figure=figure,
        alt=f"Line chart of {label} over {against}. "
        + ". ".join(
            f"{place.engine}: {in_words(lines, legend)}" for (place, _), lines in panels.items()
        )
        + ".",
    )


def recovery_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each collection: a plot for each attack on words."""
    yield from _leaks(
        results,
        legend,
        "words",
        name="recovered",
        title="Words recovered",
        y="share of words recovered",
        caption="The share of the words of a query that an attacker gets back who knows the "
        "mechanism. An attack that is not shown for a mechanism does not apply to it, which is no "
        "protection from the others.",
    )


def similarity_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each collection: a plot for each measure of similarity."""
    yield from _leaks(
        results,
        legend,
        "similarity",
        name="similarity",
        title="Similarity of query and variants",
        y="similarity",
        caption="How alike the query and its variants are. A high similarity shows a leak; a low "
        "one does not show that there is none.",
    )


def _leaks(
    results: Results,
    legend: Legend,
    kind: MeasureKind,
    *,
    name: str,
    title: str,
    y: str,
    caption: str,
) -> Iterator[ReportFigure]:
    """For each collection a plot for each measure of a kind, if there is anything to draw."""
    for place in map(Place, results.collections):
        measures = results.measures(place, kind)
        panels = {
            (measure.detail, parameter): lines
            for measure in measures
            for parameter, lines in by_parameter(lines_of(results, legend, measure, place)).items()
        }
        if not panels:
            continue
        figure, plots = sheet(len(panels), columns=3, width=3.5, height=3.0)
        for plot, ((detail, _), lines) in zip(plots, panels.items(), strict=True):
            draw_lines(plot, lines, legend, title=detail, y=y)
        legend_below(figure, plots)
        queries = len(results.grid(measures[0], place).queries)
        told = (f"{detail}: {in_words(lines, legend)}" for (detail, _), lines in panels.items())
        against = legend.joined(parameter for _, parameter in panels)
        yield ReportFigure(
            name=slug(name, place.collection),
            title=f"{title} against {against}: {last_part(place.collection)}",
            caption=f"{caption} Means over {counted(queries, 'query', 'queries')}; bands are "
            f"{interval_kind(measures[0])}." + legend.left_out,
            figure=figure,
            alt=f"Line charts over {against}. {'. '.join(told)}.",
        )


def task_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each task and measure: a row of plots a model, a plot for each regime."""
    by_task: dict[tuple[str, str], list[TaskScore]] = {}
    for score in task_scores(results):
        by_task.setdefault((score.task, score.measure), []).append(score)
    for scores in by_task.values():
        if any(score.epsilon is not None for score in scores):
            yield _task(results, legend, scores)


def _task(results: Results, legend: Legend, scores: list[TaskScore]) -> ReportFigure:
    task, measure = scores[0].task, scores[0].measure
    obfuscated = [score for score in scores if score.obfuscated != NOTHING]
    models = list(dict.fromkeys(score.model for score in obfuscated))
    regimes = list(dict.fromkeys(score.obfuscated for score in obfuscated))
    lines_by_panel = {
        (model, regime): by_parameter(
            [
                *_task_lines(
                    results,
                    legend,
                    [s for s in obfuscated if (s.model, s.obfuscated) == (model, regime)],
                )
            ]
        )
        for model in models
        for regime in regimes
    }
    parameters = dict.fromkeys(name for panel in lines_by_panel.values() for name in panel)
    panels = [
        (model, regime, lines_by_panel[model, regime].get(parameter, []))
        for model in models
        for parameter in parameters
        for regime in regimes
    ]
    figure, plots = sheet(len(panels), columns=len(regimes), width=3.5, height=3.0)
    ends = []
    for plot, (model, regime, lines) in zip(plots, panels, strict=True):
        levels = {"clean": _clean_value(scores, model)} | {
            name: value
            for name in (MAJORITY, CHANCE)
            if (value := _clean_value(scores, name)) is not None
        }
        title = f"{model}: {regime} obfuscated"
        draw_lines(plot, lines, legend, title=title, y=measure, levels=levels)
        last = ", ".join(f"{legend.name(line.curve)} {line.means[-1]:.2f}" for line in lines)
        ends.append(
            f"{title}, at the last {legend.joined(by_parameter(lines) or [Parameter()])} {last}"
        )
    legend_below(figure, plots)
    items = max(len(score.items) for score in scores)
    return ReportFigure(
        name=slug("task", measure, task),
        title=f"{measure} against {legend.joined(parameters)}: {last_part(task)}",
        caption=f"What a model gets right that learnt from, or is asked with, obfuscated texts: "
        f"means over {counted(items, 'test item')} with 95 % intervals. The dashed line is the "
        "same model on clean texts, the dotted one a model that looks at nothing: a score there "
        "means that nothing was learnt.",
        figure=figure,
        alt=f"Line charts of {measure} over {legend.joined(parameters)}. {'. '.join(ends)}.",
    )


def _task_lines(results: Results, legend: Legend, scores: list[TaskScore]) -> Iterator[Line]:
    for mechanism in dict.fromkeys(score.mechanism for score in scores):
        if mechanism not in legend.aside:
            points = [
                (score.epsilon, score.value, score.interval)
                for score in scores
                if score.mechanism == mechanism
            ]
            yield _line(results, mechanism, points)


def _line(results: Results, mechanism: str, points: list[Point]) -> Line:
    """The line of a mechanism where releases play no part."""
    axis = results.axis(mechanism)
    points = sorted(points, key=lambda point: point[0] or 0.0, reverse=axis.larger_hides)
    return Line.of(Setting(mechanism, None, "", 0, axis), points)


def _clean_value(scores: list[TaskScore], model: str) -> float | None:
    """A model's score on clean texts."""
    clean = (score for score in scores if score.obfuscated == NOTHING and score.model == model)
    return next((score.value for score in clean), None)


def audit_figures(results: Results, legend: Legend) -> Iterator[ReportFigure]:
    """For each log what auditors find against epsilon, a plot for each auditor."""
    keys = ("log", "auditor", "mechanism", "epsilon")
    rows = results.audits.filter(results.audits["measure"].to_numpy(zero_copy_only=False) == AUC)
    logs: dict[str, dict[str, dict[str, list[Point]]]] = {}
    for (log, auditor, mechanism, epsilon), values in grouped(rows, keys, ("value", "low", "high")):
        value, low, high = (float(column.mean()) for column in values)
        by_mechanism = logs.setdefault(log, {}).setdefault(auditor, {})
        by_mechanism.setdefault(mechanism, []).append((epsilon, value, (low, high)))
    for log, panels in logs.items():
        noisy = {name: {m: p for m, p in of.items() if m} for name, of in panels.items()}
        if any(point[0] is not None for of in noisy.values() for p in of.values() for point in p):
            clean = next((of[""][0][1] for of in panels.values() if "" in of), None)
            lines = {
                (auditor, parameter): of_panel
                for auditor, of in noisy.items()
                for parameter, of_panel in by_parameter(
                    [_line(results, m, p) for m, p in of.items() if m not in legend.aside]
                ).items()
            }
            yield _audit(legend, log, lines, clean)


def _audit(
    legend: Legend, log: str, panels: dict[tuple[str, Parameter], list[Line]], clean: float | None
) -> ReportFigure:
    figure, plots = sheet(len(panels), columns=2, width=4.2, height=3.2)
    ends = []
    for plot, ((auditor, parameter), of_panel) in zip(plots, panels.items(), strict=True):
        levels = {"clean": clean, CHANCE: 0.5}
        draw_lines(plot, of_panel, legend, title=f"auditor {auditor}", y=AUC, levels=levels)
        last = ", ".join(f"{legend.name(line.curve)} {line.means[-1]:.2f}" for line in of_panel)
        ends.append(f"Auditor who {auditor}, at the last {legend.parameter(parameter)} {last}")
    legend_below(figure, plots)
    return ReportFigure(
        name=slug("audit", log),
        title=f"Whose releases a model learnt from: {last_part(log)}",
        caption="How often a member scores above another user, with 95 % intervals. The dashed "
        "line is the same auditor on clean text, the dotted one a blind auditor; below it an "
        "auditor can invert the answer.",
        figure=figure,
        alt=f"Line charts of AUC over {legend.joined(p for _, p in panels)}. {'. '.join(ends)}.",
    )
