"""What a membership audit found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from sottovoce.privacy.membership.scores import auc, either_way, threshold_at
from sottovoce.privacy.membership.splits import Sides
from sottovoce.statistics import auc_interval, clopper_pearson
from sottovoce.types import Float64Array

Shadows = Literal["obfuscated", "clean"]
Interval = tuple[float, float]

FALSE_ALARMS = 0.01
"""The share of others who may be taken for members, for the true positive rate."""

STRONG = 0.9
"""An auditor who finds less than this in clean text cannot vouch for a mechanism."""


@dataclass(frozen=True)
class Setting:
    """What members released (no mechanism: their own text), and what the auditor learnt from."""

    mechanism: str | None
    epsilon: float | None
    shadows: Shadows


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
    """max(AUC, 1 - AUC): who is always wrong may be turned around."""
    risk_interval: Interval
    auc_of_repeats: tuple[float, ...]
    tpr: float
    """The share of members found, where at most 1 % of the others are taken for members."""
    tpr_interval: Interval
    fpr: float
    """The share of others taken for members at that threshold: less than 1 % if they are few."""
    accuracy: float
    recall: float
    """Share of right answers, and of members found, at the auditor's own threshold."""

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
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
        said = []
        if self.clean.auc_interval[0] < STRONG:
            said.append(
                f"this auditor is weak here: with clean text it reaches an AUC of "
                f"{self.clean.auc:.2f} only, so a low figure says little about a mechanism"
            )
        if math.floor(self.members * FALSE_ALARMS + 1e-9) == 0:
            said.append(
                f"{self.members} non-members cannot show a false positive rate of 1 %: the true "
                "positive rate is the one without any false alarm; 1 % takes 100 members or more"
            )
        if any(o.setting.shadows == "clean" and o.auc_interval[1] < 0.5 for o in self.outcomes):
            said.append(
                "an AUC below .5 is no privacy: the auditor of clean text tells the two sides "
                "apart and gives them the wrong names"
            )
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "users": self.users,
            "members": self.members,
            "shadows": self.shadows,
            "repeats": self.repeats,
            "variants": self.variants,
            "release": self.release,
            "seeded": self.seeded,
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "remarks": list(self.remarks),
        }


def summarise(setting: Setting, repeats: Sequence[Scores]) -> Outcome:
    """One outcome from the scores of all repeats.

    A user who was on the same side in several repeats counts once in the width of the intervals.
    """
    areas = [auc(each.members, each.others) for each in repeats]
    members = len(np.unique(np.concatenate([each.users.members for each in repeats])))
    others = len(np.unique(np.concatenate([each.users.others for each in repeats])))
    area = float(np.mean(areas))
    low, high = auc_interval(area, members, others)
    thresholds = [threshold_at(each.others, FALSE_ALARMS) for each in repeats]
    found, alarms = (
        float(np.mean([np.mean(side > t) for side, t in zip(sides, thresholds, strict=True)]))
        for sides in ([r.members for r in repeats], [r.others for r in repeats])
    )
    at_least, at_most = clopper_pearson(found * members, members)
    recall = float(np.mean([np.mean(each.members > 0) for each in repeats]))
    rejected = float(np.mean([np.mean(each.others <= 0) for each in repeats]))
    return Outcome(
        setting=setting,
        auc=area,
        auc_interval=(low, high),
        risk=max(area, 1 - area),
        risk_interval=either_way(low, high),
        auc_of_repeats=tuple(areas),
        tpr=found,
        tpr_interval=(float(at_least), float(at_most)),
        fpr=alarms,
        accuracy=(recall + rejected) / 2,
        recall=recall,
    )
