"""FEA, the keyqueries of Fröbe, Schmidt and Hagen (WI-IAT 2021), by sliding windows.

The words of the variants come from documents of a local corpus that answer the text; words of the
text itself, and words near them in WordNet, are denied.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import ClassVar

import numpy as np
import regex
from numpy.random import Generator

from sottovoce.engines.base import LocalEngine, ranks_of
from sottovoce.guarantees import Guarantee
from sottovoce.language.wordnet import WordNet
from sottovoce.mechanisms.base import Rewriting, TextMechanism, parameter, require, resource
from sottovoce.mechanisms.build import register
from sottovoce.text import FUNCTION_WORDS, TextPipeline, tokenize
from sottovoce.text.words import content_words, stems, words
from sottovoce.types import Float64Array, IntArray

DEPTH = 100
"""How far a candidate's ranking is looked at; targets beyond count as if they came next."""
MOST_SETS = 15_000
"""Sets of words at one place of all targets together: bounds time and memory."""
WORDS_READ = 200
"""Content words read of each target document; bounds the number of candidates."""

CAVEATS = (
    "the variants are computed from the text without any noise: equal texts give equal variants, "
    "and nothing bounds what they tell",
    "their words come from documents that answer the text: whoever has the same corpus can make "
    "the variants of every query of a list again and so name it, an engine names it by what they "
    "find, and whoever knows which words occur together can infer the subject",
    "words that people link to the text but WordNet does not are not denied",
)
NOTHING_FOUND = "no document of the corpus answers the text: there are no variants"
NOTHING_ALLOWED = "the documents that answer the text hold no word that may be released"

_LETTERS = regex.compile(r"[\p{L}\p{M}]{2,}")
_MARKS = regex.compile(r"\p{M}+")


@register
@dataclass(frozen=True, repr=False, eq=False)
class FEA(TextMechanism):
    """Queries of a few words that find, in a local corpus, what the text finds, without its words.

    1. The targets are the documents that the local engine ranks first for the text.
    2. Denied are the words of the text, their synonyms, hyponyms and hypernyms as nouns, and
       whatever has the same stem as one of these.
    3. Candidates are all sets of a few allowed words that stand in one window of a target.
       Sets with the same stems are one candidate, in the spelling of the best target.
    4. Released are the candidates whose own local rankings have the greatest nDCG, the targets
       being relevant; ties go to fewer words, then by alphabet.
    """

    name: ClassVar[str] = "fea"
    summary: ClassVar[str] = "other words that find the same documents of a local corpus"
    paper: ClassVar[str] = (
        "Fröbe, Schmidt, Hagen: Efficient Query Obfuscation with Keyqueries, WI-IAT 2021"
    )

    engine: LocalEngine = resource()
    wordnet: WordNet = resource()
    window: int = parameter(16, "how many content words a candidate's words may span")
    terms: int = parameter(3, "the most words of a variant, 1 to 5")
    targets: int = parameter(10, "how many documents stand for the text")

    def __post_init__(self) -> None:
        require(
            not self.engine.remote,
            "fea searches for the text itself, so its engine must be on this machine",
        )
        require(1 <= self.terms <= 5, f"terms must lie between 1 and 5, got {self.terms}")
        require(
            self.terms <= self.window <= 50,
            f"window must lie between {self.terms} (terms) and 50, got {self.window}",
        )
        sets = sum(comb(self.window - 1, size) for size in range(self.terms))
        require(
            sets * self.targets <= MOST_SETS,
            f"{self.targets} targets, windows of {self.window} words and {self.terms} terms make "
            "too many candidates: lower one of them",
        )
        require(
            1 <= self.targets <= DEPTH,
            f"targets must lie between 1 and {DEPTH}, got {self.targets}",
        )

    @property
    def made_with(self) -> str | None:
        """The hash of the corpus, where the engine tells it."""
        return getattr(self.engine, "fingerprint", None)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None, scope="text", caveats=CAVEATS)

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """The best ``n`` candidates, best first. No choice of the pipeline lets a word through."""
        targets = [hit.doc_id for hit in self.engine.search([text], self.targets)[0]]
        if not targets:
            return Rewriting((), caveats=(NOTHING_FOUND,))
        candidates = self._candidates(map(self.engine.text, targets), DenyList(text, self.wordnet))
        if not candidates:
            return Rewriting((), caveats=(NOTHING_ALLOWED,))
        scores = ndcg(ranks_of(self.engine, candidates, targets, DEPTH))
        order = sorted(
            range(len(candidates)),
            key=lambda i: (-scores[i], candidates[i].count(" "), candidates[i]),
        )
        variants = tuple(candidates[i] for i in order[:n])
        few = f"only {len(variants)} of {n} variants exist"
        return Rewriting(variants, caveats=(few,) if len(variants) < n else ())

    def _candidates(self, texts: Iterable[str], denied: DenyList) -> list[str]:
        spellings: dict[str, str] = {}
        stem_sets: dict[frozenset[str], None] = {}
        for text in texts:
            terms = list(islice(allowed_terms(text, denied), WORDS_READ))
            stemmed = [stem or None for stem in stems([term or "" for term in terms])]
            for stem, term in zip(stemmed, terms, strict=True):
                if stem and term:
                    spellings.setdefault(stem, term)
            stem_sets.update(dict.fromkeys(self._sets(stemmed)))
        return [" ".join(sorted(spellings[stem] for stem in stem_set)) for stem_set in stem_sets]

    def _sets(self, places: list[str | None]) -> Iterator[frozenset[str]]:
        """All sets of stems within a window, each by its leftmost place."""
        for place, first in enumerate(places):
            if first is None:
                continue
            following = places[place + 1 : place + self.window]
            partners = list(dict.fromkeys(stem for stem in following if stem not in (None, first)))
            for size in range(self.terms):
                for rest in combinations(partners, size):
                    yield frozenset((first, *rest))


class DenyList:
    """The words that no variant may hold: those of a text and their neighbours in WordNet.

    A multi-word entry of WordNet denies each of its content words. Accents make no difference.
    """

    def __init__(self, text: str, wordnet: WordNet) -> None:
        text_words = _spellings(text)
        near = {
            lemma
            for word in text_words - FUNCTION_WORDS
            for sense in wordnet.senses(word, "n")
            for related in (sense, *sense.hyponyms(), *sense.hypernyms())
            for lemma in related.lemmas
        }
        denied = text_words.union(*map(content_words, near))
        denied |= set(map(_without_accents, denied))
        self._denied = denied.union(stem for stem in stems(list(denied)) if len(stem) > 2)
        # Scripts without blanks run words together, so that one may hide inside another.
        self._hidden = frozenset(word for word in text_words if not word.isascii())

    def __contains__(self, word: str) -> bool:
        """Whether a word, in lower case, is denied: itself, its stem, or a word inside it."""
        forms = [word, _without_accents(word)]
        return not self._denied.isdisjoint((*forms, *stems(forms))) or any(
            hidden in word or word in hidden for hidden in self._hidden
        )

    def __repr__(self) -> str:
        return f"DenyList({len(self._denied)} words and stems)"


def allowed_terms(text: str, denied: DenyList) -> Iterator[str | None]:
    """The content words of a document that are all letters; None in the place of a denied one.

    A compound that is denied when written as one word (Wi-Fi for wifi) is denied in all its parts.
    """
    for token in tokenize(text):
        parts = words(token.surface)
        compound = len(parts) > 1 and "".join(parts) in denied
        for part in parts:
            word = part.removesuffix("'s")
            if word not in FUNCTION_WORDS and _LETTERS.fullmatch(word):
                yield None if compound or word in denied else word


def ndcg(ranks: IntArray) -> Float64Array:
    """How well rankings find their targets, from the targets' ranks; one row a ranking.

    Rank 0 stands for a target that was not found: these take the places after ``DEPTH``. Rounded,
    so that the order of summation decides no tie.
    """
    count = ranks.shape[1]
    missing = ranks == 0
    places = np.where(missing, DEPTH + np.cumsum(missing, axis=1), ranks)
    ideal = (1 / np.log2(np.arange(2, count + 2))).sum()
    return np.asarray(np.round((1 / np.log2(places + 1)).sum(axis=1) / ideal, 9))


def _spellings(text: str) -> set[str]:
    """The words of a text in lower case, without possessives too, and compounds as one word."""
    spellings = set(words(text))
    spellings |= {"".join(words(token.surface)) for token in tokenize(text)} - {""}
    spellings |= {part for word in spellings for part in word.split("'") if len(part) > 2}
    return spellings | {word.removesuffix("'s") for word in spellings}


def _without_accents(word: str) -> str:
    return word if word.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", word))
