"""What lexical engines share: words, postings, exact sums of weights, deterministic ties.

A term's weight in a document is rounded to a multiple of 2^-24. Sums of weights are then sums of
whole numbers: the same in any order, so that equal documents tie and ties go by document order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from sottovoce.collections import Document
from sottovoce.engines.base import Hit
from sottovoce.engines.documents import Documents, whole_text
from sottovoce.errors import UsageError
from sottovoce.text.stems import content_words, stems
from sottovoce.types import Float64Array, IntArray

UNITS = float(1 << 24)
_CELLS_AT_A_TIME = 1 << 20


class Lexical(ABC):
    """Ranks documents by the sum of the weights of the query's words, over English stems."""

    name: str
    remote = False
    pause = 0.0
    most_queries: int | None = None

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = Documents(documents)
        self._terms: dict[str, int] = {}
        terms, lengths = array("q"), array("q")
        for document in self._documents:
            found = stems(content_words(whole_text(document)))
            terms.extend([self._terms.setdefault(stem, len(self._terms)) for stem in found])
            lengths.append(len(found))
        self._index(np.asarray(terms, dtype=np.int64), np.asarray(lengths, dtype=np.int64))

    def _index(self, terms: IntArray, lengths: IntArray) -> None:
        size = max(len(self), 1)
        place = np.repeat(np.arange(len(self), dtype=np.int64), lengths)
        keys, tf = np.unique(terms * size + place, return_counts=True)
        term, self._docs = np.divmod(keys, size)
        df = np.bincount(term, minlength=len(self._terms))
        weights = self._weigh(term, tf, df, lengths)
        # Every document that holds a term is a hit, however little it weighs.
        self._weights = np.maximum(np.rint(weights * UNITS), 1).astype(np.int64)
        self._edges: list[int] = [0, *np.cumsum(df).tolist()]

    @abstractmethod
    def _weigh(self, term: IntArray, tf: IntArray, df: IntArray, lengths: IntArray) -> Float64Array:
        """The weight of each posting: of ``term``, which occurs ``tf`` times in ``self._docs``.

        ``df`` counts the documents of each term, ``lengths`` the words of each document.
        """

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._documents)

    @property
    def fingerprint(self) -> str:
        """A hash of the documents."""
        return self._documents.sha256

    def text(self, doc_id: str) -> str:
        """The whole text of a document, its title first."""
        return self._documents.text(doc_id)

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents of each query, best first; ties by document order."""
        if depth < 0:
            raise UsageError(f"depth cannot be negative, got {depth}")
        answers = []
        for terms in self._known(queries):
            places, scores = self._scores(terms)
            best = _best(scores, depth)
            answers.append(
                [
                    self._documents.hit(place, score)
                    for place, score in zip(
                        places[best].tolist(), (scores[best] / UNITS).tolist(), strict=True
                    )
                ]
            )
        return answers

    def ranks(self, queries: Sequence[str], doc_ids: Sequence[str], depth: int) -> IntArray:
        """The rank (from 1) of each document for each query; 0 where it is not in the best.

        Queries that share all but their rarest word are counted together: the scores of what they
        share are sorted once, and only documents that hold the rarest word are looked at anew.
        """
        found = np.zeros((len(queries), len(doc_ids)), dtype=np.int64)
        targets = np.array([self._documents.place(doc_id) for doc_id in doc_ids], dtype=np.int64)
        known = [self._rarest_last(terms) for terms in self._known(queries)]
        self._check_keys(max(map(len, known), default=0))
        rows = sorted((row for row, terms in enumerate(known) if terms), key=known.__getitem__)
        for shared, group in groupby(rows, key=lambda row: known[row][:-1]):
            for members in self._portions(group, known, len(targets)):
                rarest = [known[row][-1] for row in members]
                found[members] = self._ranks(shared, rarest, targets)
        found[found > depth] = 0
        return found

    def _ranks(self, shared: tuple[int, ...], rarest: list[int], targets: IntArray) -> IntArray:
        """Ranks for the queries ``shared`` + one of ``rarest``, (len(rarest), len(targets)).

        A document's key is its score followed by its place counted from the end: the greater key
        ranks first, ties included, and no two keys are equal. Keys below ``size`` have no score.
        """
        size = len(self)
        keys = np.arange(size - 1, -1, -1, dtype=np.int64)
        for term in shared:
            keys[self._docs[self._span(term)]] += self._weights[self._span(term)] * size
        scored = np.sort(keys[keys >= size])

        spans = [self._span(term) for term in rarest]
        docs = np.concatenate([self._docs[span] for span in spans])
        gains = np.concatenate([self._weights[span] for span in spans]) * size
        counts = [span.stop - span.start for span in spans]
        query = np.repeat(np.arange(len(rarest), dtype=np.int64), counts)

        pairs = query * size + docs
        wanted = np.arange(len(rarest), dtype=np.int64)[:, None] * size + targets
        at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        bars = keys[targets] + np.where(pairs[at] == wanted, gains[at], 0)

        above = len(scored) - np.searchsorted(scored, bars, side="right")
        before = keys[docs][:, None]
        risen = (before <= bars[query]) & (before + gains[:, None] > bars[query])
        starts = np.concatenate(([0], np.cumsum(counts[:-1], dtype=np.int64)))
        above += np.add.reduceat(risen, starts, axis=0, dtype=np.int64)
        return np.where(bars >= size, above + 1, 0)

    def _check_keys(self, words: int) -> None:
        most = (1 << 63) // (int(self._weights.max(initial=1)) * max(len(self), 1))
        if words >= most:
            raise UsageError(f"ranks takes queries of fewer than {most} words: use search")

    def _portions(
        self, rows: Iterable[int], known: list[tuple[int, ...]], targets: int
    ) -> Iterator[list[int]]:
        """Cut rows into lists whose rarest words have a bounded number of postings together."""
        portion: list[int] = []
        cells = 0
        for row in rows:
            span = self._span(known[row][-1])
            portion.append(row)
            cells += (span.stop - span.start) * targets
            if cells > _CELLS_AT_A_TIME:
                yield portion
                portion, cells = [], 0
        if portion:
            yield portion

    def _known(self, queries: Sequence[str]) -> list[list[int]]:
        """The terms of each query that some document holds, repeated where the query does."""
        split = [content_words(query) for query in queries]
        distinct = list(dict.fromkeys(word for found in split for word in found))
        stemmed = zip(distinct, stems(distinct), strict=True)
        ids = {word: self._terms[stem] for word, stem in stemmed if stem in self._terms}
        return [[ids[word] for word in found if word in ids] for found in split]

    def _rarest_last(self, terms: list[int]) -> tuple[int, ...]:
        """The terms in an order in which many queries begin alike and end in a short list."""
        return tuple(sorted(terms, key=lambda term: (-self._frequency(term), term)))

    def _frequency(self, term: int) -> int:
        return self._edges[term + 1] - self._edges[term]

    def _span(self, term: int) -> slice:
        return slice(self._edges[term], self._edges[term + 1])

    def _scores(self, terms: list[int]) -> tuple[IntArray, IntArray]:
        """The documents that hold any of the terms, in order, and their scores in units."""
        if len(terms) == 1:
            span = self._span(terms[0])
            return self._docs[span], self._weights[span]
        spans = [self._span(term) for term in terms] or [slice(0)]
        docs = np.concatenate([self._docs[span] for span in spans])
        weights = np.concatenate([self._weights[span] for span in spans])
        order = np.argsort(docs, kind="stable")
        docs = docs[order]
        first = np.flatnonzero(np.diff(docs, prepend=-1))
        return docs[first], np.add.reduceat(weights[order], first)


def _best(scores: IntArray, depth: int) -> IntArray:
    """Where the ``depth`` best scores are, best first; equal ones in their order."""
    chosen = np.arange(len(scores), dtype=np.int64)
    if depth < len(scores):
        bar = np.partition(scores, len(scores) - depth)[len(scores) - depth] if depth else 0
        chosen = np.flatnonzero(scores >= bar)
    return chosen[np.argsort(-scores[chosen], kind="stable")[:depth]]
