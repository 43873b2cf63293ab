"""Search engines, by name as people type them. What one sees of a query, its owner has released."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sottovoce.collections import Document
from sottovoce.engines.base import (
    EngineError,
    Hit,
    LocalEngine,
    RankingEngine,
    SearchEngine,
    ranks_of,
)
from sottovoce.engines.lexical import BM25, TfIdf
from sottovoce.errors import UsageError, did_you_mean
from sottovoce.lazy import lazy_names
from sottovoce.text.words import ENGLISH

if TYPE_CHECKING:
    from sottovoce.engines.dense import Dense
    from sottovoce.engines.json_http import JsonHttp
    from sottovoce.engines.opensearch import OpenSearch
    from sottovoce.engines.opensearch_knn import OpenSearchKNN
    from sottovoce.engines.pgvector import PgVector
    from sottovoce.engines.postgres import Postgres
    from sottovoce.engines.qdrant import Qdrant
    from sottovoce.engines.stored import StoredBM25, StoredDense, make_index
    from sottovoce.engines.vector_engine import VectorEngine
    from sottovoce.engines.vector_stores import choose_vector_store, is_vector_store

__all__ = ["BM25", "Dense", "EngineError", "Hit", "JsonHttp", "LocalEngine", "OpenSearch"]
__all__ += ["Postgres", "RankingEngine", "SearchEngine", "TfIdf", "choose_engine", "ranks_of"]
__all__ += ["StoredBM25", "StoredDense", "make_index"]
__all__ += ["OpenSearchKNN", "PgVector", "Qdrant", "VectorEngine", "choose_vector_store"]
__all__ += ["is_vector_store"]

__getattr__ = lazy_names(
    __name__,
    {
        ".dense": "Dense",
        ".json_http": "JsonHttp",
        ".opensearch": "OpenSearch",
        ".opensearch_knn": "OpenSearchKNN",
        ".pgvector": "PgVector",
        ".postgres": "Postgres",
        ".qdrant": "Qdrant",
        ".stored": "StoredBM25, StoredDense, make_index",
        ".vector_engine": "VectorEngine",
        ".vector_stores": "choose_vector_store, is_vector_store",
    },
)

CHOICES = (
    *("bm25", "bm25:de", "tfidf", "tfidf:de", "dense", "dense:ENCODER"),
    *("stored:FOLDER", "stored-dense:FOLDER", "http:FILE.toml"),
    *("opensearch:URL/INDEX", "postgres:DSN#TABLE", "elsewhere:ENGINE"),
)
_KINDS = tuple(dict.fromkeys(choice.partition(":")[0] for choice in CHOICES))


def choose_engine(spec: str, documents: Iterable[Document] | None = None) -> SearchEngine:
    """Build the engine that a spec names.

    ``bm25[:LANGUAGE]``, ``tfidf[:LANGUAGE]``, ``dense[:ENCODER]`` search the given documents on
    this machine. ``stored:FOLDER`` and ``stored-dense:FOLDER`` search an index on disk, which
    :func:`sottovoce.engines.stored.make_index` wrote. Those with an address ask a server that has
    documents of its own: ``http:FILE.toml``, ``opensearch:URL/INDEX``, ``postgres:DSN#TABLE`` or
    ``postgres:DSN#TABLE:ID,TITLE,TEXT``. ``elsewhere:`` before the last two says of a server at an
    address of this machine that it passes on what it is asked; a TOML file has a key for that.
    """
    kind, _, detail = spec.strip().partition(":")
    elsewhere = None
    if kind == "elsewhere":
        elsewhere = True
        kind, _, detail = detail.partition(":")
        if kind not in ("opensearch", "postgres"):
            raise UsageError(
                "'elsewhere:' stands before opensearch:URL/INDEX or postgres:DSN#TABLE; an engine "
                "that a file describes says 'elsewhere = true' there"
            )
    match kind, detail:
        case "bm25", language:
            return BM25(_given(documents), language=language or ENGLISH)
        case "tfidf", language:
            return TfIdf(_given(documents), language=language or ENGLISH)
        case "dense", encoder:
            from sottovoce.engines.dense import Dense

            return Dense(_given(documents), encoder=encoder or "auto")
        case "stored", folder if folder:
            from sottovoce.engines.stored import StoredBM25

            return StoredBM25(folder)
        case "stored-dense", folder if folder:
            from sottovoce.engines.stored import StoredDense

            return StoredDense(folder)
        case "http", path if path and not path.startswith("//"):
            from sottovoce.engines.json_http import JsonHttp

            return JsonHttp.from_file(path)
        case "opensearch", url if "/" in url:
            from sottovoce.engines.opensearch import OpenSearch

            address, index = url.rstrip("/").rsplit("/", maxsplit=1)
            return OpenSearch(address, index, elsewhere=elsewhere)
        case "postgres", detail if "#" in detail:
            dsn, place = detail.rsplit("#", maxsplit=1)
            return _postgres(dsn, place, elsewhere)
    raise _unknown(kind)


def _given(documents: Iterable[Document] | None) -> Iterable[Document]:
    if documents is None:
        raise UsageError(
            "this engine searches documents on this machine: say which, or name an engine that "
            "has its own (http:FILE.toml, opensearch:URL/INDEX, postgres:DSN#TABLE)"
        )
    return documents


def _postgres(dsn: str, place: str, elsewhere: bool | None) -> SearchEngine:
    from sottovoce.engines.postgres import Postgres

    table, _, named = place.partition(":")
    if not named:
        return Postgres(dsn, table, elsewhere=elsewhere)
    columns = named.split(",")
    if len(columns) != 3:
        raise UsageError("name three columns: postgres:DSN#TABLE:ID,TITLE,TEXT (TITLE may be '')")
    doc_id, title, text = columns
    return Postgres(dsn, table, doc_id=doc_id, title=title, text=text, elsewhere=elsewhere)


def _unknown(kind: str) -> UsageError:
    if kind in ("http", "https"):
        return UsageError(
            "an address alone does not say how to ask the engine there: describe it in a TOML file "
            "and write http:FILE.toml (docs/engines.md has examples)"
        )
    from sottovoce.engines.vector_stores import is_vector_store

    if is_vector_store(kind):
        return UsageError(
            "this store takes vectors, not queries: 'sottovoce search' asks it, or in Python "
            "PrivateVectorSearch (docs/vectors.md)"
        )
    shape = next((choice for choice in CHOICES if choice.startswith(f"{kind}:")), None)
    if shape:
        return UsageError(f"unknown engine: did you mean '{shape}'?")
    hint = did_you_mean(kind, _KINDS, f"use {', '.join(CHOICES)}")
    return UsageError(f"unknown engine: {hint}")
