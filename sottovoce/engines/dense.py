"""Dense search: exact inner products of sentence vectors, of length 1 or any other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sottovoce.collections import Document
from sottovoce.encoders import Encoder, corpus_vectors, load_encoder
from sottovoce.encoders.base import query_side
from sottovoce.engines.base import DocumentEngine
from sottovoce.engines.vector_engine import Metric, VectorHit, check_depth
from sottovoce.errors import UsageError
from sottovoce.spaces.scan import FloatBound
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

QUERIES_AT_A_TIME, DOCUMENTS_AT_A_TIME = 64, 1 << 16
"""Together the float32 scores that a thread holds at once (16 MB)."""


class Dense(DocumentEngine):
    """Documents by the inner product of their sentence vector and the query's.

    The vectors are computed once and kept on disk. A float32 product with a proven error finds the
    documents that may be among the best; those are scored again in float64, so that the same query
    vector gives the same answer in any batch, and equal documents tie, in document order.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        encoder: str | Encoder = "auto",
        progress: Progress | None = None,
    ) -> None:
        self.encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self.name = f"dense:{self.encoder.name}"
        super().__init__(documents)
        self._use(corpus_vectors(self.encoder, self._documents.texts(), progress))

    def _use(self, vectors: Float32Array) -> None:
        """Search these vectors, of all documents in their order; they may be mapped."""
        self._vectors = vectors
        self._bound = FloatBound(vectors, folded=False)

    def __repr__(self) -> str:
        return f"Dense({len(self)} documents, {self.encoder!r})"

    def ranked(self, queries: Sequence[str], depth: int) -> Iterator[tuple[IntArray, Float64Array]]:
        """Places and scores of the best documents of each query, best first; ties by place.

        A blank query has no direction, and finds nothing.
        """
        if depth < 0:
            raise UsageError(f"depth cannot be negative, got {depth}")
        distinct = list(dict.fromkeys(queries))
        depth = min(depth, len(self))
        rankings = [(np.zeros(0, dtype=np.int64), np.zeros(0))] * len(distinct)
        if distinct and depth:
            points = query_side(self.encoder).encode(distinct)
            starts = range(0, len(points), QUERIES_AT_A_TIME)
            parts = [points[start : start + QUERIES_AT_A_TIME] for start in starts]
            blocks = parallel_map(lambda part: self._block(part, depth), parts)
            rankings = [ranking for block in blocks for ranking in block]
        by_query = dict(zip(distinct, rankings, strict=True))
        yield from (by_query[query] for query in queries)

    # Asked with a vector: a store on this machine (vector_engine.py).

    metric: Metric = "inner"

    @property
    def made_by(self) -> str:
        """The name of its encoder."""
        return self.encoder.name

    def nearest(self, vector: Float32Array, depth: int) -> list[VectorHit]:
        """The best ``depth`` documents of a vector, best first."""
        check_depth(depth)
        if vector.shape != (self.encoder.dimension,):
            raise UsageError(f"ask with a vector of {self.encoder.dimension} numbers")
        ((places, scores),) = self._block(vector[None], min(depth, len(self)))
        hits = self.hits(places, scores)
        return [VectorHit(hit, self._vectors[at]) for hit, at in zip(hits, places, strict=True)]

    def _block(self, points: Float32Array, depth: int) -> list[tuple[IntArray, Float64Array]]:
        """Places and scores of the best documents of each query."""
        near = [_Near(depth, float(slack)) for slack in self._bound.slack(points)]
        for start in range(0, len(self), DOCUMENTS_AT_A_TIME):
            rough = points @ self._vectors[start : start + DOCUMENTS_AT_A_TIME].T
            for one_near, scores in zip(near, rough, strict=True):
                one_near.see(scores, start)
        return [
            self._best(point, one_near.places, depth)
            for point, one_near in zip(points, near, strict=True)
        ]

    def _best(
        self, point: Float32Array, places: IntArray, depth: int
    ) -> tuple[IntArray, Float64Array]:
        """The best of a few documents by their exact scores; none if there is no direction."""
        places = places[: len(places) if point.any() else 0]
        vectors = self._vectors[places].astype(np.float64)
        scores = (vectors * point.astype(np.float64)).sum(axis=1)
        order = np.argsort(-scores, kind="stable")[:depth]
        return places[order], scores[order]


class _Near:
    """The documents that may be among the best of a query, of all that were seen so far.

    One is if its rough score lies no further below the last of the best than the error.
    """

    def __init__(self, depth: int, slack: float) -> None:
        self._depth, self._slack = depth, slack
        self.places: IntArray = np.zeros(0, dtype=np.int64)
        self._scores: Float32Array = np.zeros(0, dtype=np.float32)
        self._floor = -np.inf

    def see(self, scores: Float32Array, start: int) -> None:
        """Take note of the documents from place ``start`` on."""
        new = np.flatnonzero(scores >= self._floor)
        self.places = np.concatenate([self.places, start + new])
        self._scores = np.concatenate([self._scores, scores[new]])
        if len(self._scores) > self._depth:
            last = len(self._scores) - self._depth
            self._floor = np.partition(self._scores, last)[last] - np.float32(self._slack)
            near = self._scores >= self._floor
            self.places, self._scores = self.places[near], self._scores[near]
