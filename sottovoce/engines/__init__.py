"""Search engines. What one sees of a query, its owner has released to it."""

from sottovoce.engines.base import Hit, LocalEngine, RankingEngine, SearchEngine, ranks_of
from sottovoce.engines.bm25 import BM25

__all__ = ["BM25", "Hit", "LocalEngine", "RankingEngine", "SearchEngine", "ranks_of"]
