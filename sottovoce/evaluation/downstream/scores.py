"""From results item by item, seed by seed, to scores with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.statistics import mean_over_seeds
from sottovoce.types import Float64Array, IntArray

Side = Literal["clean", "obfuscated"]
Sides = tuple[tuple[str, Side], ...]
"""What was clean and what was not, as (("train", "obfuscated"), ("test", "clean"))."""

MAJORITY, CHANCE = "majority", "chance"
"""Models that look at nothing: the most frequent label; a random order."""


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


def summarise(outcomes: Sequence[Outcome]) -> list[Score]:
    """A score for each setting, in order of appearance; all settings need the same seeds."""
    grouped: dict[Setting, dict[int, Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.setting, {})[outcome.seed] = outcome
    if len({frozenset(by_seed) for by_seed in grouped.values()}) > 1:
        raise UsageError("the settings were not all measured with the same seeds")
    return [_score(setting, by_seed, grouped) for setting, by_seed in grouped.items()]


def _score(
    setting: Setting,
    by_seed: dict[int, Outcome],
    grouped: dict[Setting, dict[int, Outcome]],
) -> Score:
    runs = list(by_seed.values())
    clean: Sides = tuple((what, "clean") for what, _ in setting.sides)
    reference = grouped.get(Setting(setting.model, setting.measure, None, None, clean))
    loss = None
    if setting.mechanism is not None and reference is not None:
        loss = mean_over_seeds(
            [run.items for run in runs],
            [reference[run.seed].values - run.values for run in runs],
            (-1.0, 1.0),
        )
    items, values = [run.items for run in runs], [run.values for run in runs]
    value, interval = mean_over_seeds(items, values, (0.0, 1.0))
    shares = [run.unchanged for run in runs if run.unchanged is not None]
    return Score(
        setting=setting,
        value=value,
        interval=interval,
        loss=None if loss is None else loss[0],
        loss_interval=None if loss is None else loss[1],
        by_seed=tuple(float(each.mean()) for each in values),
        items=len(np.unique(np.concatenate(items))),
        unchanged=float(np.mean(shares)) if shares else None,
    )
