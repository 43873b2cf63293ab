"""TEM, the truncated exponential mechanism of Carvalho et al. (2021)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import EPSILON_HELP, parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.santext import METRIC_CAVEATS
from sottovoce.types import Float64Array


@register
@dataclass(frozen=True, repr=False, eq=False)
class TEM(ExponentialMechanism):
    """p(y|w) proportional to exp(-epsilon min(|w - y|, gamma) / 2).

    This is the closed form of the paper's algorithm: Gumbel noise on the words within gamma and
    on one more candidate that stands for all others. gamma = (2 / epsilon) ln((1 - beta)(n - 1) /
    beta) leaves a word's surroundings with probability beta at most if they hold that word alone.
    """

    name: ClassVar[str] = "tem"
    summary: ClassVar[str] = "samples a word by its distance, all beyond a radius alike"
    paper: ClassVar[str] = (
        "Carvalho, Vasiloudis, Feyisetan: TEM: High Utility Metric Differential Privacy on Text, "
        "arXiv 2107.07928, 2021"
    )

    epsilon: float = parameter(2.0, EPSILON_HELP)
    beta: float = parameter(0.001, "chance to leave the radius, from which gamma follows")
    gamma: float | None = parameter(None, "the radius itself, instead of beta")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.beta < 1, f"beta must be between 0 and 1, got {self.beta}")
        require(
            self.gamma is None or (np.isfinite(self.gamma) and self.gamma >= 0),
            f"gamma must be a number, 0 or more, got {self.gamma}",
        )

    @cached_property
    def radius(self) -> float:
        """Gamma, as given or as it follows from beta."""
        if self.gamma is not None:
            return self.gamma
        odds = (1 - self.beta) * (len(self.released) - 1) / self.beta
        return 2 / self.epsilon * float(np.log(odds)) if odds > 1 else 0.0

    def cost(self, distances: Float64Array) -> Float64Array:
        return np.minimum(distances, self.radius)

    @property
    def has_concave_cost(self) -> bool:
        """Yes: the smaller of the distance and a constant."""
        return True

    @property
    def guarantee(self) -> Guarantee:
        """Metric privacy in Euclidean distance: min(d, gamma) changes no faster than d."""
        return Guarantee("metric", self.epsilon, "euclidean", caveats=METRIC_CAVEATS)

    def facts(self) -> dict[str, float]:
        """The radius, and the bound for any two words however far apart."""
        return {
            "radius gamma": self.radius,
            "nats between any two words, at most": self.epsilon * self.radius,
        }
