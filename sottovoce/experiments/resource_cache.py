"""What the cells of a process share: each collection, engine, space, log, … loaded once."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

from sottovoce.collections import load_collection
from sottovoce.encoders import Encoder
from sottovoce.engines import choose_engine
from sottovoce.engines.base import LocalEngine
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.data import Task, judged_questions, read_task
from sottovoce.evaluation.search_quality import judged
from sottovoce.experiments.schema.experiment import FROM_COLLECTION, Texts
from sottovoce.mechanisms import Mechanism, parse
from sottovoce.mechanisms.build import build, has_epsilon, resource_kind
from sottovoce.privacy.attacks.query_log import QueryLog, read_log
from sottovoce.privacy.word_samples import sample_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Float32Array, IntArray, Progress

MECHANISMS_KEPT = 8
TASKS_KEPT = 2
CANDIDATES = 30
"""Answers to choose from for a question of a collection, at most."""


class ResourceCache:
    """Everything that a job names, loaded when it is first asked for, and kept."""

    def __init__(self) -> None:
        self.collection = lru_cache(None)(load_collection)
        self.engine = lru_cache(None)(self._engine)
        self.sample = lru_cache(None)(self._sample)
        self.log = lru_cache(None)(_Log)
        self.task = lru_cache(TASKS_KEPT)(_task)
        self.mechanism = lru_cache(MECHANISMS_KEPT)(self._mechanism)
        self._opened = lru_cache(None)(_open)

    def queries(self, collection: str) -> dict[str, str]:
        """The judged queries of a collection by id, in its order."""
        return judged(self.collection(collection))

    def resource(self, kind: str, texts: Texts) -> Any:
        """What mechanisms with these texts have in the field of this name."""
        return self._opened(kind, tuple(texts.settings(kind).items()))

    def space(self, texts: Texts) -> WordSpace:
        """The word space, with the words of it that may be released."""
        return cast("WordSpace", self.resource("space", texts))

    def _sample(self, texts: Texts, count: int) -> IntArray:
        """Words of the space, of all kinds, always the same ones."""
        return sample_words(self.space(texts), count)

    def _engine(self, collection: str, spec: str) -> LocalEngine:
        engine = choose_engine(spec, self.collection(collection).documents)
        if not isinstance(engine, LocalEngine):
            raise UsageError(
                "an experiment searches documents on this machine: name bm25, tfidf or dense"
            )
        return engine

    def _mechanism(
        self, spec: str, epsilon: float | None, texts: Texts, collection: str | None = None
    ) -> Mechanism:
        """The mechanism of a spec; one that asks an engine gets BM25 over the collection.

        What the spec says stands: ``epsilon`` may be the value of another parameter in it.
        """
        kind_of_mechanism, arguments = parse(spec)
        takes_epsilon = has_epsilon(kind_of_mechanism) and "epsilon" not in arguments
        parameters = {"epsilon": epsilon} if takes_epsilon and epsilon is not None else {}
        provided: dict[str, Callable[[], Any]] = {
            kind: partial(self.resource, kind, texts)
            for kind in kind_of_mechanism.resources()
            if kind not in FROM_COLLECTION
        }
        if collection is not None:
            provided |= {kind: partial(self.engine, collection, "bm25") for kind in FROM_COLLECTION}
        return build(spec, parameters, provided=provided)


def pipeline(texts: Texts, mechanism: Mechanism) -> TextPipeline:
    """How texts are cut; by default the mechanism's paper says what is protected."""
    cut = TextPipeline(
        unknown=texts.unknown,
        protect=texts.protect or mechanism.protects,
        unprotected=texts.unprotected,
        phrases=texts.phrases,
    )
    if not mechanism.by_word:
        return cut
    return cut.laid_out(shuffle=texts.order == "shuffled", pad_to=texts.pad_to)


def _open(kind: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    return resource_kind(kind).open(dict(settings))


def _task(file: str, limit: int | None) -> Task:
    """A task in a file; of a collection's folder, the ranking of its judged documents."""
    task: Task
    if os.path.isdir(file):
        task = judged_questions(load_collection(file), candidates=CANDIDATES)
    else:
        task = read_task(file)
    return task if limit is None else task.sample(limit)


class _Log(QueryLog):
    """A log whose vectors are looked for once: finding them takes a hash of all queries."""

    def __init__(self, file: str) -> None:
        super().__init__(read_log(file))
        self._by_encoder: dict[str, Float32Array] = {}

    def vectors(self, encoder: Encoder, progress: Progress | None = None) -> Float32Array:
        if encoder.name not in self._by_encoder:
            self._by_encoder[encoder.name] = super().vectors(encoder, progress)
        return self._by_encoder[encoder.name]
