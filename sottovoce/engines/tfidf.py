"""TF-IDF in memory: the cosine between the weighted words of a query and of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from sottovoce.collections import Document
from sottovoce.engines.base import Hit
from sottovoce.engines.bm25 import _UNITS, BM25
from sottovoce.engines.documents import snippet
from sottovoce.types import Float64Array, IntArray


class TfIdf(BM25):
    """Cosine of tf-idf (SMART's lnc.ntc), over English stems without function words.

    A document's word weighs 1 + ln tf, a query's word tf * idf with idf = ln(1 + N / df); both are
    divided by their length, sqrt(sum of squares). Words that no document holds are left out of the
    query. Words, postings and exact ties are those of :class:`BM25`; only the weights differ.
    """

    name = "tfidf"

    def __init__(self, documents: Iterable[Document]) -> None:
        super().__init__(documents)

    def _index(self, terms: IntArray, lengths: IntArray) -> None:
        size = max(len(self), 1)
        place = np.repeat(np.arange(len(self), dtype=np.int64), lengths)
        keys, tf = np.unique(terms * size + place, return_counts=True)
        term, self._docs = np.divmod(keys, size)
        df = np.bincount(term, minlength=len(self._terms))
        self._idf: Float64Array = np.log1p(size / np.maximum(df, 1))
        weights = 1 + np.log(tf)
        norms = np.sqrt(np.bincount(self._docs, weights**2, minlength=size))
        weights *= self._idf[term] / norms[self._docs]
        self._weights = np.maximum(np.rint(weights * _UNITS), 1).astype(np.int64)
        self._edges: list[int] = [0, *np.cumsum(df).tolist()]

    def __repr__(self) -> str:
        return f"TfIdf({len(self)} documents)"

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents of each query, best first; ties by document order."""
        lengths = [self._length(terms) for terms in self._known(queries)]
        answers = zip(super().search(queries, depth), lengths, strict=True)
        return [[self._cosine(hit, length) for hit in hits] for hits, length in answers]

    def _length(self, terms: list[int]) -> float:
        """The length of a query's vector."""
        counts = Counter(terms)
        weights = self._idf[list(counts)] * list(counts.values())
        return float(np.sqrt(np.sum(weights**2)))

    def _cosine(self, hit: Hit, length: float) -> Hit:
        text = self._texts[self._place(hit.doc_id)]
        return hit._replace(score=hit.score / length, snippet=snippet(text))
