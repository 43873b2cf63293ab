"""Stores of vectors by name, as people type them, and the TOML files that describe them."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Iterable
from typing import Any

from sottovoce.collections import Document
from sottovoce.engines.vector_engine import VectorEngine
from sottovoce.errors import UsageError, did_you_mean
from sottovoce.files import read_text

CHOICES = (
    *("vectors", "vectors:ENCODER"),
    *("pgvector:FILE.toml", "qdrant:FILE.toml", "knn:FILE.toml"),
)
KINDS = tuple(dict.fromkeys(choice.partition(":")[0] for choice in CHOICES))


def is_vector_store(spec: str) -> bool:
    """Whether a spec names something that is asked with vectors."""
    return spec.strip().partition(":")[0] in KINDS


def choose_vector_store(spec: str, documents: Iterable[Document] | None = None) -> VectorEngine:
    """Build the store that a spec names.

    ``vectors[:ENCODER]`` has the given documents on this machine. The others are described in a
    TOML file: ``pgvector:FILE.toml``, ``qdrant:FILE.toml``, ``knn:FILE.toml`` (docs/vectors.md).
    """
    kind, _, detail = spec.strip().partition(":")
    if kind == "vectors":
        from sottovoce.engines.dense import Dense

        if documents is None:
            raise UsageError("vectors searches documents on this machine: say which")
        return Dense(documents, encoder=detail or "auto")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS, f"use {', '.join(CHOICES)}")
        raise UsageError(f"this is no store of vectors: {hint}")
    if not detail:
        raise UsageError(f"describe the store in a file, and write {kind}:FILE.toml")
    return _described(kind, detail)


def _described(kind: str, file: str) -> VectorEngine:
    store: type[Any]
    if kind == "pgvector":
        from sottovoce.engines.pgvector import PgVector as store
    elif kind == "qdrant":
        from sottovoce.engines.qdrant import Qdrant as store
    else:
        from sottovoce.engines.opensearch_knn import OpenSearchKNN as store
    try:
        description = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the store's file is not TOML: {error}") from None
    engine: VectorEngine = store(**_checked(description, store))
    return engine


def _checked(description: dict[str, Any], store: type[Any]) -> dict[str, Any]:
    """The keys of a description, if they are what the store takes."""
    takes = inspect.signature(store.__init__).parameters
    keys = [name for name in takes if name != "self"]
    for key, value in description.items():
        if key not in keys:
            hint = did_you_mean(key, keys, f"use {', '.join(keys)}")
            raise UsageError(f"the store's file has a key that is not known: {hint}")
        usual = takes[key].default
        if usual is None or isinstance(usual, bool):
            if not isinstance(value, bool):
                raise UsageError(f"'{key}' in the store's file is true or false")
        elif isinstance(usual, float):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 < value < math.inf):
                raise UsageError(f"'{key}' in the store's file must be a number of seconds")
        elif not isinstance(value, str):
            raise UsageError(f"'{key}' in the store's file must be a text in quotes")
    for key in keys:
        if takes[key].default is inspect.Parameter.empty and key not in description:
            raise UsageError(f"the store's file lacks '{key}': see docs/vectors.md")
    return description
