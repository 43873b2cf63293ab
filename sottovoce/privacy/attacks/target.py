"""What an attacker holds: the words seen at each position, the mechanism, a prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.alignment import Reading, Text
from sottovoce.spaces.nearest import Nearest
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, Float64Array, IntArray, Progress

CERTAIN = 3
"""A word that stands at a position in every one of at least so many variants was not replaced."""


@dataclass(frozen=True, repr=False)
class Target:
    """Positions of all texts laid end to end. Truth is not among what attacks look at."""

    texts: list[Text]
    mechanism: WordMechanism | None
    release: str
    log_prior: Float64Array | None
    rng: Generator
    progress: Progress | None = None

    @cached_property
    def positions(self) -> list[tuple[Reading, ...]]:
        """What was seen at each position, one reading for each variant."""
        return [position for text in self.texts for position in text.positions]

    @cached_property
    def ids(self) -> list[IntArray]:
        """The ids seen at each position, in the order of the variants; ``UNKNOWN`` among them."""
        return [np.array([each.id for each in seen], dtype=np.int64) for seen in self.positions]

    def seen(self, n: int) -> list[IntArray]:
        """The known words among the first ``n`` variants of each position."""
        return [ids[:n][ids[:n] != UNKNOWN] for ids in self.ids]

    @property
    def space(self) -> WordSpace:
        """The space of the mechanism."""
        assert self.mechanism is not None  # noqa: S101 - attacks that need one are asked first
        return self.mechanism.space

    @cached_property
    def search(self) -> Nearest:
        """Nearest words among all that could be meant, whether they may be released or not."""
        if len(self.space.output) == self.space.size:
            return self.space.nearest_output
        return Nearest(self.space.vectors)

    def prior(self, words: IntArray | slice) -> Float64Array | float:
        """Log-prior of some words, up to a constant."""
        return 0.0 if self.log_prior is None else self.log_prior[words]

    def settled(self, guesses: IntArray, n: int) -> IntArray:
        """Guesses, with the word itself where every variant shows the same one.

        Words left in clear look like this, and no law of the mechanism accounts for them. A
        position without any guess falls back on what was seen most.
        """
        out = guesses.copy()
        for place, ids in enumerate(self.ids):
            first = ids[:n]
            same = len(first) >= CERTAIN and (first == first[0]).all()
            if same or (out[place] == UNKNOWN and len(first)):
                out[place] = most_frequent(first)
        return out


def most_frequent(items: IntArray) -> int:
    """The item that occurs most often; the first seen of several."""
    values, first, counts = np.unique(items, return_index=True, return_counts=True)
    return int(values[np.lexsort((first, -counts))[0]])


def occurrences(seen: Sequence[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Position, word and count of everything seen."""
    rows = np.repeat(np.arange(len(seen)), [len(ids) for ids in seen])
    words = np.concatenate([*seen, np.empty(0, dtype=np.int64)])
    pairs, counts = np.unique(np.stack([rows, words]), axis=1, return_counts=True)
    return pairs[0], pairs[1], counts
