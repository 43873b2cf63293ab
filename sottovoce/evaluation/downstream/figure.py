"""Scores against epsilon: a row of plots for each model and measure, a plot for each regime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.scores import CHANCE, MAJORITY, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINES = (MAJORITY, CHANCE)
BANDS = 4
"""More curves than these are drawn without their intervals, which would hide each other."""


def without_epsilon(score: Score) -> str:
    """The mechanism's spec, epsilon left out: what the points of a curve have in common."""
    name, _, settings = (score.setting.mechanism or "").partition(":")
    rest = [each for each in settings.split(",") if each and not each.startswith("epsilon=")]
    return f"{name}:{','.join(rest)}" if rest else name


def downstream_figure(scores: Sequence[Score]) -> Figure:
    """Every regime with something obfuscated, between the clean line and the baseline."""
    from sottovoce.plotting import new_figure

    curves = [each for each in scores if each.setting.epsilon is not None]
    if not curves:
        raise UsageError("a figure shows scores against epsilon: give a mechanism that has one")
    rows = list(dict.fromkeys((each.setting.model, each.setting.measure) for each in curves))
    regimes = list(dict.fromkeys(each.hidden for each in curves))
    figure, plots = new_figure(len(rows), len(regimes), width=4.2, height=3.4)
    places = ((row, regime) for row in rows for regime in regimes)
    for plot, ((model, measure), regime) in zip(plots, places, strict=True):
        here = [
            each
            for each in curves
            if (each.setting.model, each.setting.measure, each.hidden) == (model, measure, regime)
        ]
        _draw(plot, here, f"{model}: {regime} obfuscated", measure)
        for each in scores:
            if each.setting.mechanism is None and each.setting.measure == measure:
                _line(plot, each, model)
    for start in range(0, len(plots), len(regimes)):
        row = plots[start : start + len(regimes)]
        ends = [end for plot in row for end in plot.get_ylim()]
        for plot in row:
            plot.set_ylim(min(ends), max(ends))
    handles, labels = plots[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _draw(plot: Axes, scores: Sequence[Score], title: str, measure: str) -> None:
    from sottovoce.plotting import lines

    by_name: dict[str, list[Score]] = {}
    for each in sorted(scores, key=_epsilon):
        by_name.setdefault(without_epsilon(each), []).append(each)
    points = {
        name: ([*map(_epsilon, own)], [each.value for each in own]) for name, own in by_name.items()
    }
    bands = {
        name: ([each.interval[0] for each in own], [each.interval[1] for each in own])
        for name, own in by_name.items()
    }
    shown = bands if len(bands) <= BANDS else None
    lines(plot, points, bands=shown, title=title, x="epsilon", y=measure, log_x=True)
    used = sorted({_epsilon(each) for each in scores})
    plot.set_xticks(used, [f"{each:g}" for each in used])
    plot.minorticks_off()
    if (legend := plot.get_legend()) is not None:
        legend.remove()


def _epsilon(score: Score) -> float:
    return score.setting.epsilon or 0.0


def _line(plot: Axes, score: Score, model: str) -> None:
    if score.setting.model in BASELINES:
        plot.axhline(score.value, color="#888888", linestyle=":", label=score.setting.model)
    elif score.setting.model == model:
        plot.axhline(score.value, color="#888888", linestyle="--", label="clean")
