"""SanText and SanText+ of Yue et al. (Findings of ACL 2021): the exponential mechanism on words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sottovoce.guarantees import FIXED_LENGTH, MANY_RELEASES, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import EPSILON_HELP, parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.randomness import Draws
from sottovoce.types import BoolArray, Float64Array, FloatArray, IntArray

OFF_AND_ON = (
    "it changes from almost always to almost never within a narrow range of epsilon (1 to 5 on the "
    "default space): look at how many words come back unchanged"
)
METRIC_CAVEATS = (OFF_AND_ON, WORD_BY_WORD, FIXED_LENGTH, MANY_RELEASES)


@register
@dataclass(frozen=True, repr=False, eq=False)
class SanText(ExponentialMechanism):
    """p(y|w) proportional to exp(-epsilon |w - y| / 2) over the output vocabulary.

    SanText+ (``sensitive`` below 1): only the rarest words, a share ``sensitive`` of the
    vocabulary, are protected and released. Another word is released as it is, or with
    probability ``p`` replaced like a sensitive one. Which words are rare is read off the order
    of the space, which is public, and not off the text.
    """

    name: ClassVar[str] = "santext"
    summary: ClassVar[str] = "samples a word by its distance from the true one"
    paper: ClassVar[str] = (
        "Yue, Du, Wang, Li, Sun, Chow: Differential Privacy for Text Analytics via Natural Text "
        "Sanitization, Findings of ACL 2021"
    )

    epsilon: float = parameter(2.0, EPSILON_HELP)
    sensitive: float = parameter(
        1.0, "share of the vocabulary, the rarest words, that is protected; below 1 is SanText+"
    )
    p: float = parameter(0.2, "SanText+: how often another word is replaced instead of released")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 < self.sensitive <= 1, f"sensitive must be above 0 and up to 1, got {self.sensitive}"
        )
        require(0 < self.p <= 1, f"p must be above 0 and up to 1, got {self.p}")

    def cost(self, distances: Float64Array) -> Float64Array:
        return distances

    @property
    def has_concave_cost(self) -> bool:
        """Yes; but SanText+ has two kinds of words, with two laws."""
        return self.sensitive == 1

    @cached_property
    def released(self) -> IntArray:
        """The rarest words of the output vocabulary: spaces list frequent words first."""
        output = self.space.output.ids
        return output[len(output) - max(1, round(self.sensitive * len(output))) :]

    @cached_property
    def _spared(self) -> BoolArray:
        """Which words of the space may be released as they are."""
        spared = np.zeros(self.space.size, dtype=np.bool_)
        spared[np.setdiff1d(self.space.output.ids, self.released)] = True
        return spared

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        drawn = super().draw(ids, draws)
        if self.sensitive == 1:
            return drawn
        return np.where(self._spared[ids] & (draws.uniform() >= self.p), ids, drawn)

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        law = super().log_probabilities(ids)
        self.mixed(law, np.asarray(ids), np.arange(self.space.size))
        return law

    def mixed(self, law: FloatArray, words: IntArray, outputs: IntArray) -> None:
        """SanText+: a word that is not sensitive is replaced with probability ``p`` only."""
        spared = np.flatnonzero(self._spared[words]) if self.sensitive < 1 else words[:0]
        if len(spared):
            law[spared] += np.log(self.p)
            column = np.minimum(np.searchsorted(outputs, words[spared]), len(outputs) - 1)
            same = outputs[column] == words[spared]
            law[spared[same], column[same]] = np.log1p(-self.p) if self.p < 1 else -np.inf

    @property
    def guarantee(self) -> Guarantee:
        """Metric privacy in Euclidean distance; the proof holds. SanText+ as a whole has none."""
        if self.sensitive == 1:
            return Guarantee("metric", self.epsilon, "euclidean", caveats=METRIC_CAVEATS)
        rarest = (
            f"only the rarest {self.sensitive:.0%} of the words have metric privacy with epsilon "
            f"{self.epsilon:g} among each other; every other word is released as it is with "
            f"probability {1 - self.p:g}, and who sees it knows it"
        )
        return Guarantee("none", None, caveats=(rarest, OFF_AND_ON, WORD_BY_WORD))
