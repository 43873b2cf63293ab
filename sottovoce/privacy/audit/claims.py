"""A claim that can be audited: how far apart it allows two words to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.spaces.distances import Distances
from sottovoce.types import Float64Array, IntArray

TOLERANCE = 1e-9
"""Nats by which an exact log-ratio may exceed its bound: rounding."""


@dataclass(frozen=True)
class Claim:
    """A guarantee under its label: ``stated`` by us, or ``published`` by paper or code."""

    label: str
    guarantee: Guarantee

    @property
    def epsilon(self) -> float:
        """The claimed epsilon; a claim to audit has one."""
        assert self.guarantee.epsilon is not None  # noqa: S101 - see ``claims``
        return self.guarantee.epsilon

    def distances(
        self, mechanism: WordMechanism, words: IntArray, others: IntArray
    ) -> Float64Array:
        """How far words are apart in the claim's metric; 1 where it bounds every pair alike."""
        if self.guarantee.notion != "metric":
            return np.asarray(words != others, dtype=np.float64)
        if self.guarantee.metric == "euclidean":
            return Distances(mechanism.space, mechanism.space.output.ids).pairs(words, others)
        return mechanism.distances(words, others)

    def bounds(self, mechanism: WordMechanism, words: IntArray, others: IntArray) -> Float64Array:
        """The log-ratio allowed for each pair, in nats."""
        return self.epsilon * self.distances(mechanism, words, others)


def guarantees(mechanism: Mechanism) -> dict[str, Guarantee]:
    """What is said of a mechanism, by label."""
    said = {"stated": mechanism.guarantee}
    if mechanism.published is not None:
        said["published"] = mechanism.published
    return said


def claims(mechanism: Mechanism) -> list[Claim]:
    """What is promised of a mechanism, and so can be refuted."""
    return [Claim(label, said) for label, said in guarantees(mechanism).items() if said.epsilon]
