"""TF-IDF in memory: the cosine between the weighted words of a query and of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from sottovoce.engines.base import Hit
from sottovoce.engines.lexical import Lexical
from sottovoce.types import Float64Array, IntArray


class TfIdf(Lexical):
    """Cosine of tf-idf (SMART's lnc.ntc), over English stems without function words.

    A document's word weighs 1 + ln tf, a query's word tf * idf with idf = ln(1 + N / df); both are
    divided by their length, sqrt(sum of squares). Words that no document holds are left out of the
    query. Words, postings and ties are those of :class:`Lexical`; only the weights are its own.
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

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents of each query, best first; ties by document order."""
        lengths = [self._length(terms) for terms in self._known(queries)]
        answers = zip(super().search(queries, depth), lengths, strict=True)
        return [
            [hit._replace(score=hit.score / length) for hit in hits] for hits, length in answers
        ]

    def _length(self, terms: list[int]) -> float:
        """The length of a query's vector."""
        counts = Counter(terms)
        weights = self._idf[list(counts)] * list(counts.values())
        return float(np.sqrt(np.sum(weights**2)))
