"""Search, pool, re-rank, measure: the variants, and the original queries beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from sottovoce.collections import Collection, Document
from sottovoce.encoders import Encoder, corpus_vectors
from sottovoce.encoders.base import query_side
from sottovoce.engines.base import Documents, Hit, LocalEngine
from sottovoce.evaluation.search_quality import (
    depth_matched,
    effectiveness,
    no_privacy,
    pooled_recall,
)
from sottovoce.evaluation.trec import Run
from sottovoce.experiments.cells.draw import Variants
from sottovoce.experiments.grid import Baseline, Search
from sottovoce.experiments.measures import POOL, Measure
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.schema.experiment import Searching, Utility
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH, make_table
from sottovoce.search.boundary import Boundary
from sottovoce.search.pooling import Pooled, pool
from sottovoce.search.reranking import EncoderReranker, Reranker, load_reranker, rerank
from sottovoce.types import Float32Array, Float64Array

Measured: TypeAlias = tuple[str, Measure, float]
"""Query, measure, value."""

SENT_AT_A_TIME = 1000
"""Variants whose answers are held at once."""
MOST_SCORES = 50_000_000
"""Scores of queries and documents that are kept (8 bytes each); beyond, pools are scored anew."""
DOCUMENTS_AT_A_TIME = 4096


class Searches:
    """All searches of a process. What hundreds of them share is computed once."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache
        self._originals = lru_cache(None)(self._engine_of_originals)
        self._reranker = lru_cache(None)(self._reranker_by_id)

    def private(self, job: Search, variants: Variants) -> CellResult:
        """The variants' pools, and the original queries looked at as deeply as those are large."""
        source, kept = job.source, job.searching.kept
        collection = self._cache.collection(source.collection)
        queries = self._cache.queries(source.collection)
        engine = self._cache.engine(source.collection, job.engine)
        reranker = self._reranker(source.collection, job.reranker)
        run: dict[str, dict[str, float]] = {}
        for query, pooled in pools(engine, variants, job.searching):
            ranked = rerank(queries[query], pooled, reranker, [hit.doc_id for hit in pooled])
            run[query] = {hit.doc_id: hit.score for hit in ranked}
        originals = self._originals(source.collection, job.engine)
        depths = {query: len(scores) for query, scores in run.items()}
        deep = depth_matched(originals, queries, reranker, depths)
        setting = (
            *(collection.name, without_path(job.engine), without_path(job.reranker)),
            *(source.mechanism, source.epsilon, source.release, source.n, source.seed),
        )
        rows = [
            (*setting, system, query, measure.label, value)
            for system, answers in ((PRIVATE, run), (SAME_DEPTH, deep))
            for query, measure, value in measured(answers, collection, job.utility, kept)
        ]
        return CellResult("queries", make_table("queries", rows), run=_best(run, kept))

    def baseline(self, job: Baseline) -> CellResult:
        """The original queries, as deep as one answer."""
        collection, kept = self._cache.collection(job.collection), job.searching.kept
        queries = self._cache.queries(job.collection)
        originals = self._originals(job.collection, job.engine)
        reranker = self._reranker(job.collection, job.reranker)
        run = no_privacy(originals, queries, reranker, job.searching.depth)
        place = (collection.name, without_path(job.engine), without_path(job.reranker))
        rows = [
            (*place, "", None, "", 0, 0, NO_PRIVACY, query, measure.label, value)
            for query, measure, value in measured(run, collection, job.utility, kept)
        ]
        return CellResult("queries", make_table("queries", rows), run=_best(run, kept))

    def _engine_of_originals(self, collection: str, engine: str) -> OriginalsEngine:
        queries = self._cache.queries(collection)
        return OriginalsEngine(self._cache.engine(collection, engine), list(queries.values()))

    def _reranker_by_id(self, collection: str, name: str) -> RerankerById:
        queries = self._cache.queries(collection)
        documents = self._cache.collection(collection).documents
        return RerankerById(load_reranker(name), documents, queries=len(queries))


def pools(
    engine: LocalEngine, variants: Variants, searching: Searching
) -> Iterator[tuple[str, list[Pooled]]]:
    """Each query with its pool; the variants of many queries are searched in one call."""
    boundary = Boundary(engine)
    sent = {query: boundary.check(texts).queries for query, texts in variants.items()}
    for portion in _portions(sent):
        distinct = list(dict.fromkeys(variant for query in portion for variant in sent[query]))
        answers = dict(zip(distinct, engine.search(distinct, searching.depth), strict=True))
        for query in portion:
            yield query, pool([answers[variant] for variant in sent[query]], searching.pooling)


def _portions(sent: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Queries, as many at a time as have a bounded number of variants together."""
    portion: list[str] = []
    size = 0
    for query, variants in sent.items():
        if portion and size + len(variants) > SENT_AT_A_TIME:
            yield portion
            portion, size = [], 0
        portion.append(query)
        size += len(variants)
    if portion:
        yield portion


def measured(run: Run, collection: Collection, utility: Utility, kept: int) -> Iterator[Measured]:
    """What is kept of each answer, measured; then the whole pools."""
    judgments = {query: collection.judgments[query] for query in run}
    for name, by_query in effectiveness(_best(run, kept), judgments, utility.measures).items():
        for query, value in by_query.values.items():
            yield query, Measure("answers", name), value
    for threshold in utility.thresholds:
        for query, value in pooled_recall(run, judgments, threshold).values.items():
            yield query, Measure("pooled recall", str(threshold)), value
    for query in pooled_recall(run, judgments).values:
        yield query, POOL, float(len(run[query]))


def _best(run: Run, kept: int) -> dict[str, dict[str, Any]]:
    """The first ``kept`` documents of each ranking."""
    return {query: dict(islice(scores.items(), kept)) for query, scores in run.items()}


# Caches: what depends on the original queries alone. Documents go by their ids instead of texts.


class OriginalsEngine:
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
        """The id, for :class:`RerankerById`."""
        return doc_id

    def __repr__(self) -> str:
        return f"OriginalsEngine({len(self._queries)} queries, depth {self._depth})"


class RerankerById:
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
        self._keeps_scores = queries * len(self._documents) <= MOST_SCORES
        self._all_scores = lru_cache(None)(self._scores_of_all)

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """The score of each document; ``texts`` are their ids."""
        if self._encoder is None:
            return self._reranker.scores(query, [self._documents.text(doc) for doc in texts])
        places = np.array([self._documents.place(doc) for doc in texts], dtype=np.int64)
        if self._keeps_scores:
            return self._all_scores(query)[places]
        return _products(self._vectors[places], _vector(self._encoder, query))

    def _scores_of_all(self, query: str) -> Float64Array:
        assert self._encoder is not None  # noqa: S101 - asked before
        vector, step = _vector(self._encoder, query), DOCUMENTS_AT_A_TIME
        starts = range(0, len(self._vectors), step)
        return np.concatenate(
            [_products(self._vectors[start : start + step], vector) for start in starts]
        )

    def __repr__(self) -> str:
        return f"RerankerById({self._reranker!r})"


def _vector(encoder: Encoder, query: str) -> Float64Array:
    return np.asarray(query_side(encoder).encode([query])[0], dtype=np.float64)


def _products(vectors: Float32Array, vector: Float64Array) -> Float64Array:
    """As re-rankers compute them, row by row: the same for any number of rows."""
    return np.asarray((vectors.astype(np.float64) * vector).sum(axis=1))
