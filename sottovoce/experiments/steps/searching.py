"""Search, pool, re-rank, measure: the variants, and the original queries beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from sottovoce.collections import Collection
from sottovoce.engines.base import LocalEngine
from sottovoce.evaluation import depth_matched, effectiveness, no_privacy, pooled_recall
from sottovoce.evaluation.trec import Run
from sottovoce.experiments.description import Searching, Utility
from sottovoce.experiments.jobs import Baseline, Search
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf
from sottovoce.experiments.steps.drawing import Variants
from sottovoce.experiments.steps.originals import ById, Originals
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH, make_table
from sottovoce.search.boundary import Boundary
from sottovoce.search.pooling import Pooled, pool
from sottovoce.search.reranking import load_reranker, rerank

SENT_AT_A_TIME = 1000
"""Variants whose answers are held at once."""


class Searches:
    """All searches of a process. What hundreds of them share is computed once."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.originals = lru_cache(None)(self._originals)
        self.reranker = lru_cache(None)(self._reranker)

    def private(self, job: Search, variants: Variants) -> Product:
        """The variants' pools, and the original queries looked at as deeply as those are large."""
        source, kept = job.source, job.searching.kept
        collection = self.shelf.collection(source.collection)
        queries = self.shelf.queries(source.collection)
        engine = self.shelf.engine(source.collection, job.engine)
        reranker = self.reranker(source.collection, job.reranker)
        run: dict[str, dict[str, float]] = {}
        for query, found in pools(engine, variants, job.searching):
            ranked = rerank(queries[query], found, reranker, [each.doc_id for each in found])
            run[query] = {each.doc_id: each.score for each in ranked}
        deep = depth_matched(
            self.originals(source.collection, job.engine),
            queries,
            reranker,
            {query: len(found) for query, found in run.items()},
        )
        setting = (
            *(collection.name, without_path(job.engine), without_path(job.reranker)),
            *(source.mechanism, source.epsilon, source.release, source.n, source.seed),
        )
        rows = [
            (*setting, system, *value)
            for system, answers in ((PRIVATE, run), (SAME_DEPTH, deep))
            for value in measured(answers, collection, job.utility, kept)
        ]
        return Product("queries", make_table("queries", rows), run=_best(run, kept))

    def baseline(self, job: Baseline) -> Product:
        """The original queries, as deep as one answer."""
        collection = self.shelf.collection(job.collection)
        run = no_privacy(
            self.originals(job.collection, job.engine),
            self.shelf.queries(job.collection),
            self.reranker(job.collection, job.reranker),
            job.searching.depth,
        )
        place = (collection.name, without_path(job.engine), without_path(job.reranker))
        setting = (*place, "", None, "", 0, 0)
        rows = [
            (*setting, NO_PRIVACY, *value)
            for value in measured(run, collection, job.utility, job.searching.kept)
        ]
        return Product("queries", make_table("queries", rows), run=_best(run, job.searching.kept))

    def _originals(self, collection: str, engine: str) -> Originals:
        queries = self.shelf.queries(collection)
        return Originals(self.shelf.engine(collection, engine), list(queries.values()))

    def _reranker(self, collection: str, name: str) -> ById:
        queries = self.shelf.queries(collection)
        documents = self.shelf.collection(collection).documents
        return ById(load_reranker(name), documents, queries=len(queries))


def pools(
    engine: LocalEngine, variants: Variants, searching: Searching
) -> Iterator[tuple[str, list[Pooled]]]:
    """Each query with its pool; the variants of many queries are searched in one call."""
    boundary = Boundary(engine)
    sent = {query: boundary.check(texts).queries for query, texts in variants.items()}
    for some in _portions(sent):
        distinct = list(dict.fromkeys(variant for query in some for variant in sent[query]))
        answers = dict(zip(distinct, engine.search(distinct, searching.depth), strict=True))
        for query in some:
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


def measured(
    run: Run, collection: Collection, utility: Utility, kept: int
) -> Iterable[tuple[str, str, float]]:
    """Query, measure and value: of what is kept of each answer, then of the whole pools."""
    judgments = {query: collection.judgments[query] for query in run}
    for name, found in effectiveness(_best(run, kept), judgments, utility.measures).items():
        for query, value in found.values.items():
            yield query, name, value
    for threshold in utility.thresholds:
        for query, value in pooled_recall(run, judgments, threshold).values.items():
            yield query, f"pooled recall(rel={threshold})", value
    for query in pooled_recall(run, judgments).values:
        yield query, "pool", float(len(run[query]))


def _best(run: Run, kept: int) -> dict[str, dict[str, Any]]:
    """The first ``kept`` documents of each ranking."""
    return {query: dict(islice(scores.items(), kept)) for query, scores in run.items()}
