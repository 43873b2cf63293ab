"""Versatile query scrambling, statistical: general queries that cover what a text finds.

Arampatzis, Drosatos and Efraimidis (2015) scramble a query with the help of a sample of documents,
mutual information and set covering; Feyisetan et al. (WSDM 2020, section 6) use it as a baseline.
The choices that these papers leave open are the parameters and the steps below. The *semantic*
scrambling of the same authors, by WordNet, is ``aea``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import ClassVar

import numpy as np
import regex
from numpy.random import Generator

from sottovoce.engines.base import LocalEngine
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import Rewriting, TextMechanism, parameter, require, resource
from sottovoce.mechanisms.build import register
from sottovoce.text import TextPipeline
from sottovoce.text.words import content_words, stems
from sottovoce.types import Float64Array, IntArray

CAVEATS = (
    "the variants are computed from the text without any noise: whoever has the same corpus can "
    "make those of every query of a list again and so name it, and nothing bounds what they tell",
    "a variant finds several times as many documents as are meant, in the local sample; what "
    "several variants have in common may be the subject",
)
NOTHING_FOUND = "no document of the corpus answers the text: there are no variants"
NOTHING_GENERAL = "no words of the documents that answer the text are general enough: no variants"

WORDS_READ = 200
"""Content words read of each document; bounds the number of candidates."""
_REMEMBERED_DOCUMENTS = 1 << 15
_LETTERS = regex.compile(r"[\p{L}\p{M}]{2,}")


@register
@dataclass(frozen=True, repr=False, eq=False)
class Versatile(TextMechanism):
    """General queries, each of which finds some of the documents that the text finds.

    1. The sample is what the local engine finds for the text; its first documents are the targets.
    2. Candidates are sets of a few words that stand in one window of a target; none has the stem of
       a word of the text. A candidate finds the documents of the sample that hold all its words.
    3. It is general if it finds at least ``generality`` documents for each target that it finds.
    4. Released are the general ones that cover the targets: each time the one that finds most
       targets not yet covered; equal ones by the mutual information between being found and being a
       target, then fewer words, then by alphabet. When all are covered, the covering starts again.
    """

    name: ClassVar[str] = "versatile"
    summary: ClassVar[str] = "general queries that together find the same documents"
    paper: ClassVar[str] = (
        "Arampatzis, Drosatos, Efraimidis: Versatile Query Scrambling for Private Web Search, "
        "Information Retrieval Journal 18, 2015"
    )

    engine: LocalEngine = resource()
    sample: int = parameter(200, "how many documents of the corpus are looked at")
    targets: int = parameter(10, "how many of them, the first ones, stand for the text")
    generality: float = parameter(3.0, "documents found for each target that is found, at least")
    terms: int = parameter(2, "the most words of a variant, 1 to 3")
    window: int = parameter(8, "how many content words the words of a variant may span")

    def __post_init__(self) -> None:
        require(
            not self.engine.remote,
            "versatile searches for the text itself, so its engine must be on this machine",
        )
        require(
            1 <= self.targets < self.sample <= 1000,
            "targets must be fewer than the sample, and that at most 1000 documents",
        )
        require(self.generality > 1, f"generality must exceed 1, got {self.generality:g}")
        require(1 <= self.terms <= 3, f"terms must lie between 1 and 3, got {self.terms}")
        require(
            self.terms <= self.window <= 30,
            f"window must lie between {self.terms} (terms) and 30, got {self.window}",
        )

    @property
    def made_with(self) -> str | None:
        """The hash of the corpus, where the engine tells it."""
        return getattr(self.engine, "fingerprint", None)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None, scope="text", caveats=CAVEATS)

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """At most ``n`` variants, those that cover most first. No word of the text is in them."""
        sample = [hit.doc_id for hit in self.engine.search([text], self.sample)[0]]
        if not sample:
            return Rewriting((), caveats=(NOTHING_FOUND,))
        documents = [self._document(doc_id) for doc_id in sample]
        denied = frozenset(stems(content_words(text)))
        candidates = sorted({*self._candidates(documents[: self.targets], denied)}, key=_written)
        found = _found(candidates, documents)
        covered = found[:, : self.targets]
        enough = (covered.sum(axis=1) >= 1) & (
            found.sum(axis=1) >= self.generality * covered.sum(axis=1)
        )
        kept = np.flatnonzero(enough)
        if not len(kept):
            return Rewriting((), caveats=(NOTHING_GENERAL,))
        information = mutual_information(found[kept], covered.shape[1])
        sizes = np.array([len(candidates[row]) for row in kept])
        chosen = covering(covered[kept], information, sizes, n)
        variants = tuple(_written(candidates[kept[row]]) for row in chosen)
        few = f"only {len(variants)} of {n} variants exist"
        return Rewriting(variants, caveats=(few,) if len(variants) < n else ())

    @cached_property
    def _document(self) -> Callable[[str], tuple[tuple[str, str], ...]]:
        """Reads a document of the corpus, or remembers it: it is public, and asked for often."""

        @lru_cache(_REMEMBERED_DOCUMENTS)
        def read(doc_id: str) -> tuple[tuple[str, str], ...]:
            """The content words that are all letters, each with its stem."""
            words = content_words(self.engine.text(doc_id))
            letters = [word for word in words if _LETTERS.fullmatch(word)][:WORDS_READ]
            return tuple(zip(letters, stems(letters), strict=True))

        return read

    def _candidates(
        self, targets: Sequence[tuple[tuple[str, str], ...]], denied: frozenset[str]
    ) -> Iterator[frozenset[str]]:
        for document in targets:
            words = [word if stem not in denied else None for word, stem in document]
            for place, first in enumerate(words):
                if first is None:
                    continue
                following = words[place + 1 : place + self.window]
                partners = dict.fromkeys(word for word in following if word not in (None, first))
                for size in range(self.terms):
                    for rest in combinations(partners, size):
                        yield frozenset((first, *rest))


def _written(candidate: frozenset[str]) -> str:
    return " ".join(sorted(candidate))


def _found(
    candidates: Sequence[frozenset[str]], documents: Sequence[tuple[tuple[str, str], ...]]
) -> IntArray:
    """Which documents hold all words of each candidate, (candidates, documents) of 0 and 1."""
    rows = {word: row for row, word in enumerate(sorted({word for c in candidates for word in c}))}
    holds = np.zeros((len(rows) + 1, len(documents)), dtype=np.int64)
    holds[-1] = 1  # Stands for no further word.
    for column, document in enumerate(documents):
        holds[[rows[word] for word, _ in document if word in rows], column] = 1
    longest = max((len(candidate) for candidate in candidates), default=1)
    places = np.full((len(candidates), longest), len(rows))
    for number, candidate in enumerate(candidates):
        places[number, : len(candidate)] = [rows[word] for word in candidate]
    found = np.ones((len(candidates), len(documents)), dtype=np.int64)
    for words in places.T:
        found *= holds[words]
    return found


def mutual_information(found: IntArray, targets: int) -> Float64Array:
    """Between being found and being one of the first ``targets`` documents, in nats.

    Rounded, so that the order of summation decides no tie.
    """
    documents = found.shape[1]
    is_target = np.arange(documents) < targets
    information = np.zeros(len(found))
    for hit in (0, 1):
        for target in (False, True):
            joint = (found[:, is_target == target] == hit).mean(axis=1) * (
                is_target == target
            ).mean()
            apart = (found == hit).mean(axis=1) * (is_target == target).mean()
            with np.errstate(divide="ignore", invalid="ignore"):
                information += np.where(joint > 0, joint * np.log(joint / apart), 0.0)
    return np.asarray(np.round(information, 9))


def covering(covered: IntArray, information: Float64Array, sizes: IntArray, n: int) -> list[int]:
    """At most ``n`` rows, each time the one that covers most targets not yet covered.

    Rows are in the order of the alphabet, which decides what is equal otherwise.
    """
    order = np.lexsort((np.arange(len(covered)), sizes, -information))
    left = np.ones(covered.shape[1], dtype=np.int64)
    chosen: list[int] = []
    available = np.ones(len(order), dtype=bool)
    while available.any() and len(chosen) < n:
        gains = np.where(available, covered[order] @ left, -1)
        if gains.max() <= 0 and not left.all():
            left[:] = 1
            continue
        best = int(np.argmax(gains))
        available[best] = False
        chosen.append(int(order[best]))
        left[covered[order[best]] == 1] = 0
    return chosen
