"""Mechanisms that choose among a few words, a box that depends on the true word."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.mechanisms.sampling import SamplingMechanism
from sottovoce.mechanisms.tables import Table
from sottovoce.types import Float64Array, IntArray


@dataclass(frozen=True, repr=False, eq=False)
class BoxMechanism(SamplingMechanism):
    """Samples among the words of a box; no other word has a chance."""

    epsilon_per_distance: ClassVar[bool] = False
    box_depends_on_epsilon: ClassVar[bool] = True
    """Whether another epsilon may change which words a box holds, not only their chances."""

    @abstractmethod
    def laws(self, words: IntArray) -> list[tuple[IntArray, Float64Array]]:
        """The box of each word: ids, and their log-probabilities."""

    def build(self, words: IntArray) -> list[Table]:
        return [Table(ids, np.cumsum(np.exp(law))) for ids, law in self.laws(words)]

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        words = self.checked(ids)
        out = np.full((len(words), self.space.size), -np.inf)
        for row, (box, law) in zip(out, self.laws(words), strict=True):
            row[box] = law
        return out


def normalized(scores: Float64Array) -> Float64Array:
    """Log-probabilities proportional to exp(scores), along the last axis."""
    scores = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))
