"""What a membership audit found: how well scores tell members from others, and a figure of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.statistics import auc_interval, clopper_pearson
from sottovoce.types import Float64Array, IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shadows = Literal["obfuscated", "clean"]
Interval = tuple[float, float]

FALSE_ALARMS = 0.01
"""The share of others who may be taken for members, for the true positive rate."""

STRONG = 0.9
"""An auditor who finds less than this in clean text cannot vouch for a mechanism."""

AUDITORS: dict[Shadows, str] = {
    "obfuscated": "auditor knows the mechanism",
    "clean": "auditor learnt from clean text",
}
"""As the legend of a figure names them."""


@dataclass(frozen=True)
class Setting:
    """What members released (no mechanism: their own text), and what the auditor learnt from."""

    mechanism: str | None
    epsilon: float | None
    shadows: Shadows


@dataclass(frozen=True)
class Sides:
    """The users whose releases train a model, and as many whose releases do not."""

    members: IntArray
    others: IntArray


@dataclass(frozen=True)
class Scores:
    """The auditor's scores for the users of one target model; above 0 says member."""

    users: Sides
    members: Float64Array
    others: Float64Array


@dataclass(frozen=True)
class Outcome:
    """How well the auditor told members from others, over all repeats. Intervals are of 95 %."""

    setting: Setting
    auc: float
    auc_interval: Interval
    risk: float
    """max(AUC, 1 - AUC): an auditor who is always wrong can invert the answer."""
    risk_interval: Interval
    auc_of_repeats: tuple[float, ...]
    tpr: float
    """The share of members found, where at most 1 % of the others are taken for members."""
    tpr_interval: Interval
    fpr: float
    """The share of others taken for members at that threshold: less than 1 % if they are few."""
    accuracy: float
    accuracy_interval: Interval
    recall: float
    recall_interval: Interval
    precision: float
    """At the auditor's own threshold the share of right answers, the share of members found, and
    the share of members among those called so: 0, and anything from 0 to 1, where nobody is."""
    precision_interval: Interval

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        return {**fields.pop("setting"), **fields}


@dataclass(frozen=True)
class MembershipReport:
    """All outcomes, the clean text first, and how they were measured."""

    outcomes: tuple[Outcome, ...]
    users: int
    members: int
    shadows: int
    repeats: int
    variants: int
    release: str
    seeded: bool

    @property
    def clean(self) -> Outcome:
        """What the auditor finds where nothing was obfuscated."""
        return self.outcomes[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know so as not to be misled."""
        remarks = []
        if self.clean.auc_interval[0] < STRONG:
            remarks.append(
                f"this auditor is weak here: with clean text it reaches an AUC of "
                f"{self.clean.auc:.2f} only, so a low figure says little about a mechanism"
            )
        if math.floor(self.members * FALSE_ALARMS + 1e-9) == 0:
            remarks.append(
                f"{self.members} non-members cannot show a false positive rate of 1 %: the true "
                "positive rate is the one without any false alarm; 1 % takes 100 members or more"
            )
        if any(o.setting.shadows == "clean" and o.auc_interval[1] < 0.5 for o in self.outcomes):
            remarks.append(
                "an AUC below .5 is no privacy: the auditor of clean text tells the two sides "
                "apart and gives them the wrong names"
            )
        return tuple(remarks)

    def to_dict(self) -> dict[str, Any]:
        fields = vars(self).copy()
        outcomes = [outcome.to_dict() for outcome in fields.pop("outcomes")]
        return {**fields, "outcomes": outcomes, "remarks": list(self.remarks)}


def summarize(setting: Setting, repeats: Sequence[Scores]) -> Outcome:
    """One outcome from the scores of all repeats.

    A user who was on the same side in several repeats counts once in the width of the intervals.
    """
    areas = [auc(repeat.members, repeat.others) for repeat in repeats]
    members = len(np.unique(np.concatenate([repeat.users.members for repeat in repeats])))
    others = len(np.unique(np.concatenate([repeat.users.others for repeat in repeats])))
    area = float(np.mean(areas))
    low, high = auc_interval(area, members, others)
    thresholds = [threshold_at(repeat.others, FALSE_ALARMS) for repeat in repeats]
    cut = list(zip(repeats, thresholds, strict=True))
    tpr = float(np.mean([np.mean(repeat.members > threshold) for repeat, threshold in cut]))
    fpr = float(np.mean([np.mean(repeat.others > threshold) for repeat, threshold in cut]))
    recall = float(np.mean([np.mean(repeat.members > 0) for repeat in repeats]))
    false = float(np.mean([np.mean(repeat.others > 0) for repeat in repeats]))
    called = recall * members, recall * members + false * others
    precision = called[0] / called[1] if called[1] else 0.0
    accuracy = (recall + 1 - false) / 2
    return Outcome(
        setting=setting,
        auc=area,
        auc_interval=(low, high),
        risk=max(area, 1 - area),
        risk_interval=either_way(low, high),
        auc_of_repeats=tuple(areas),
        tpr=tpr,
        tpr_interval=_share_interval(tpr * members, members),
        fpr=fpr,
        accuracy=accuracy,
        accuracy_interval=_share_interval(accuracy * (members + others), members + others),
        recall=recall,
        recall_interval=_share_interval(recall * members, members),
        precision=precision,
        precision_interval=_share_interval(*called) if called[1] else (0.0, 1.0),
    )


def _share_interval(hits: float, of: float) -> Interval:
    low, high = clopper_pearson(hits, of)
    return float(low), float(high)


def auc(members: ArrayLike, others: ArrayLike) -> float:
    """The area under the ROC curve: how often a member scores above another; ties count half."""
    inside, outside = _scores(members, others)
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, side="left").astype(np.float64)
    not_above = np.searchsorted(ordered, inside, side="right")
    return float((below + not_above).sum() / (2 * len(inside) * len(outside)))


def either_way(low: float, high: float) -> tuple[float, float]:
    """The interval of max(area, 1 - area): an auditor who is always wrong can invert the answer."""
    if low <= 0.5 <= high:
        return 0.5, max(high, 1 - low)
    return (low, high) if low > 0.5 else (1 - high, 1 - low)


def threshold_at(others: ArrayLike, share: float) -> float:
    """The score that at most this share of the others exceed."""
    _, outside = _scores([0.0], others)
    if not 0 <= share < 1:
        raise UsageError("the share of false alarms is at least 0 and less than 1")
    allowed = math.floor(share * len(outside) + 1e-9)
    return float(np.sort(outside)[::-1][allowed])


def _scores(members: ArrayLike, others: ArrayLike) -> tuple[Float64Array, Float64Array]:
    inside, outside = np.asarray(members, np.float64), np.asarray(others, np.float64)
    if not (inside.size and outside.size):
        raise UsageError("at least one member and one other are needed")
    if not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise UsageError("scores must be finite numbers")
    return inside, outside


def auc_figure(report: MembershipReport) -> Figure:
    """AUC against epsilon with its intervals, the clean text's AUC, and chance."""
    from sottovoce.plotting import COLOURS, label, lines, new_figure

    figure, (plot,) = new_figure()
    curves, bands = {}, {}
    for shadows, name in AUDITORS.items():
        outcomes = _by_epsilon(report, shadows)
        epsilons = [outcome.setting.epsilon for outcome in outcomes]
        curves[name] = (epsilons, [outcome.auc for outcome in outcomes])
        bands[name] = tuple(zip(*(outcome.auc_interval for outcome in outcomes), strict=True))
    plot.axhline(
        report.clean.auc, color=COLOURS[2], linestyle="--", linewidth=1, label="clean text"
    )
    plot.axhline(0.5, color="#888888", linestyle=":", linewidth=1, label="chance")
    lines(plot, curves, bands=bands)  # type: ignore[arg-type]
    plot.set_ylim(-0.02, 1.02)
    label(plot, x="epsilon", y="AUC, members against non-members", legend=True)
    return figure


def _by_epsilon(report: MembershipReport, shadows: Shadows) -> list[Outcome]:
    outcomes = [outcome for outcome in report.outcomes[1:] if outcome.setting.shadows == shadows]
    if not outcomes or any(outcome.setting.epsilon is None for outcome in outcomes):
        raise UsageError("a figure shows AUC against epsilon: audit mechanisms that have one")
    return sorted(outcomes, key=lambda outcome: outcome.setting.epsilon or 0.0)
