"""What the jobs of a process share: each collection, engine, space, log, … loaded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from sottovoce.collections import Collection, load_collection, read_strings
from sottovoce.encoders import Encoder
from sottovoce.engines import choose_engine
from sottovoce.engines.base import LocalEngine
from sottovoce.errors import UsageError
from sottovoce.evaluation import read_task
from sottovoce.evaluation.downstream.data import Task
from sottovoce.evaluation.search_quality import judged
from sottovoce.experiments.description import Texts
from sottovoce.experiments.naming import without_path
from sottovoce.mechanisms import Mechanism
from sottovoce.mechanisms.build import build, load_resource
from sottovoce.pools import Pool
from sottovoce.privacy import QueryLog, read_log, sample_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Float32Array, IntArray, Progress

MECHANISMS_KEPT = 8
TASKS_KEPT = 2


class Shelf:
    """Everything that a job names, loaded when it is first asked for, and kept."""

    def __init__(self) -> None:
        self.collection = lru_cache(None)(_collection)
        self.engine = lru_cache(None)(self._engine)
        self.space = lru_cache(None)(_space)
        self.sample = lru_cache(None)(self._sample)
        self.pool = lru_cache(None)(_pool)
        self.log = lru_cache(None)(_Log)
        self.task = lru_cache(TASKS_KEPT)(_task)
        self.mechanism = lru_cache(MECHANISMS_KEPT)(self._mechanism)

    def queries(self, collection: str) -> dict[str, str]:
        """The judged queries of a collection by id, in its order."""
        return judged(self.collection(collection))

    def _engine(self, collection: str, spec: str) -> LocalEngine:
        engine = choose_engine(spec, self.collection(collection).documents)
        if not isinstance(engine, LocalEngine):
            raise UsageError(
                "an experiment searches documents on this machine: name bm25, tfidf or dense"
            )
        return engine

    def _sample(self, space: str | None, output_vocabulary: str, count: int) -> IntArray:
        """Words of all kinds, always the same ones."""
        return sample_words(self.space(space, output_vocabulary), count)

    def _mechanism(
        self, spec: str, epsilon: float | None, texts: Texts, collection: str | None = None
    ) -> Mechanism:
        """The mechanism of a spec; one that asks an engine gets BM25 over the collection."""
        parameters = {} if epsilon is None else {"epsilon": epsilon}
        provided: dict[str, Callable[[], Any]] = {
            "space": lambda: self.space(texts.space, texts.output_vocabulary)
        }
        if collection:
            provided["engine"] = lambda: self.engine(collection, "bm25")
        if texts.pool:
            pool = texts.pool
            provided["pool"] = lambda: self.pool(pool, texts.encoder)
        return build(spec, parameters, provided=provided)


def _collection(name: str) -> Collection:
    return load_collection(name)


def _space(name: str | None, output_vocabulary: str) -> WordSpace:
    space = load_resource("space", {"space": name, "output_vocabulary": output_vocabulary})
    return cast("WordSpace", space)


def _pool(source: str, encoder: str) -> Pool:
    return Pool(read_strings(source), encoder, name=without_path(source), source=source)


class _Log(QueryLog):
    """A log whose vectors are looked for once: finding them takes a hash of all queries."""

    def __init__(self, file: str) -> None:
        super().__init__(read_log(file))
        self._found: dict[str, Float32Array] = {}

    def vectors(self, encoder: Encoder, progress: Progress | None = None) -> Float32Array:
        """The vectors of all queries, mapped from disk."""
        if encoder.name not in self._found:
            self._found[encoder.name] = super().vectors(encoder, progress)
        return self._found[encoder.name]


def _task(file: str, limit: int | None) -> Task:
    task = read_task(file)
    return task if limit is None else task.sample(limit)


def pipeline(texts: Texts, mechanism: Mechanism) -> TextPipeline:
    """How texts are cut; by default the mechanism's paper says what is protected."""
    return TextPipeline(
        unknown=texts.unknown,  # type: ignore[arg-type]  # it is checked there
        protect=texts.protect or mechanism.protects,
    )
