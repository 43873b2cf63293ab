"""Keys of jobs: a hash of their settings and of the content of all that they name."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

from sottovoce import __version__
from sottovoce.experiments.contents import (
    Contents,
    digest,
    engine_encoder,
    reranker_encoder,
)
from sottovoce.experiments.jobs import Baseline, Deny, Draw, Job, Leak, Learn, Neighbours, Search
from sottovoce.experiments.naming import without_path
from sottovoce.mechanisms.build import Facts

LAYOUT = 1
"""Raised when the same version, settings and contents would give another product."""
BY_CONTENT = ("file", "log", "pool", "space", "output_vocabulary", "tasks")
"""Fields of jobs that name something whose content enters instead."""
ONLY_SAID = ("name", "output_vocabulary")
"""What facts say for people: it is no content."""


class Keys:
    """Answers the key of a job, and what it names; each job is looked at once."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.key = lru_cache(None)(self._key)
        self.named = lru_cache(None)(self._named)

    def _key(self, job: Job) -> str:
        said = _settings(asdict(job))
        if isinstance(job, Search | Leak):
            said["source"] = [self.key(Draw(job.source)), job.source.mechanism]
        if isinstance(job, Draw):
            del said["source"]["mechanism"]  # Its name in tables, which variants do not hold.
        contents = {name: _hashes(facts) for name, facts in self.named(job).items()}
        return digest([__version__, LAYOUT, type(job).__name__, said, contents])

    def _named(self, job: Job) -> dict[str, Facts]:
        """What the job names, with names for people and hashes."""
        of = self.contents
        match job:
            case Draw(source):
                found = {"collection": of.collection(source.collection)}
                if source.file is not None:
                    return {**found, "published": of.file(source.file)}
                return {**found, **of.resources(source.spec, source.texts)}
            case Search(source):
                return self._searched(source.collection, job.engine, job.reranker)
            case Baseline():
                return self._searched(job.collection, job.engine, job.reranker)
            case Leak():
                return self._attacked(job)
            case Deny():
                return of.resources(job.spec, job.texts)
            case Neighbours():
                wordnet = {"wordnet": of.wordnet()} if job.plotted else {}
                return {"space": of.space(job.texts), **wordnet}
            case Learn():
                return self._learnt(job)

    def _searched(self, collection: str, engine: str, reranker: str) -> dict[str, Facts]:
        encoders = engine_encoder(engine) + reranker_encoder(reranker)
        return {
            "collection": self.contents.collection(collection),
            "encoders": self.contents.encoders(*encoders),
        }

    def _attacked(self, job: Leak) -> dict[str, Facts]:
        source, privacy, of = job.source, job.privacy, self.contents
        found = {"collection": of.collection(source.collection)}
        found |= of.resources(source.spec, source.texts)
        encoders = [privacy.similarity_encoder] if "semantic" in privacy.similarity else []
        if privacy.log is not None:
            found["log"] = of.log(privacy.log)
            encoders += privacy.inference_encoders
        if "meteor" in privacy.similarity:
            found["wordnet"] = of.wordnet()
        return {**found, "encoders": of.encoders(*encoders)}

    def _learnt(self, job: Learn) -> dict[str, Facts]:
        of, models = self.contents, job.downstream.models
        found = {"task": of.file(job.task), **of.resources(job.spec, job.texts)}
        if "bilstm" in models:
            found["space"] = of.space(job.texts)
        if "embeddings" in models:
            found["encoders"] = of.encoders(job.downstream.encoder)
        return found


def _settings(value: Any) -> Any:
    """A job's fields as JSON has them, without what machines call files; 5 and 5.0 are one."""
    if isinstance(value, dict):
        return {key: _settings(each) for key, each in value.items() if key not in BY_CONTENT}
    if isinstance(value, list | tuple):
        return [_settings(each) for each in value]
    if isinstance(value, str):
        return without_path(value)
    return float(value) if isinstance(value, int) else value


def _hashes(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name not in ONLY_SAID}
