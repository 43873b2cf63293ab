"""AEA, the query scrambler of Arampatzis, Efraimidis and Drosatos: more general words of WordNet.

The papers leave open which senses count, how many combinations are looked at and how ties go; the
choices made here are those of the parameters and of the docstrings.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import compress
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from sottovoce.choices import UnknownPolicy
from sottovoce.guarantees import Guarantee
from sottovoce.language.tagging import Tagger, load_tagger
from sottovoce.language.wordnet import Pos, Sense, WordNet
from sottovoce.mechanisms.base import Rewriting, TextMechanism, parameter, require, resource
from sottovoce.mechanisms.build import register
from sottovoce.text import PreparedText, TextPipeline
from sottovoce.text.comparing import comparable, folded_text
from sottovoce.text.protection import NOUNS_AND_ADJECTIVES, tagged
from sottovoce.text.words import stems, words
from sottovoce.types import UNKNOWN, IntArray

CAVEATS = (
    "each word is replaced by synonyms and more general words of a public dictionary, without "
    "noise: whoever looks the substitutes up finds the few words that they can stand for",
    "every further variant of a text narrows its words down more; nothing bounds what they tell",
)
LEFT_OUT = (
    "words for which WordNet has no substitute are left out: there is no vocabulary to draw "
    "others from"
)
WORDS_STAY = (
    "compat=published does as the releases that papers compare themselves with: a word may stand "
    "for itself, and words without a substitute are released as they are"
)
NO_SUBSTITUTES = "WordNet has no substitute for any word that is to be protected: no variants"

_CELLS_AT_A_TIME = 1 << 18
_COUNTABLE = 1 << 62
# Words looked up before, in memory only.
_REMEMBERED_WORDS = 1 << 14
_POS: dict[str, Pos] = {"NN": "n", "VB": "v", "JJ": "a", "RB": "r"}


class Choices(NamedTuple):
    """The substitutes of a word and how similar each is to it."""

    substitutes: tuple[str, ...]
    similarities: tuple[float, ...]

    def with_itself(self, word: str) -> Choices:
        """The same, with the word itself among them."""
        return Choices((word, *self.substitutes), (1.0, *self.similarities))

    def without(self, forms: set[str]) -> Choices:
        """The substitutes that hold none of these forms of words; all if each holds one."""
        kept = [forms.isdisjoint((*words(s), *stems(words(s)))) for s in self.substitutes]
        if not any(kept):
            return self
        return Choices(
            tuple(compress(self.substitutes, kept)), tuple(compress(self.similarities, kept))
        )


@register
@dataclass(frozen=True, repr=False, eq=False)
class AEA(TextMechanism):
    """Combinations of substitutes, the most similar to the text that do not expose it.

    1. A word's substitutes are the synonyms of its senses, their hypernyms up to ``level`` steps
       away, and their holonyms; never a form of the word itself.
    2. Candidates are all combinations, or ``cap`` of them drawn at random if there are more.
    3. A candidate's similarity is the mean over its words of Wu and Palmer's measure, the greatest
       over all pairs of senses. Above ``threshold`` it exposes the text and is dropped.
    4. Released are the most similar ones; ties go by alphabet.

    The releases that 000, 001 and 003 compare themselves with were made otherwise: words stay,
    too, and variants are any combinations. ``compat=published`` does that.
    """

    name: ClassVar[str] = "aea"
    summary: ClassVar[str] = "replaces words by synonyms and more general words of WordNet"
    paper: ClassVar[str] = (
        "Arampatzis, Efraimidis, Drosatos: A Query Scrambler for Search Privacy on the Internet, "
        "Information Retrieval 16, 2013"
    )

    wordnet: WordNet = resource()
    level: int = parameter(3, "how many steps up the substitutes may be more general, 0 to 20")
    threshold: float = parameter(0.9, "candidates more similar than this are dropped, 0 to 1")
    cap: int = parameter(5000, "the most combinations of substitutes to compare")
    senses: Literal["all", "first"] = parameter("all", "all senses of a word, or the most frequent")
    compat: Literal["none", "published"] = parameter(
        "none", "'published' lets words stay and takes any combinations, as published releases do"
    )

    def __post_init__(self) -> None:
        require(0 <= self.level <= 20, f"level must lie between 0 and 20, got {self.level}")
        require(0 <= self.threshold <= 1, f"threshold must lie in 0 to 1, got {self.threshold}")
        require(1 <= self.cap <= 10**5, f"cap must lie between 1 and 100000, got {self.cap}")

    @property
    def protects(self) -> str:
        return NOUNS_AND_ADJECTIVES if self.compat == "none" else "all"

    @property
    def guarantee(self) -> Guarantee:
        words_stay = () if self.compat == "none" else (WORDS_STAY,)
        return Guarantee("none", None, scope="text", caveats=(*words_stay, *CAVEATS))

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """The ``n`` most similar candidates that are not too similar, best first.

        As published: any ``n`` combinations, in which words may stay.
        """
        lexicon = _Lexicon(self)
        words_stay = self.compat == "published"
        uniform = pipeline.unknown in ("encode", "uniform")
        unknown: UnknownPolicy = "keep" if words_stay else "drop"
        preparing = replace(pipeline, unknown=unknown) if uniform else pipeline
        prepared = preparing.prepare(text, lexicon)
        caveats = list(prepared.caveats())
        if uniform and prepared.counts.dropped:
            caveats.append(LEFT_OUT)
        variants: list[str] = []
        if len(prepared):
            choices = self._choices(prepared, lexicon, load_tagger(pipeline.tagger))
            choose = self._any if words_stay else self._most_similar
            variants = choose(prepared, choices, n, rng)
            if len(variants) < n:
                limit = "" if words_stay else f" at threshold {self.threshold:g}"
                caveats.append(f"only {len(variants)} of {n} variants exist{limit}")
        else:
            caveats.append(NO_SUBSTITUTES)
        return Rewriting(
            tuple(variants), prepared.unknown, prepared.kept, tuple(caveats), prepared.counts
        )

    def _choices(self, prepared: PreparedText, lexicon: _Lexicon, tagger: Tagger) -> list[Choices]:
        """The choices at each slot: of the word's part of speech there, if there are any."""
        tokens = tagged(prepared.text, tagger)
        starts = [token.start for token in tokens]
        protected = {lexicon.words[slot] for slot in prepared.slots.tolist()}
        protected_forms = {form for word in protected for form in _forms(self.wordnet, word)}
        choices_at_slots = []
        for slot, (start, _) in zip(prepared.slots.tolist(), prepared.spans.tolist(), strict=True):
            word = lexicon.words[slot]
            pos = _POS.get(tokens[bisect_right(starts, start) - 1].tag[:2])
            choices = _choices(self.wordnet, word, pos, self.level, self.senses)
            if not choices.substitutes:
                choices = _choices(self.wordnet, word, None, self.level, self.senses)
            choices = choices.without(protected_forms)
            stays = self.compat == "published"
            choices_at_slots.append(choices.with_itself(word) if stays else choices)
        return choices_at_slots

    def _any(
        self, prepared: PreparedText, choices: list[Choices], n: int, rng: Generator
    ) -> list[str]:
        """Variants made of any combinations that differ from each other and from the text."""
        sizes = [len(slot.substitutes) for slot in choices]
        picks = np.concatenate(list(combinations(sizes, min(2 * n, self.cap), rng)))
        texts = prepared.render_many(
            [slot.substitutes[pick] for slot, pick in zip(choices, row, strict=True)]
            for row in rng.permutation(picks).tolist()
        )
        distinct = {folded_text(text): text for text in reversed(list(texts))}
        distinct.pop(folded_text(prepared.text), None)
        return list(reversed(distinct.values()))[:n]

    def _most_similar(
        self, prepared: PreparedText, choices: list[Choices], n: int, rng: Generator
    ) -> list[str]:
        """Variants made of the best combinations, one block of combinations after the other."""
        sizes = [len(slot.substitutes) for slot in choices]
        similarities = np.zeros((len(choices), max(sizes)))
        for row, slot in zip(similarities, choices, strict=True):
            row[: len(slot.similarities)] = slot.similarities
        slots = np.arange(len(choices))
        original = folded_text(prepared.text)
        best: list[tuple[float, str, str]] = []
        for picks in combinations(sizes, self.cap, rng):
            # Rounded, so that the order of summation decides no tie.
            means = similarities[slots, picks].mean(axis=1).round(9)
            least = -best[-1][0] if best and len(best) == n else 0.0
            eligible = np.flatnonzero((means <= self.threshold) & (means >= least))
            texts = prepared.render_many(
                [slot.substitutes[pick] for slot, pick in zip(choices, row, strict=True)]
                for row in picks[eligible].tolist()
            )
            best += zip((-means[eligible]).tolist(), texts, map(folded_text, texts), strict=True)
            # The best n that differ from each other and from the text itself.
            distinct: dict[str, tuple[float, str, str]] = {}
            for candidate in sorted(best):
                distinct.setdefault(candidate[2], candidate)
            distinct.pop(original, None)
            best = list(distinct.values())[:n]
        return [text for _, text, _ in best]


class _Lexicon:
    """Numbers the words of a text that have a substitute."""

    def __init__(self, mechanism: AEA) -> None:
        self._of = mechanism
        self._ids: dict[str, int] = {}
        self.words: list[str] = []

    def id(self, word: str, /) -> int:
        if word not in self._ids and _substitutes(
            self._of.wordnet, word, None, self._of.level, self._of.senses
        ):
            self._ids[word] = len(self.words)
            self.words.append(word)
        return self._ids.get(word, UNKNOWN)


def combinations(sizes: Sequence[int], cap: int, rng: Generator) -> Iterator[IntArray]:
    """Yield picks (rows, len(sizes)), each below its size: all there are, or ``cap`` at random.

    The number of all may be astronomical. Below 2^62 none is drawn twice; beyond, a repetition is
    possible in principle.
    """
    total = math.prod(sizes)
    rows = max(1, _CELLS_AT_A_TIME // len(sizes))
    if total >= _COUNTABLE:
        for start in range(0, cap, rows):
            yield rng.integers(0, sizes, size=(min(rows, cap - start), len(sizes)))
        return
    ranks = np.arange(total) if total <= cap else rng.choice(total, cap, replace=False)
    for start in range(0, len(ranks), rows):
        rest = ranks[start : start + rows]
        picks = np.empty((len(rest), len(sizes)), dtype=np.int64)
        for slot in reversed(range(len(sizes))):
            rest, picks[:, slot] = np.divmod(rest, sizes[slot])
        yield picks


@lru_cache(_REMEMBERED_WORDS)
def _choices(wordnet: WordNet, word: str, pos: Pos | None, level: int, which: str) -> Choices:
    """A word's substitutes with their similarities: the greatest over all pairs of senses."""
    substitutes = _substitutes(wordnet, word, pos, level, which)
    word_senses = _senses(wordnet, word, pos, which)
    similarity = cache(wordnet.wu_palmer)

    def greatest(substitute: str) -> float:
        pairs = [(a, b) for a in word_senses for b in wordnet.senses(substitute, a.pos)]
        if any(a is b and similarity(a, b) == 1 for a, b in pairs):
            return 1.0
        return max((similarity(a, b) for a, b in pairs), default=0.0)

    return Choices(substitutes, tuple(map(greatest, substitutes)))


@lru_cache(_REMEMBERED_WORDS)
def _substitutes(
    wordnet: WordNet, word: str, pos: Pos | None, level: int, which: str
) -> tuple[str, ...]:
    """Synonyms, hypernyms and holonyms of a word that hold no form of the word itself."""
    forms = _forms(wordnet, word)
    substitutes: dict[str, str] = {}
    for sense in _senses(wordnet, word, pos, which):
        for related in (sense, *_hypernyms(sense, level), *sense.holonyms()):
            for lemma in related.lemmas:
                if not _holds(lemma, forms):
                    substitutes.setdefault(comparable(lemma), lemma)
    return tuple(substitutes.values())


@lru_cache(_REMEMBERED_WORDS)
def _forms(wordnet: WordNet, word: str) -> list[str]:
    """A word, its base forms, and the stems of all these."""
    forms = {_joined(form) for pos in _POS.values() for form in wordnet.forms(word.lower(), pos)}
    return [*forms, *stems(list(forms))]


def _holds(lemma: str, forms: list[str]) -> bool:
    """Whether a form stands in the lemma: short ones as a word, others also inside a word."""
    joined, parts = _joined(lemma), words(lemma)
    return any(form in (joined if len(form) > 2 else parts) for form in forms)


def _joined(term: str) -> str:
    """A term as one word: neither blanks nor hyphens tell e-mail and email apart."""
    return "".join(words(term))


def _senses(wordnet: WordNet, word: str, pos: Pos | None, which: str) -> tuple[Sense, ...]:
    senses = wordnet.senses(word, pos)
    return senses[:1] if which == "first" else senses


def _hypernyms(sense: Sense, level: int) -> Iterator[Sense]:
    nearest: dict[Sense, None] = {sense: None}
    for _ in range(level):
        nearest = dict.fromkeys(above for below in nearest for above in below.hypernyms())
        yield from nearest
