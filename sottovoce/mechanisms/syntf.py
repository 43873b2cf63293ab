"""SynTF: synthetic bags of words (Weggenmann and Kerschbaum, SIGIR 2018)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sottovoce.arrays import unit_rows
from sottovoce.guarantees import MANY_RELEASES, Guarantee
from sottovoce.mechanisms.base import (
    Rewriting,
    TextMechanism,
    parameter,
    require,
    require_positive,
    resource,
)
from sottovoce.mechanisms.build import register
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Float32Array, Float64Array

MOST_WORDS = 10_000
CAVEATS = (
    "a release is a bag of words: neither their order nor any sentence is kept",
    "how many words are released is the same for all texts, and public",
    "words that the space lacks, and unprotected ones, do not count; a text without any other is "
    "treated as if it held every word of the space once",
    "the paper's rating of words also counts the letters they share; here it is the cosine alone",
    MANY_RELEASES,
)


@register
@dataclass(frozen=True, repr=False, eq=False)
class SynTF(TextMechanism):
    """A fixed number of words, each drawn by the exponential mechanism for a word of the text.

    1. Draw a word v of the text, by its frequency there.
    2. Draw the word w to be released, with a chance proportional to exp(epsilon r(v, w) / 2), the
       rating r being their cosine, or 0 where that is negative.
    3. Do so ``length`` times.

    Ratings lie between 0 and 1, so for every two words v, v' the chances of w differ by a factor of
    at most exp(epsilon). Mixing over the words of a text keeps that bound: it holds between any two
    texts, of any lengths.
    """

    name: ClassVar[str] = "syntf"
    summary: ClassVar[str] = "a bag of words, each near a random word of the text"
    paper: ClassVar[str] = (
        "Weggenmann, Kerschbaum: SynTF: Synthetic and Differentially Private Term Frequency "
        "Vectors for Privacy-Preserving Text Mining, SIGIR 2018"
    )
    may_repeat: ClassVar[bool] = True

    space: WordSpace = resource()
    epsilon: float = parameter(
        20.0, "privacy parameter of one released word; a release costs this times length"
    )
    length: int = parameter(6, "how many words are released, whatever the text")

    def __post_init__(self) -> None:
        require_positive(self.epsilon)
        require(
            1 <= self.length <= MOST_WORDS,
            f"length must lie between 1 and {MOST_WORDS}, got {self.length}",
        )

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("local", self.epsilon * self.length, scope="text", caveats=CAVEATS)

    @property
    def made_with(self) -> str:
        """The hash of the space."""
        return self.space.sha256

    def law(self, word: int) -> Float64Array:
        """The chance of each word of the output vocabulary to be released for this one."""
        vector = unit_rows(self.space.vectors[[word]])[0]
        # One word at a time: products of other shapes would round differently.
        ratings = np.clip((self._outputs @ vector).astype(np.float64), 0.0, 1.0)
        # The best word weighs 1, so that some weight is left at any epsilon.
        chances = np.exp((ratings - ratings.max()) * (self.epsilon / 2))
        return np.asarray(chances / chances.sum())

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """Variants drawn independently; equal ones, or the text itself, are not drawn again."""
        prepared = replace(pipeline, unknown="drop").prepare(text, self.space)
        words = prepared.ids if len(prepared.ids) else np.arange(self.space.size)
        drawn_for = words[rng.integers(len(words), size=n * self.length)]
        chances = rng.random(n * self.length)
        released = np.empty(n * self.length, dtype=np.int64)
        for word in Counter(drawn_for.tolist()):
            places = np.flatnonzero(drawn_for == word)
            cumulated = np.cumsum(self.law(word))
            found = np.searchsorted(cumulated, chances[places] * cumulated[-1], side="right")
            released[places] = self.space.output.ids[np.minimum(found, len(cumulated) - 1)]
        bags = self.space.words(released)
        variants = tuple(
            " ".join(bags[start : start + self.length])
            for start in range(0, n * self.length, self.length)
        )
        # Unprotected words are not released, either.
        return Rewriting(variants, prepared.unknown)

    @cached_property
    def _outputs(self) -> Float32Array:
        """The directions of the words that may be released."""
        return unit_rows(self.space.vectors[self.space.output.ids])
