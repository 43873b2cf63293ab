"""What the names in jobs stand for, by content: the same on every machine, whatever the paths."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from sottovoce.encoders import load_encoder
from sottovoce.engines.documents import Documents
from sottovoce.errors import UsageError
from sottovoce.experiments.description import Texts
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.shelf import Shelf
from sottovoce.files import files_hash
from sottovoce.mechanisms import parse
from sottovoce.mechanisms.build import RESOURCE_KINDS, Facts


class Contents:
    """Facts about what a shelf holds; each thing is hashed once."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.collection = lru_cache(None)(self._collection)
        self.log = lru_cache(None)(self._log)
        self.file = lru_cache(None)(_file)
        self.wordnet = lru_cache(None)(_wordnet)

    def _collection(self, name: str) -> Facts:
        """Documents, queries and judgments; ``documents`` is what engines call fingerprint."""
        found = self.shelf.collection(name)
        documents = Documents(found.documents).sha256
        return {
            "name": found.name,
            "documents": documents,
            "sha256": digest([documents, list(found.queries.items()), found.judgments]),
        }

    def _log(self, file: str) -> Facts:
        log = self.shelf.log(file)
        return {"name": without_path(file), "queries": len(log), "sha256": digest(log.queries)}

    def encoders(self, *names: str) -> dict[str, str]:
        """Fingerprints by the encoders' own names: what ``auto`` stands for shows here."""
        loaded = [load_encoder(name) for name in names]
        found: dict[str, str] = {}
        for encoder in loaded:
            name = without_path(encoder.name)
            while found.get(name, encoder.fingerprint) != encoder.fingerprint:
                name += "'"  # Another model in a folder of the same name.
            found[name] = encoder.fingerprint
        return found

    def resources(self, spec: str | None, texts: Texts) -> dict[str, Facts]:
        """What a mechanism, if any, works on; its corpus is the collection, named elsewhere."""
        needed = () if spec is None else parse(spec)[0].resources()
        facts = {}
        if "space" in needed:
            facts["space"] = self.space(texts)
        if "pool" in needed and texts.pool is not None:
            pool = self.shelf.pool(texts.pool, texts.encoder)
            facts["pool"] = RESOURCE_KINDS["pool"].facts(pool)
        if "wordnet" in needed:
            facts["wordnet"] = self.wordnet()
        return facts

    def space(self, texts: Texts) -> Facts:
        """The word space, and the words of it that may be released."""
        space = self.shelf.space(texts.space, texts.output_vocabulary)
        facts = RESOURCE_KINDS["space"].facts(space)
        return {**facts, "output_vocabulary": without_path(texts.output_vocabulary)}


def digest(content: Any) -> str:
    """The sha256 of anything that JSON can write; the order of keys does not matter."""
    data = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(data.encode()).hexdigest()


def engine_encoder(spec: str) -> list[str]:
    """The encoder of an engine, if it has one."""
    kind, _, encoder = spec.partition(":")
    return [encoder or "auto"] if kind == "dense" else []


def reranker_encoder(name: str) -> list[str]:
    """The encoder of a re-ranker, if it has one."""
    return [] if name in ("bm25", "none") else [name]


def _file(path: str) -> Facts:
    try:
        return {"name": without_path(path), "sha256": files_hash([Path(path)])}
    except OSError:
        raise UsageError(
            "a file that the experiment names is missing or cannot be read: check the paths, on "
            "every machine that works on it"
        ) from None


def _wordnet() -> Facts:
    return RESOURCE_KINDS["wordnet"].facts(None)
