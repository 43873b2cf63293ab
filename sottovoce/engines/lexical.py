"""BM25 and TF-IDF in memory: exact, deterministic, quick for many short queries.

A term's weight in a document is rounded to a multiple of 2^-24. Sums of weights are then sums of
whole numbers: the same in any order, so that equal documents tie and ties go by document order.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from sottovoce.collections import Document
from sottovoce.engines.base import DocumentEngine, whole_text
from sottovoce.errors import UsageError
from sottovoce.text.words import ENGLISH, LANGUAGES, content_words, stems
from sottovoce.types import Float64Array, IntArray

UNITS = float(1 << 24)
_CELLS_AT_A_TIME = 1 << 20


class Lexical(DocumentEngine):
    """Ranks documents by the sum of the weights of the query's words, over stems of a language.

    ``language`` is the documents' and the queries'. Words, postings, exact sums and
    ties are the same for all lexical engines; the weights are their own.
    """

    uses_order = False

    def __init__(self, documents: Iterable[Document], language: str = ENGLISH) -> None:
        if language not in LANGUAGES:
            raise UsageError(f"unknown language of documents: use {', '.join(LANGUAGES)}")
        super().__init__(documents)
        self.language = language
        if language != ENGLISH:
            self.name = f"{self.name}:{language}"
        self._terms: dict[str, int] = {}
        ids: dict[str, int] = {}  # The term of each word: words are stemmed once.
        terms, lengths = array("q"), array("q")
        for document in self._documents:
            words = content_words(whole_text(document), language)
            new = [word for word in dict.fromkeys(words) if word not in ids]
            for word, stem in zip(new, stems(new, language), strict=True):
                ids[word] = self._terms.setdefault(stem, len(self._terms))
            terms.extend([ids[word] for word in words])
            lengths.append(len(words))
        self._index(np.asarray(terms, dtype=np.int64), np.asarray(lengths, dtype=np.int64))

    def _index(self, terms: IntArray, lengths: IntArray) -> None:
        """Make the postings out of the terms of all documents, one document after the other."""
        size = max(len(self), 1)
        place = np.repeat(np.arange(len(self), dtype=np.int64), lengths)
        # One posting for each pair (term, document), sorted; tf is how often the pair occurs.
        keys, tf = np.unique(terms * size + place, return_counts=True)
        term, self._docs = np.divmod(keys, size)
        # The postings of term t are those from edges[t] to edges[t + 1].
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

    def ranked(self, queries: Sequence[str], depth: int) -> Iterator[tuple[IntArray, Float64Array]]:
        """Places and scores of the best documents of each query, best first; ties by place."""
        if depth < 0:
            raise UsageError(f"depth cannot be negative, got {depth}")
        for terms in self._indexed(queries):
            places, scores = self._scores(terms)
            best = _best(scores, depth)
            yield places[best], scores[best] / UNITS

    def ranks(self, queries: Sequence[str], doc_ids: Sequence[str], depth: int) -> IntArray:
        """The rank (from 1) of each document for each query; 0 where it is not in the best.

        Queries that share all but their rarest word are counted together: the scores of what they
        share are sorted once, and only documents that hold the rarest word are looked at anew.
        """
        ranks = np.zeros((len(queries), len(doc_ids)), dtype=np.int64)
        targets = np.array([self._documents.place(doc_id) for doc_id in doc_ids], dtype=np.int64)
        terms = [self._rarest_last(query_terms) for query_terms in self._indexed(queries)]
        self._check_keys(max(map(len, terms), default=0))
        # Sorted, queries that share all but their rarest word follow each other.
        rows = sorted((row for row in range(len(terms)) if terms[row]), key=terms.__getitem__)
        for shared, group in groupby(rows, key=lambda row: terms[row][:-1]):
            for members in self._portions(group, terms, len(targets)):
                rarest = [terms[row][-1] for row in members]
                ranks[members] = self._ranks(shared, rarest, targets)
        ranks[ranks > depth] = 0
        return ranks

    def _ranks(self, shared: tuple[int, ...], rarest: list[int], targets: IntArray) -> IntArray:
        """Ranks for the queries ``shared`` + one of ``rarest``, (len(rarest), len(targets)).

        A document's key is its score followed by its place counted from the end: the greater key
        ranks first, ties included, and no two keys are equal. Keys below ``size`` have no score.
        """
        size = len(self)
        # The key of each document for the shared terms alone, and all keys with a score, sorted.
        keys = np.arange(size - 1, -1, -1, dtype=np.int64)
        for term in shared:
            shared_docs, weights = self._postings(term)
            keys[shared_docs] += weights * size
        scored = np.sort(keys[keys >= size])

        # The postings of all rarest terms end to end: the document, how much its key gains by the
        # rarest term, and for which query.
        postings = [self._postings(term) for term in rarest]
        docs = np.concatenate([docs for docs, _ in postings])
        gains = np.concatenate([weights for _, weights in postings]) * size
        counts = [len(docs) for docs, _ in postings]
        query = np.repeat(np.arange(len(rarest), dtype=np.int64), counts)

        # The final key of each target for each query: it gains if it has a posting there. The
        # pairs (query, document) are sorted, so that a binary search finds the posting.
        pairs = query * size + docs
        target_pairs = np.arange(len(rarest), dtype=np.int64)[:, None] * size + targets
        at = np.minimum(np.searchsorted(pairs, target_pairs), len(pairs) - 1)
        bars = keys[targets] + np.where(pairs[at] == target_pairs, gains[at], 0)

        # Documents above a target by the shared terms alone ...
        above = len(scored) - np.searchsorted(scored, bars, side="right")
        # ... and those that only their gain lifts above it, counted query by query.
        before = keys[docs][:, None]
        risen = (before <= bars[query]) & (before + gains[:, None] > bars[query])
        starts = np.concatenate(([0], np.cumsum(counts[:-1], dtype=np.int64)))
        above += np.add.reduceat(risen, starts, axis=0, dtype=np.int64)
        # A target without a score is not found at all.
        return np.where(bars >= size, above + 1, 0)

    def _check_keys(self, words: int) -> None:
        """Refuse queries of so many words that a key could exceed 64 bits."""
        most = (1 << 63) // (int(self._weights.max(initial=1)) * max(len(self), 1))
        if words >= most:
            raise UsageError(f"ranks takes queries of fewer than {most} words: use search")

    def _portions(
        self, rows: Iterable[int], terms: list[tuple[int, ...]], targets: int
    ) -> Iterator[list[int]]:
        """Cut rows into lists whose rarest words have a bounded number of postings together."""
        portion: list[int] = []
        cells = 0
        for row in rows:
            span = self._span(terms[row][-1])
            portion.append(row)
            cells += (span.stop - span.start) * targets
            if cells > _CELLS_AT_A_TIME:
                yield portion
                portion, cells = [], 0
        if portion:
            yield portion

    def _indexed(self, queries: Sequence[str]) -> list[list[int]]:
        """The terms of each query that some document holds, repeated where the query does."""
        split = [content_words(query, self.language) for query in queries]
        distinct = list(dict.fromkeys(word for words in split for word in words))
        stemmed = zip(distinct, stems(distinct, self.language), strict=True)
        ids = {word: self._terms[stem] for word, stem in stemmed if stem in self._terms}
        return [[ids[word] for word in words if word in ids] for words in split]

    def _rarest_last(self, terms: list[int]) -> tuple[int, ...]:
        """The terms in an order in which many queries begin alike and end in a short list."""
        edges = self._edges
        return tuple(sorted(terms, key=lambda term: (edges[term] - edges[term + 1], term)))

    def _span(self, term: int) -> slice:
        return slice(self._edges[term], self._edges[term + 1])

    def _postings(self, term: int) -> tuple[IntArray, IntArray]:
        """The documents that hold a term, in order, and what it weighs in each."""
        span = self._span(term)
        return self._docs[span], self._weights[span]

    def _scores(self, terms: list[int]) -> tuple[IntArray, IntArray]:
        """The documents that hold any of the terms, in order, and their scores in units."""
        if len(terms) == 1:
            return self._postings(terms[0])
        nothing = np.zeros(0, dtype=np.int64)
        postings = [self._postings(term) for term in terms] or [(nothing, nothing)]
        docs = np.concatenate([docs for docs, _ in postings])
        weights = np.concatenate([weights for _, weights in postings])
        # Sorted by document, so that the weights of each document can be added up.
        order = np.argsort(docs, kind="stable")
        docs = docs[order]
        first = np.flatnonzero(np.diff(docs, prepend=-1))
        return docs[first], np.add.reduceat(weights[order], first)


class BM25(Lexical):
    """Robertson's BM25, as Lucene has it, over stems without function words.

    idf = ln(1 + (N - df + 0.5) / (df + 0.5)); weight = idf * tf / (tf + k1 * (1 - b + b * length /
    mean length)). A word that occurs twice in a query counts twice.
    """

    name = "bm25"

    def __init__(
        self,
        documents: Iterable[Document],
        k1: float = 0.9,
        b: float = 0.4,
        language: str = ENGLISH,
    ) -> None:
        if not (k1 >= 0 and 0 <= b <= 1):
            raise UsageError(f"k1 must not be negative and b lie between 0 and 1, got {k1}, {b}")
        self.k1, self.b = k1, b
        super().__init__(documents, language)

    def __repr__(self) -> str:
        return f"BM25({len(self)} documents, k1={self.k1:g}, b={self.b:g})"

    def _weigh(self, term: IntArray, tf: IntArray, df: IntArray, lengths: IntArray) -> Float64Array:
        return bm25_weights(df, lengths, self.k1, self.b)(term, tf, self._docs)


def bm25_weights(
    df: IntArray, lengths: IntArray, k1: float, b: float
) -> Callable[[IntArray, IntArray, IntArray], Float64Array]:
    """BM25 in a collection: the weights of terms that occur ``tf`` times in documents."""
    idf = np.log1p((len(lengths) - df + 0.5) / (df + 0.5))
    damping = np.ones(len(lengths))
    if lengths.any():
        damping = k1 * (1 - b + b * lengths / lengths.mean())

    def weigh(term: IntArray, tf: IntArray, docs: IntArray) -> Float64Array:
        return np.asarray(idf[term] * tf / (tf + damping[docs]))

    return weigh


class TfIdf(Lexical):
    """Cosine of tf-idf (SMART's lnc.ntc), over stems without function words.

    A document's word weighs 1 + ln tf, a query's word tf * idf with idf = ln(1 + N / df); both are
    divided by their length, sqrt(sum of squares). Words that no document holds are left out of the
    query.
    """

    name = "tfidf"

    def _weigh(self, term: IntArray, tf: IntArray, df: IntArray, lengths: IntArray) -> Float64Array:
        size = max(len(self), 1)
        self._idf: Float64Array = np.log1p(size / np.maximum(df, 1))
        weights = 1 + np.log(tf)
        norms = np.sqrt(np.bincount(self._docs, weights**2, minlength=size))
        return np.asarray(weights * self._idf[term] / norms[self._docs])

    def __repr__(self) -> str:
        return f"TfIdf({len(self)} documents)"

    def ranked(self, queries: Sequence[str], depth: int) -> Iterator[tuple[IntArray, Float64Array]]:
        lengths = [self._length(terms) for terms in self._indexed(queries)]
        rankings = zip(super().ranked(queries, depth), lengths, strict=True)
        for (places, scores), length in rankings:
            yield places, scores / (length or 1.0)

    def _length(self, terms: list[int]) -> float:
        counts = Counter(terms)
        weights = self._idf[list(counts)] * list(counts.values())
        return float(np.sqrt(np.sum(weights**2)))


def _best(scores: IntArray, depth: int) -> IntArray:
    """Where the ``depth`` best scores are, best first; equal ones in their order."""
    places = np.arange(len(scores), dtype=np.int64)
    if depth < len(scores):
        bar = np.partition(scores, len(scores) - depth)[len(scores) - depth] if depth else 0
        places = np.flatnonzero(scores >= bar)
    return places[np.argsort(-scores[places], kind="stable")[:depth]]
