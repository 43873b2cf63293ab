"""From results item by item, seed by seed, to scores with intervals, and a figure of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.statistics import mean_over_seeds
from sottovoce.types import Float64Array, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Side = Literal["clean", "obfuscated"]
Sides = tuple[tuple[str, Side], ...]
"""What was clean and what was not, as (("train", "obfuscated"), ("test", "clean"))."""

MAJORITY, CHANCE = "majority", "chance"
"""Models that look at nothing: the most frequent label; a random order."""
BASELINES = (MAJORITY, CHANCE)
BANDS = 4
"""More curves than these are drawn without their intervals, which would hide each other."""


@dataclass(frozen=True)
class Setting:
    """What a score is of. ``mechanism`` is None where nothing was obfuscated."""

    model: str
    measure: str
    mechanism: str | None
    epsilon: float | None
    sides: Sides

    @property
    def hidden(self) -> str:
        """What was obfuscated: ``only train``, ``only test``, ``both`` or ``nothing``."""
        names = [what for what, side in self.sides if side == "obfuscated"]
        every = len(names) == len(self.sides)
        return "both" if every else f"only {names[0]}" if names else "nothing"


@dataclass(frozen=True)
class Outcome:
    """A value (right or wrong, or the quality of a ranking) for each test item, with one seed."""

    setting: Setting
    seed: int
    items: IntArray
    values: Float64Array
    unchanged: float | None = None


@dataclass(frozen=True)
class Score:
    """The mean over seeds of the mean over test items.

    ``loss`` is how much the same model scores better on clean data alone, ``unchanged`` the share
    of the protected words (or, of texts replaced as a whole, of texts) that came back as they were.
    """

    setting: Setting
    value: float
    interval: tuple[float, float]
    loss: float | None
    loss_interval: tuple[float, float] | None
    by_seed: tuple[float, ...]
    items: int
    unchanged: float | None
    seeded: bool = True

    @property
    def regime(self) -> str:
        """As in ``train obfuscated, test clean``."""
        return ", ".join(f"{what} {side}" for what, side in self.setting.sides)

    @property
    def hidden(self) -> str:
        """What was obfuscated: ``only train``, ``only test``, ``both`` or ``nothing``."""
        return self.setting.hidden

    def to_dict(self) -> dict[str, Any]:
        """The row of ``sottovoce downstream --json`` and ``--csv``."""
        low, high = self.interval
        loss_low, loss_high = self.loss_interval or (None, None)
        return {
            "model": self.setting.model,
            "measure": self.setting.measure,
            "mechanism": self.setting.mechanism,
            "epsilon": self.setting.epsilon,
            **dict(self.setting.sides),
            "value": self.value,
            "low": low,
            "high": high,
            "loss": self.loss,
            "loss_low": loss_low,
            "loss_high": loss_high,
            "by_seed": list(self.by_seed),
            "items": self.items,
            "unchanged": self.unchanged,
            "seeded": self.seeded,
        }


def summarize(outcomes: Sequence[Outcome]) -> list[Score]:
    """A score for each setting, in order of appearance; all settings need the same seeds."""
    grouped: dict[Setting, dict[int, Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.setting, {})[outcome.seed] = outcome
    if len({frozenset(by_seed) for by_seed in grouped.values()}) > 1:
        raise UsageError("the settings were not all measured with the same seeds")
    return [_score(setting, by_seed, grouped) for setting, by_seed in grouped.items()]


def _score(
    setting: Setting, by_seed: dict[int, Outcome], grouped: dict[Setting, dict[int, Outcome]]
) -> Score:
    runs = list(by_seed.values())
    clean: Sides = tuple((what, "clean") for what, _ in setting.sides)
    reference = grouped.get(Setting(setting.model, setting.measure, None, None, clean))
    items, values = [run.items for run in runs], [run.values for run in runs]
    loss, loss_interval = None, None
    if setting.mechanism is not None and reference is not None:
        losses = [reference[run.seed].values - run.values for run in runs]
        loss, loss_interval = mean_over_seeds(items, losses, (-1.0, 1.0))
    value, interval = mean_over_seeds(items, values, (0.0, 1.0))
    shares = [run.unchanged for run in runs if run.unchanged is not None]
    return Score(
        setting=setting,
        value=value,
        interval=interval,
        loss=loss,
        loss_interval=loss_interval,
        by_seed=tuple(float(by_item.mean()) for by_item in values),
        items=len(np.unique(np.concatenate(items))),
        unchanged=float(np.mean(shares)) if shares else None,
    )


def without_epsilon(score: Score) -> str:
    """The mechanism's spec, epsilon left out: what the points of a curve have in common."""
    name, _, settings = (score.setting.mechanism or "").partition(":")
    rest = [part for part in settings.split(",") if part and not part.startswith("epsilon=")]
    return f"{name}:{','.join(rest)}" if rest else name


def downstream_figure(scores: Sequence[Score]) -> Figure:
    """Scores against epsilon: a row of plots for each model and measure, a plot for each regime.

    A regime lies between the line of clean data and the baseline.
    """
    from sottovoce.plotting import new_figure

    curves = [score for score in scores if score.setting.epsilon is not None]
    if not curves:
        raise UsageError("a figure shows scores against epsilon: give a mechanism that has one")
    rows = list(dict.fromkeys((score.setting.model, score.setting.measure) for score in curves))
    regimes = list(dict.fromkeys(score.hidden for score in curves))
    figure, plots = new_figure(len(rows), len(regimes), width=4.2, height=3.4)
    places = ((row, regime) for row in rows for regime in regimes)
    for plot, ((model, measure), regime) in zip(plots, places, strict=True):
        shown = [
            score
            for score in curves
            if (score.setting.model, score.setting.measure) == (model, measure)
            and score.hidden == regime
        ]
        _draw(plot, shown, f"{model}: {regime} obfuscated", measure)
        for score in scores:
            if score.setting.mechanism is None and score.setting.measure == measure:
                _line(plot, score, model)
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
    for score in sorted(scores, key=_epsilon):
        by_name.setdefault(without_epsilon(score), []).append(score)
    points = {
        name: ([*map(_epsilon, curve)], [score.value for score in curve])
        for name, curve in by_name.items()
    }
    bands = {
        name: ([score.interval[0] for score in curve], [score.interval[1] for score in curve])
        for name, curve in by_name.items()
    }
    shown = bands if len(bands) <= BANDS else None
    lines(plot, points, bands=shown, title=title, x="epsilon", y=measure, log_x=True)
    used = sorted({_epsilon(score) for score in scores})
    plot.set_xticks(used, [f"{epsilon:g}" for epsilon in used])
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
