"""Search engines. What one sees of a query, its owner has released to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.engines.base import Hit, LocalEngine, RankingEngine, SearchEngine, ranks_of
from sottovoce.engines.bm25 import BM25
from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.engines.dense import Dense
    from sottovoce.engines.json_http import JsonHttp
    from sottovoce.engines.opensearch import OpenSearch
    from sottovoce.engines.postgres import Postgres

__all__ = [
    "BM25",
    "Dense",
    "Hit",
    "JsonHttp",
    "LocalEngine",
    "OpenSearch",
    "Postgres",
    "RankingEngine",
    "SearchEngine",
    "ranks_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".dense": "Dense",
        ".json_http": "JsonHttp",
        ".opensearch": "OpenSearch",
        ".postgres": "Postgres",
    },
)
