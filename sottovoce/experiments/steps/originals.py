"""What depends on the original queries alone: how engines answer them, what documents score.

Both stand in for an engine and a re-ranker where documents go by their ids: scores then need no
texts, and are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from sottovoce.collections import Document
from sottovoce.encoders import Encoder, corpus_vectors
from sottovoce.engines.base import Hit, LocalEngine
from sottovoce.engines.documents import Documents
from sottovoce.search.reranking import EncoderReranker, Reranker
from sottovoce.types import Float32Array, Float64Array

MOST_SCORES = 50_000_000
"""Scores of queries and documents that are kept (8 bytes each); beyond, pools are scored anew."""
DOCUMENTS_AT_A_TIME = 4096


class Originals:
    """An engine that is asked for the same queries again and again, and searches them once."""

    remote = False
    pause = 0.0
    most_queries: int | None = None

    def __init__(self, engine: LocalEngine, queries: Sequence[str]) -> None:
        self.name = engine.name
        self._engine, self._queries = engine, list(dict.fromkeys(queries))
        self._answers: dict[str, list[Hit]] = {}
        self._depth = 0

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents: the beginning of the deepest answer so far."""
        if depth > self._depth:
            self._depth = max(depth, 2 * self._depth)
            answers = self._engine.search(self._queries, self._depth)
            self._answers = {
                query: [Hit(hit.doc_id, hit.score) for hit in hits]
                for query, hits in zip(self._queries, answers, strict=True)
            }
        return [self._answers[query][:depth] for query in queries]

    def text(self, doc_id: str) -> str:
        """The id, for :class:`ById`."""
        return doc_id

    def __repr__(self) -> str:
        return f"Originals({len(self._queries)} queries, depth {self._depth})"


class ById:
    """A re-ranker that takes ids of documents for texts, and scores the texts.

    Encoders give a document the same score in any pool: all scores of a query are computed once.
    """

    def __init__(self, reranker: Reranker, documents: Iterable[Document], queries: int) -> None:
        self.name, self._reranker = reranker.name, reranker
        self._documents = Documents(documents)
        self._encoder: Encoder | None = None
        if isinstance(reranker, EncoderReranker):
            self._encoder = reranker.encoder
            self._vectors = corpus_vectors(self._encoder, self._documents.texts())
        self._keeps = queries * len(self._documents) <= MOST_SCORES
        self._all = lru_cache(None)(self._of_all)

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """The score of each document; ``texts`` are their ids."""
        if self._encoder is None:
            return self._reranker.scores(query, [self._documents.text(each) for each in texts])
        places = np.array([self._documents.place(each) for each in texts], dtype=np.int64)
        if self._keeps:
            return self._all(query)[places]
        return _products(self._vectors[places], self._wanted(query))

    def _of_all(self, query: str) -> Float64Array:
        wanted, step = self._wanted(query), DOCUMENTS_AT_A_TIME
        blocks = range(0, len(self._vectors), step)
        return np.concatenate([_products(self._vectors[at : at + step], wanted) for at in blocks])

    def _wanted(self, query: str) -> Float64Array:
        assert self._encoder is not None  # noqa: S101 - asked before
        return np.asarray(self._encoder.encode([query])[0], dtype=np.float64)

    def __repr__(self) -> str:
        return f"ById({self._reranker!r})"


def _products(vectors: Float32Array, wanted: Float64Array) -> Float64Array:
    """As re-rankers compute them, row by row: the same for any number of rows."""
    return np.asarray((vectors.astype(np.float64) * wanted).sum(axis=1))
