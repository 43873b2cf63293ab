"""Private search: obfuscate, count, send, pool, re-rank. Only obfuscated queries leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.defaults import DEPTH, TOP
from sottovoce.lazy import lazy_names
from sottovoce.search.boundary import Boundary
from sottovoce.search.layout import fitted_to, laid_out_for
from sottovoce.search.pooling import Pooled, pool
from sottovoce.search.private_search import (
    CountedRelease,
    PrivateSearch,
    SearchResult,
    Step,
)
from sottovoce.search.reranking import Ranked, Reranker, load_reranker, rerank

if TYPE_CHECKING:
    from sottovoce.obfuscation.vectors import VectorNoise
    from sottovoce.search.vector_depth import DepthPromise, promise_depth
    from sottovoce.search.vector_search import PrivateVectorSearch, VectorSearchResult
    from sottovoce.search.wear import worn_out

__all__ = [
    "DEPTH",
    "TOP",
    "Boundary",
    "CountedRelease",
    "DepthPromise",
    "Pooled",
    "PrivateSearch",
    "PrivateVectorSearch",
    "Ranked",
    "Reranker",
    "SearchResult",
    "Step",
    "VectorNoise",
    "VectorSearchResult",
    "fitted_to",
    "laid_out_for",
    "load_reranker",
    "pool",
    "promise_depth",
    "rerank",
    "worn_out",
]

__getattr__ = lazy_names(
    __name__,
    {
        "sottovoce.obfuscation.vectors": "VectorNoise",
        ".vector_depth": "DepthPromise, promise_depth",
        ".vector_search": "PrivateVectorSearch, VectorSearchResult",
        ".wear": "worn_out",
    },
)
