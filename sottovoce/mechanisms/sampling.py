"""Sampling mechanisms: each word has an exact law over words, and one of them is drawn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.tables import Table, Tables, tables_of
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, IntArray


@dataclass(frozen=True, repr=False, eq=False)
class SamplingMechanism(WordMechanism):
    """Draws from tables that are made once for each distinct word."""

    @property
    def tables(self) -> Tables:
        return tables_of(self.space, (self.spec, *self.further_resources()))

    @abstractmethod
    def build(self, words: IntArray) -> list[Table]:
        """A table for each of some distinct words."""

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        return self.tables.find(ids, draws.uniform(), self.build)[0]

    @abstractmethod
    def log_probabilities(self, ids: IntArray) -> Float64Array:
        """Exact log-probabilities of every word of the space, (len(ids), space.size)."""
