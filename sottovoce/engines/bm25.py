"""BM25 in memory: exact, deterministic, quick for many short queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sottovoce.collections import Document
from sottovoce.engines.lexical import Lexical
from sottovoce.errors import UsageError
from sottovoce.types import Float64Array, IntArray


class BM25(Lexical):
    """Robertson's BM25, as Lucene has it, over English stems without function words.

    idf = ln(1 + (N - df + 0.5) / (df + 0.5)); weight = idf * tf / (tf + k1 * (1 - b + b * length /
    mean length)). A word that occurs twice in a query counts twice.
    """

    name = "bm25"

    def __init__(self, documents: Iterable[Document], k1: float = 0.9, b: float = 0.4) -> None:
        if not (k1 >= 0 and 0 <= b <= 1):
            raise UsageError(f"k1 must not be negative and b lie between 0 and 1, got {k1}, {b}")
        self.k1, self.b = k1, b
        super().__init__(documents)

    def __repr__(self) -> str:
        return f"BM25({len(self)} documents, k1={self.k1:g}, b={self.b:g})"

    def _weigh(self, term: IntArray, tf: IntArray, df: IntArray, lengths: IntArray) -> Float64Array:
        idf = np.log1p((len(self) - df + 0.5) / (df + 0.5))
        damping = np.ones(len(self))
        if lengths.any():
            damping = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        return np.asarray(idf[term] * tf / (tf + damping[self._docs]))
