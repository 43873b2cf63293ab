"""A mechanism that sottovoce does not have, with a kind of resource that nothing else knows.

It shows what an author writes, all of it in one file: randomized response over a glossary of public
words. A word of the glossary comes back with probability e^epsilon / (e^epsilon + k - 1), and each
of the k - 1 others with 1 / (e^epsilon + k - 1); a word outside it becomes any of the k words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.files import read_words
from sottovoce.guarantees import WORD_BY_WORD, Guarantee
from sottovoce.mechanisms import WordMechanism, register
from sottovoce.mechanisms.base import require, resource
from sottovoce.mechanisms.build import Facts, ResourceKind, Settings, register_resource
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array, IntArray, Progress


@dataclass(frozen=True)
class Glossary:
    """Public words that may be released."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> Glossary:
        return cls(tuple(sorted(set(words))))

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()


@register_resource
class GlossaryKind(ResourceKind):
    """Glossaries: text files with one word a line."""

    name: ClassVar[str] = "glossary"
    settings: ClassVar[Settings] = {"glossary": None}

    def load(self, settings: Settings, progress: Progress | None) -> Glossary:
        if settings["glossary"] is None:
            raise UsageError("give a glossary, one word a line, with --with glossary=FILE")
        return Glossary.of(read_words(settings["glossary"]))

    def stand_in(self, settings: Settings) -> Glossary:
        return Glossary.of(map(str, range(10)))

    def facts(self, resource: Any) -> Facts:
        return {"name": "glossary", "sha256": resource.sha256}


@register
@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class GlossaryResponse(WordMechanism):
    """Randomized response over the words that the glossary and the output vocabulary share."""

    name: ClassVar[str] = "glossary-response"
    summary: ClassVar[str] = "answers with the word itself or with any word of a glossary"
    paper: ClassVar[str] = "made up for a test"

    glossary: Glossary = resource()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self._released) > 1, "the glossary and the space share fewer than two words")

    @cached_property
    def _released(self) -> IntArray:
        return np.intersect1d(self.space.ids(self.glossary.words), self.space.output.ids)

    @property
    def _stay(self) -> float:
        """The chance that a word of the glossary is drawn apart from the uniform draw."""
        gain, rest = -np.expm1(-self.epsilon), len(self._released) * np.exp(-self.epsilon)
        return float(gain / (gain + rest))

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        anything = self._released[draws.below(len(self._released))]
        stays = np.isin(ids, self._released) & (draws.uniform() < self._stay)
        return np.where(stays, ids, anything)

    def log_probabilities(self, ids: IntArray) -> Float64Array:
        listed = np.isin(ids, self._released)
        chances = np.zeros((len(ids), self.space.size))
        uniform = np.where(listed, 1 - self._stay, 1.0) / len(self._released)
        chances[:, self._released] = uniform[:, None]
        chances[np.flatnonzero(listed), ids[listed]] += self._stay
        with np.errstate(divide="ignore"):
            return np.log(chances)

    @property
    def made_with(self) -> str:
        return hashlib.sha256((super().made_with + self.glossary.sha256).encode()).hexdigest()

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("local", self.epsilon, caveats=(WORD_BY_WORD,))
