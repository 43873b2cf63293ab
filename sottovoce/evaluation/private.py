"""What privacy costs: a private search beside the same search without it, query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from sottovoce.collections import Collection
from sottovoce.engines.base import LocalEngine
from sottovoce.errors import UsageError
from sottovoce.evaluation.baselines import depth_matched, no_privacy
from sottovoce.evaluation.effectiveness import Measured, effectiveness, pooled_recall
from sottovoce.search.pooling import pool
from sottovoce.search.private_search import PrivateSearch, SearchResult
from sottovoce.search.reranking import Reranker, rerank

RERANKED = ("nDCG@10", "P@10")


@dataclass(frozen=True)
class Quality:
    """How good the answers of one setting are."""

    ndcg: Measured
    precision: Measured
    recall: Measured
    """The share of the relevant documents that are anywhere in the pool."""
    pool: float
    """Documents in a pool, on average."""


def without_privacy(
    collection: Collection, engine: LocalEngine, reranker: Reranker, depth: int
) -> Quality:
    """What the true queries find."""
    return _quality(no_privacy(engine, judged(collection), reranker, depth), collection)


def with_more_depth(
    collection: Collection, engine: LocalEngine, reranker: Reranker, pools: Mapping[str, int]
) -> Quality:
    """What the true queries find if looked at as deeply as a pool is large."""
    return _quality(depth_matched(engine, judged(collection), reranker, pools), collection)


def with_privacy(
    collection: Collection,
    search: PrivateSearch,
    look: Callable[[SearchResult], object] | None = None,
) -> Quality:
    """What a private search finds; ``look`` sees the result of each query."""
    queries = judged(collection)
    run = {}
    results = search.obfuscator.obfuscate(queries.values())
    for query_id, result in zip(queries, results, strict=True):
        answer = search.answer(result, None)
        if look is not None:
            look(answer)
        run[query_id] = {hit.doc_id: hit.score for hit in answer.hits}
    return _quality(run, collection)


def with_unrelated_queries(
    collection: Collection,
    engine: LocalEngine,
    reranker: Reranker,
    others: Sequence[str],
    n: int,
    depth: int,
    rng: Generator,
) -> Quality:
    """What ``n`` random queries find instead: how much is owed to a small collection alone."""
    run = {}
    for query_id, query in judged(collection).items():
        sent = [others[place] for place in rng.choice(len(others), n, replace=False)]
        found = pool(engine.search(sent, depth))
        ranked = rerank(query, found, reranker, [engine.text(each.doc_id) for each in found])
        run[query_id] = {hit.doc_id: hit.score for hit in ranked}
    return _quality(run, collection)


def judged(collection: Collection) -> dict[str, str]:
    """The queries of a collection that are judged, by id; refuses one that has none."""
    queries = {key: text for key, text in collection.queries.items() if key in collection.judgments}
    if not queries:
        raise UsageError(
            f"collection '{collection.name}' has no judged queries: nothing can be measured on it"
        )
    return queries


def _quality(run: Mapping[str, Mapping[str, float]], collection: Collection) -> Quality:
    judgments = {query: collection.judgments[query] for query in run}
    measured = effectiveness(run, judgments, RERANKED)
    return Quality(
        ndcg=measured["nDCG@10"],
        precision=measured["P@10"],
        recall=pooled_recall(run, judgments),
        pool=sum(map(len, run.values())) / len(run),
    )
