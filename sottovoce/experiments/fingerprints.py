"""What decides the result of a cell: its settings, and the content of all that they name.

Two jobs with the same key have the same result, on every machine and wherever files lie. Where a
cell's numbers come from is said in the manifest, by the same facts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.encoders import load_encoder
from sottovoce.engines.base import Documents
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.grid import (
    Audit,
    Baseline,
    Deny,
    Draw,
    Job,
    Leak,
    Learn,
    Neighbours,
    Samples,
    Search,
)
from sottovoce.experiments.naming import without_path, without_paths
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.schema.experiment import FROM_COLLECTION, Texts
from sottovoce.experiments.schema.values import WITHOUT_ENCODER
from sottovoce.files import files_hash
from sottovoce.mechanisms import parse
from sottovoce.mechanisms.build import Facts, resource_kind

LAYOUT = 3
"""Raised when the same version, settings and contents would give another result."""
SETS_LAYOUT = 2
"""The same of attacks on sets, which alone are run again when it is raised."""
BY_CONTENT = ("file", "log", "resources", "tasks", "test")
"""Fields of jobs that name something whose content enters instead."""
ONLY_SAID = ("name", "settings")
"""What facts say for people: it is no content."""


class Fingerprints:
    """The key of each job, and facts about what it names; everything is hashed once."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache
        self.key = lru_cache(None)(self._key)
        self.facts = lru_cache(None)(self._facts)
        self._collection = lru_cache(None)(self._collection_facts)
        self._log = lru_cache(None)(self._log_facts)
        self._resource = lru_cache(None)(self._resource_facts)
        self._file = lru_cache(None)(_file_facts)
        self._wordnet = lru_cache(None)(partial(resource_kind("wordnet").facts, None))

    def _key(self, job: Job) -> str:
        settings = _settings(asdict(job))
        if isinstance(job, Search | Leak):
            settings["source"] = [self.key(Draw(job.source)), job.source.mechanism]
        if isinstance(job, Leak) and job.source.are_sets:
            settings["sets_layout"] = SETS_LAYOUT
        if isinstance(job, Draw):
            for name in ("mechanism", "parameter"):  # Names in tables, which variants do not hold.
                del settings["source"][name]
        contents = {name: _hashes(facts) for name, facts in self.facts(job).items()}
        return digest([__version__, LAYOUT, type(job).__name__, settings, contents])

    def _facts(self, job: Job) -> dict[str, Facts]:
        """What the job names, with names for people and hashes."""
        match job:
            case Draw(source):
                collection = {"collection": self._collection(source.collection)}
                if source.file is not None:
                    return {**collection, "published": self._file(source.file)}
                return {**collection, **self._resources(source.spec, source.texts)}
            case Search(source):
                return self._searched(source.collection, job.engine, job.reranker)
            case Baseline():
                return self._searched(job.collection, job.engine, job.reranker)
            case Leak():
                return self._attacked(job)
            case Deny() | Samples():
                return self._resources(job.spec, job.texts)
            case Neighbours():
                wordnet = {"wordnet": self._wordnet()} if job.plotted else {}
                return {"space": self._resource("space", job.texts.only("space")), **wordnet}
            case Learn():
                return self._learnt(job)
            case Audit():
                return self._audited(job)

    def _searched(self, collection: str, engine: str, reranker: str) -> dict[str, Facts]:
        kind, _, encoder = engine.partition(":")
        encoders = [encoder or "auto"] if kind == "dense" else []
        encoders += [] if reranker in WITHOUT_ENCODER else [reranker]
        return {"collection": self._collection(collection), "encoders": _encoder_facts(encoders)}

    def _attacked(self, job: Leak) -> dict[str, Facts]:
        source, privacy = job.source, job.privacy
        facts = {"collection": self._collection(source.collection)}
        facts |= self._resources(source.spec, source.texts)
        encoders = [privacy.similarity_encoder] if "semantic" in privacy.similarity else []
        if privacy.log is not None:
            facts["log"] = self._log(privacy.log)
            encoders += privacy.inference_encoders
            if "means" in privacy.attacks and "space" not in facts:
                with suppress(SottovoceError):  # Without a space, it is not tried in one.
                    facts["space"] = self._resource("space", source.texts.only("space"))
        if "meteor" in privacy.similarity:
            facts["wordnet"] = self._wordnet()
        return {**facts, "encoders": _encoder_facts(encoders)}

    def _learnt(self, job: Learn) -> dict[str, Facts]:
        models = job.downstream.models
        is_collection = os.path.isdir(job.task)
        task = self._collection(job.task) if is_collection else self._file(job.task)
        facts = {"task": task, **self._resources(job.spec, job.texts)}
        if "bilstm" in models:
            facts["space"] = self._resource("space", job.texts.only("space"))
        if job.downstream.test is not None:
            facts["test"] = self._file(job.downstream.test)
        encoders = [job.downstream.encoder] if "embeddings" in models else []
        if "semantic" in job.downstream.similarity:
            encoders.append(job.downstream.similarity_encoder)
        if encoders:
            facts["encoders"] = _encoder_facts(encoders)
        if "meteor" in job.downstream.similarity:
            facts["wordnet"] = self._wordnet()
        return facts

    def _audited(self, job: Audit) -> dict[str, Facts]:
        asked = job.membership
        made_up = asked.made_up_users is not None
        facts = {"log": self._log(asked.log) if made_up else self._file(asked.log)}
        if asked.collection is not None and job.spec is not None:
            facts["collection"] = self._collection(asked.collection)
        return facts | self._resources(job.spec, job.texts)

    def _resources(self, spec: str | None, texts: Texts) -> dict[str, Facts]:
        """What a mechanism, if any, works on; what the collection gives is named by that."""
        kinds = () if spec is None else parse(spec)[0].resources()
        return {
            kind: self._resource(kind, texts.only(kind))
            for kind in kinds
            if kind not in FROM_COLLECTION
        }

    def _resource_facts(self, kind: str, texts: Texts) -> Facts:
        """Facts of a resource, and how it was chosen; where it has no facts, that tells it."""
        facts = resource_kind(kind).facts(self._cache.resource(kind, texts))
        settings = without_paths(texts.settings(kind))
        beside = {name: value for name, value in settings.items() if name != kind}
        return {**facts, **({"settings": beside} if beside else {})} if facts else settings

    def _collection_facts(self, name: str) -> Facts:
        """Documents, queries and judgments; ``documents`` is what engines call fingerprint."""
        collection = self._cache.collection(name)
        documents = Documents(collection.documents).sha256
        queries = list(collection.queries.items())
        return {
            "name": collection.name,
            "documents": documents,
            "sha256": digest([documents, queries, collection.judgments]),
        }

    def _log_facts(self, file: str) -> Facts:
        log = self._cache.log(file)
        return {"name": without_path(file), "queries": len(log), "sha256": digest(log.queries)}


def digest(content: Any) -> str:
    """The sha256 of anything that JSON can write; the order of keys does not matter."""
    data = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(data.encode()).hexdigest()


def _encoder_facts(names: Iterable[str]) -> Facts:
    """Fingerprints by the encoders' own names: what ``auto`` stands for shows here."""
    facts: Facts = {}
    for encoder in map(load_encoder, names):
        name = without_path(encoder.name)
        while facts.get(name, encoder.fingerprint) != encoder.fingerprint:
            name += "'"  # Another model in a folder of the same name.
        facts[name] = encoder.fingerprint
    return facts


def _file_facts(path: str) -> Facts:
    try:
        return {"name": without_path(path), "sha256": files_hash([Path(path)])}
    except OSError:
        raise UsageError(
            "a file that the experiment names is missing or cannot be read: check the paths, on "
            "every machine that works on it"
        ) from None


def _settings(value: Any) -> Any:
    """A job's fields as JSON has them, without what machines call files; 5 and 5.0 are one."""
    if isinstance(value, dict):
        return {name: _settings(item) for name, item in value.items() if name not in BY_CONTENT}
    if isinstance(value, list | tuple):
        return [_settings(item) for item in value]
    if isinstance(value, str):
        return without_path(value)
    return float(value) if isinstance(value, int) else value


def _hashes(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name not in ONLY_SAID}
