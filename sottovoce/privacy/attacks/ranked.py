"""Where the query that was meant stands in an attacker's list, and the risks that follow.

The rank of a query with score s* in a list is

    rank = 1 + #{q: score(q) > s*} + 1/2 #{other q: score(q) = s*}.

From the rank come the risks: lazy P@1 = 1[rank = 1], active R@k = 1[rank <= k], motivated RR =
1/rank, and rank-biased precision (1 - p) p^(rank - 1) with persistence p = .8, also divided by
1 - p, so that rank 1 gives 1. A query that ties for the first place has a rank beyond 1, and
P@1 = 0 as it is defined.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.statistics import LEVEL, bootstrap_mean, clopper_pearson
from sottovoce.types import Float64Array

PERSISTENCE = 0.8
DEPTH = 10
"""How many guesses the active attacker makes."""


@dataclass(frozen=True)
class Attacked:
    """What became of one query: the rank of the original, and how many others tie with it."""

    id: str
    variants: int
    rank: float
    ties: int


@dataclass(frozen=True)
class Risk:
    """The mean of a measure over the queries, an interval, and what a blind guess would reach."""

    measure: str
    value: float
    low: float
    high: float
    interval: str
    chance: float


@dataclass(frozen=True, repr=False)
class Inference:
    """The ranks of all attacked queries, and the risks that follow from them.

    Intervals are Clopper-Pearson's for P@1 and R@k. For RR and RBP they are bootstraps over the
    queries, which shrink to a point where all queries fare alike: then read those of P@1 and R@k.
    """

    attack: str
    """``aligned``, the encoder of the attack by cosine, or one of ``word_means``."""
    knows: str
    """What the attacker knows besides the variants, for reports."""
    log: int
    added: int
    """Originals that the log lacked and that were put beside it; ``log`` counts them too."""
    unreleased: int
    """Releases without a single variant: there is nothing to attack, they are left out."""
    depth: int
    queries: tuple[Attacked, ...]

    @property
    def ranks(self) -> Float64Array:
        """The rank of each original."""
        return np.array([query.rank for query in self.queries])

    @cached_property
    def lazy(self) -> Risk:
        """P@1: the first guess is right."""
        return self._counted("P@1", 1, 1 / self.log)

    @cached_property
    def active(self) -> Risk:
        """R@k: one of k guesses is right."""
        return self._counted(f"R@{self.depth}", self.depth, min(1.0, self.depth / self.log))

    @cached_property
    def motivated(self) -> Risk:
        """RR: the attacker goes down the list until they are right."""
        chance = float((1 / np.arange(1, self.log + 1)).mean())
        return self._averaged("RR", 1 / self.ranks, chance)

    @cached_property
    def biased(self) -> Risk:
        """RBP: the attacker looks at the next guess with probability p."""
        return self._rank_biased("RBP", 1 - PERSISTENCE)

    @cached_property
    def biased_from_one(self) -> Risk:
        """RBP divided by 1 - p: 1 where every first guess is right."""
        return self._rank_biased("RBP/(1-p)", 1.0)

    @cached_property
    def risks(self) -> dict[str, Risk]:
        """All risks by name."""
        return {
            "lazy": self.lazy,
            "active": self.active,
            "motivated": self.motivated,
            "rank_biased": self.biased,
            "rank_biased_from_one": self.biased_from_one,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON; no text is in it."""
        return {
            "attack": "query inference",
            "by": self.attack,
            "knows": self.knows,
            "log": self.log,
            "added": self.added,
            "unreleased": self.unreleased,
            "level": LEVEL,
            "persistence": PERSISTENCE,
            "risks": {name: vars(risk) for name, risk in self.risks.items()},
            "queries": [vars(query) for query in self.queries],
        }

    def __repr__(self) -> str:
        return f"Inference({len(self.queries)} queries, {self.attack}, log of {self.log})"

    def _counted(self, measure: str, depth: int, chance: float) -> Risk:
        right = int((self.ranks <= depth).sum())
        low, high = map(float, clopper_pearson(right, len(self.queries)))
        return Risk(measure, right / len(self.queries), low, high, "Clopper-Pearson", chance)

    def _averaged(self, measure: str, values: Float64Array, chance: float) -> Risk:
        low, high = bootstrap_mean(values)
        return Risk(measure, float(values.mean()), low, high, "bootstrap over queries", chance)

    def _rank_biased(self, measure: str, top: float) -> Risk:
        chance = top * (1 - PERSISTENCE**self.log) / (1 - PERSISTENCE) / self.log
        return self._averaged(measure, top * PERSISTENCE ** (self.ranks - 1), chance)
