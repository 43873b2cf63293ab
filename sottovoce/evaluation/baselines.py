"""What the original query would have found: runs that a private search is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from sottovoce.engines.base import LocalEngine
from sottovoce.search.pooling import pool
from sottovoce.search.reranking import Reranker, rerank

DEPTH = 100


def no_privacy(
    engine: LocalEngine, queries: Mapping[str, str], reranker: Reranker, depth: int = DEPTH
) -> dict[str, dict[str, float]]:
    """The answers to the original queries (text by id), as deep as one variant's, re-ranked."""
    return depth_matched(engine, queries, reranker, dict.fromkeys(queries, depth))


def depth_matched(
    engine: LocalEngine,
    queries: Mapping[str, str],
    reranker: Reranker,
    depths: Mapping[str, int],
) -> dict[str, dict[str, float]]:
    """The answers to the original queries, each as deep as the pool it is compared with.

    A pool of many answers is larger than one answer; without this, finding more documents would
    look like finding better ones.
    """
    deepest = max((depths[query_id] for query_id in queries), default=0)
    answers = engine.search(list(queries.values()), deepest)
    run = {}
    for (query_id, query), hits in zip(queries.items(), answers, strict=True):
        found = pool([hits[: depths[query_id]]])
        texts = [engine.text(document.doc_id) for document in found]
        ranked = rerank(query, found, reranker, texts)
        run[query_id] = {document.doc_id: document.score for document in ranked}
    return run
