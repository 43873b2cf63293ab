"""How well judged queries are answered, query by query, and what privacy costs of it.

The measures are those of trec_eval, through ir_measures. A private search is compared with what the
original queries find, with the same depth or with as many documents, and with what unrelated
queries find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sottovoce.collections import Collection
from sottovoce.engines.base import Hit, LocalEngine
from sottovoce.errors import UsageError, need
from sottovoce.evaluation.trec import Run
from sottovoce.randomness import Randomness, as_generator
from sottovoce.search.pooling import pool
from sottovoce.search.private_search import PrivateSearch, SearchResult
from sottovoce.search.reranking import Reranker, rerank
from sottovoce.statistics import FINE_SAMPLES, LEVEL, bootstrap_mean

if TYPE_CHECKING:
    from ir_measures.measures import Measure

MEASURES = ("nDCG@10", "P@10", "R@100")
DEPTH = 100

Answer: TypeAlias = Sequence[str] | Mapping[str, float]
"""Document ids, best first; or scores by document id, where ties keep their order."""
Judgments: TypeAlias = Mapping[str, Mapping[str, int]]
"""Grades by query and document; what nobody judged counts as not relevant."""


@dataclass(frozen=True)
class Measured:
    """A measure's value for each query."""

    measure: str
    values: Mapping[str, float]

    @property
    def mean(self) -> float:
        """The mean over the queries; not a number where there is none."""
        return float(np.mean(list(self.values.values()))) if self.values else float("nan")

    def interval(
        self, level: float = LEVEL, samples: int = FINE_SAMPLES, seed: int = 0
    ) -> tuple[float, float]:
        """A bootstrap interval of the mean: what other queries of this kind might have given."""
        return bootstrap_mean(np.array(list(self.values.values())), level, samples, seed)


def effectiveness(
    run: Mapping[str, Answer],
    judgments: Judgments,
    measures: Sequence[str] = MEASURES,
    threshold: int = 1,
) -> dict[str, Measured]:
    """Measure the answers to the judged queries; a query without an answer counts as 0.

    ``threshold`` is the least grade that P and R take for relevant. A query of which no judged
    document is relevant cannot be answered at all, and is left out.
    """
    ir_measures = _ir_measures()
    parsed = {name: _measure(name, threshold) for name in measures}
    scores = {query: _descending(answer) for query, answer in run.items()}
    metrics = ir_measures.iter_calc(list(parsed.values()), judgments, scores)
    values = {(metric.measure, metric.query_id): float(metric.value) for metric in metrics}
    measured = {}
    for name, measure in parsed.items():
        queries = _answerable(judgments, measure.params.get("rel", 1))
        measured[name] = Measured(name, {query: values[measure, query] for query in queries})
    return measured


def pooled_recall(
    pools: Mapping[str, Iterable[str]], judgments: Judgments, threshold: int = 1
) -> Measured:
    """The share of the relevant documents that the pool of each query holds.

    A pool of N answers of K documents may hold N times as many as one answer: compare it with
    :func:`depth_matched`, not only with the original query at depth K.
    """
    values = {}
    for query, relevant in _answerable(judgments, threshold).items():
        values[query] = len(relevant.intersection(pools.get(query, ()))) / len(relevant)
    return Measured("pooled recall", values)


def _answerable(judgments: Judgments, threshold: int) -> dict[str, set[str]]:
    """The relevant documents of each query that has some."""
    if threshold < 1:
        raise UsageError(f"grade 0 is not relevant: the threshold is at least 1, got {threshold}")
    relevant = {
        query: {document for document, grade in grades.items() if grade >= threshold}
        for query, grades in judgments.items()
    }
    return {query: documents for query, documents in relevant.items() if documents}


def _descending(answer: Answer) -> dict[str, float]:
    """Scores that fall from place to place: trec_eval would order ties by document id."""
    order: Sequence[str]
    if isinstance(answer, Mapping):
        order = sorted(answer, key=lambda document: -answer[document])
    else:
        order = list(dict.fromkeys(answer))
    return {document: float(-place) for place, document in enumerate(order)}


def _measure(name: str, threshold: int) -> Measure:
    try:
        measure: Measure = _ir_measures().parse_measure(name)
    except (NameError, ValueError):
        raise UsageError(
            f"no measure '{name}': write one as ir_measures does, such as {', '.join(MEASURES)}"
        ) from None
    takes_threshold = "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params
    return measure(rel=threshold) if takes_threshold else measure


def cutoff(measure: str) -> int | None:
    """How many documents a measure looks at; None: all."""
    depth = _measure(measure, 1).params.get("cutoff")
    return None if depth is None else int(depth)


def _ir_measures() -> Any:
    return need("ir_measures", "evaluation", "measuring effectiveness needs an extra")


# What the original queries find.


def no_privacy(
    engine: LocalEngine, queries: Mapping[str, str], reranker: Reranker, depth: int = DEPTH
) -> dict[str, dict[str, float]]:
    """The answers to the original queries (text by id), as deep as one variant's, re-ranked."""
    return depth_matched(engine, queries, reranker, dict.fromkeys(queries, depth))


def depth_matched(
    engine: LocalEngine, queries: Mapping[str, str], reranker: Reranker, depths: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """The answers to the original queries, each as deep as the pool it is compared with.

    A pool of many answers is larger than one answer; without this, finding more documents would
    look like finding better ones.
    """
    deepest = max((depths[query_id] for query_id in queries), default=0)
    answers = engine.search(list(queries.values()), deepest)
    run = {}
    for (query_id, query), hits in zip(queries.items(), answers, strict=True):
        run[query_id] = _reranked(query, [hits[: depths[query_id]]], engine, reranker)
    return run


def _reranked(
    query: str, answers: Sequence[Sequence[Hit]], engine: LocalEngine, reranker: Reranker
) -> dict[str, float]:
    """The documents of several answers, scored by the query itself."""
    pooled = pool(answers)
    texts = [engine.text(document.doc_id) for document in pooled]
    return {hit.doc_id: hit.score for hit in rerank(query, pooled, reranker, texts)}


# A private search beside the same search without privacy.


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
    rng: Randomness = None,
) -> Quality:
    """What ``n`` random queries find instead: how much is owed to a small collection alone."""
    generator, run = as_generator(rng), {}
    for query_id, query in judged(collection).items():
        sent = [others[place] for place in generator.choice(len(others), n, replace=False)]
        run[query_id] = _reranked(query, engine.search(sent, depth), engine, reranker)
    return _quality(run, collection)


def judged(collection: Collection) -> dict[str, str]:
    """The queries of a collection that are judged, by id; refuses one that has none."""
    queries = {key: text for key, text in collection.queries.items() if key in collection.judgments}
    if not queries:
        raise UsageError(
            f"collection '{collection.name}' has no judged queries: nothing can be measured on it"
        )
    return queries


def _quality(run: Run, collection: Collection) -> Quality:
    judgments = {query: collection.judgments[query] for query in run}
    measured = effectiveness(run, judgments, ("nDCG@10", "P@10"))
    return Quality(
        ndcg=measured["nDCG@10"],
        precision=measured["P@10"],
        recall=pooled_recall(run, judgments),
        pool=sum(map(len, run.values())) / len(run),
    )
