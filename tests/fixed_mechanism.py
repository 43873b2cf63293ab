"""A mechanism without noise: it always releases one word, or always the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, IntArray


@dataclass(frozen=True, repr=False, eq=False)
class Fixed(WordMechanism):
    """Always releases one word, or always the true one; with or without saying so."""

    name: ClassVar[str] = "fixed"
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""

    word: int | None = None
    announced: bool = True

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None)

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        return ids.copy() if self.word is None else np.full(len(ids), self.word)

    def log_probabilities(self, ids: IntArray) -> Float64Array | None:
        if not self.announced:
            return None
        law = np.full((len(ids), self.space.size), -np.inf)
        law[np.arange(len(ids)), self.draw(ids, Draws([]))] = 0.0
        return law
