"""Private search: obfuscate, count, send, pool, re-rank. Only obfuscated queries leave."""

from sottovoce.defaults import DEPTH, TOP
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

__all__ = [
    "DEPTH",
    "TOP",
    "Boundary",
    "CountedRelease",
    "Pooled",
    "PrivateSearch",
    "Ranked",
    "Reranker",
    "SearchResult",
    "Step",
    "fitted_to",
    "laid_out_for",
    "load_reranker",
    "pool",
    "rerank",
]
