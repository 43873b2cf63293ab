"""Incognito: risky words are replaced by like ones that many people use.

Masood, Vatsalan, Ikram and Kaafar (WWW 2018) call a term of a query risky by how unique it is, how
evenly people use it, and whether it links to a person or a place; Feyisetan et al. (WSDM 2020,
sections 6 and 8) use it as a baseline, with and without noise. How evenly people use a word takes a
log with users, and is left out here. What both papers leave open is said in the steps below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sottovoce.guarantees import Guarantee
from sottovoce.language.wordnet import WordNet
from sottovoce.mechanisms.aea import combinations
from sottovoce.mechanisms.base import Rewriting, TextMechanism, parameter, require, resource
from sottovoce.mechanisms.build import register
from sottovoce.spaces.space import WordSpace
from sottovoce.text import FUNCTION_WORDS, TextPipeline
from sottovoce.text.words import stems
from sottovoce.types import Float32Array, IntArray

CAVEATS = (
    "only words that count as risky (rare ones, names, numbers) are replaced: all others are "
    "released as they are",
    "a risky word is replaced by its nearest common words, without noise that would bound what "
    "they tell: whoever has the same word space finds the few words that they can stand for",
)
NOTHING_RISKY = "no word of the text counts as risky: it would be released as it is, so it is not"


@register
@dataclass(frozen=True, repr=False, eq=False)
class Incognito(TextMechanism):
    """Replaces risky words by the nearest words that are not.

    1. A word is risky if it is not among the ``common`` most frequent words of the space (unique),
       or if it holds a digit, or if WordNet knows it as a name alone (linkable).
    2. Its substitutes are the ``choices`` nearest words that are not risky and have another stem.
       One substitute is without noise; of several, one is drawn, all being equally likely.
    3. All other words stay. A text without a risky word would come out as it is: it has no variant.
    """

    name: ClassVar[str] = "incognito"
    summary: ClassVar[str] = "replaces rare words, names and numbers by like words that are common"
    paper: ClassVar[str] = (
        "Masood, Vatsalan, Ikram, Kaafar: Incognito: A Method for Obfuscating Web Data, WWW 2018"
    )

    space: WordSpace = resource()
    wordnet: WordNet = resource()
    common: int = parameter(5000, "how many of the space's most frequent words are not unique")
    choices: int = parameter(1, "among how many substitutes one is drawn; 1 is without noise")

    def __post_init__(self) -> None:
        require(self.common >= 2, f"common must be at least 2 words, got {self.common}")
        require(
            1 <= self.choices <= 1000, f"choices must lie between 1 and 1000, got {self.choices}"
        )

    @property
    def made_with(self) -> str | None:
        """The hash of the space."""
        return self.space.sha256

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None, scope="text", caveats=CAVEATS)

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """At most ``n`` variants; words that the space lacks are left out."""
        listed = pipeline.unknown in ("encode", "uniform")
        prepared = (replace(pipeline, unknown="drop") if listed else pipeline).prepare(
            text, self.space
        )
        words = self.space.words(prepared.slots)
        risky = [self.is_risky(word) for word in words]
        kept = tuple(word for word, is_risky in zip(words, risky, strict=True) if not is_risky)
        caveats = prepared.caveats()
        if not any(risky):
            return Rewriting((), prepared.unknown, caveats=(*caveats, NOTHING_RISKY))
        substitutes = [
            self.substitutes(word) if is_risky else [word]
            for word, is_risky in zip(words, risky, strict=True)
        ]
        picked = (
            [choice[pick] for choice, pick in zip(substitutes, row, strict=True)]
            for block in combinations([len(choice) for choice in substitutes], n, rng)
            for row in block.tolist()
        )
        variants = tuple(dict.fromkeys(prepared.render_many(picked)))
        few = () if len(variants) == n else (f"only {len(variants)} of {n} variants exist",)
        return Rewriting(variants, prepared.unknown, (*prepared.kept, *kept), (*caveats, *few))

    def is_risky(self, word: str) -> bool:
        """Whether a word of the space is unique, or links to somebody."""
        unique = self.space.id(word) >= self.common
        return unique or any(map(str.isdigit, word)) or self._is_name(word)

    def substitutes(self, word: str) -> list[str]:
        """The nearest words that are not risky, the nearest first."""
        ids, vectors, squares = self._harmless
        # Distances, but for what all have in common.
        distances = squares - 2 * (vectors @ self.space.vectors[self.space.id(word)])
        order = ids[np.argsort(distances, kind="stable")]
        nearest = self.space.words(order[: 2 * self.choices + 10])
        (stem,) = stems([word])
        others = [other for other, of in zip(nearest, stems(nearest), strict=True) if of != stem]
        return others[: self.choices]

    @cached_property
    def _harmless(self) -> tuple[IntArray, Float32Array, Float32Array]:
        """The words that may be released for a risky one, their vectors, and squared lengths."""
        output = self.space.output.ids
        words = self.space.words(output[output < self.common])
        ids = self.space.ids([word for word in words if not self.is_risky(word)])
        require(len(ids) > 0, "no word of the space is common and no name: raise common")
        vectors = np.asarray(self.space.vectors[ids])
        return ids, vectors, (vectors**2).sum(axis=1)

    def _is_name(self, word: str) -> bool:
        """Whether WordNet writes a word with a capital letter in all its senses."""
        if word in FUNCTION_WORDS:
            return False
        lemmas = [lemma for sense in self.wordnet.senses(word) for lemma in sense.lemmas]
        spellings = [lemma for lemma in lemmas if lemma.casefold() == word]
        return bool(spellings) and all(lemma[0].isupper() for lemma in spellings)
