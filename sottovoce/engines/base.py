"""What a search engine is to sottovoce: queries in, ranked documents out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from sottovoce.errors import SottovoceError
from sottovoce.types import IntArray

QUERIES_AT_A_TIME = 1000
"""Answers held at once; bounds the memory of :func:`ranks_of`."""


class Hit(NamedTuple):
    """A document that an engine found."""

    doc_id: str
    score: float
    title: str = ""
    snippet: str = ""

    def __repr__(self) -> str:
        return f"Hit(score={self.score:g})"


class EngineError(SottovoceError):
    """The engine could not answer."""


class SearchEngine(Protocol):
    """Anything that ranks documents for queries.

    name
        For people; it holds neither secrets nor queries.
    remote
        Whether queries leave this machine.
    pause
        Seconds to leave between two queries.
    most_queries
        How many queries one search may send; None for any number.

    It may also say ``uses_order``; see :func:`uses_order`.
    """

    name: str
    remote: bool
    pause: float
    most_queries: int | None

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents of each query, best first; equal queries, equal answers."""
        ...


@runtime_checkable
class LocalEngine(SearchEngine, Protocol):
    """A search engine on this machine, whose documents can be read."""

    def text(self, doc_id: str) -> str:
        """The whole text of a document, its title first."""
        ...


@runtime_checkable
class RankingEngine(Protocol):
    """An engine that can say where documents rank without listing all others."""

    def ranks(self, queries: Sequence[str], doc_ids: Sequence[str], depth: int) -> IntArray:
        """The rank (from 1) of each document for each query; 0 where it is not in the best."""
        ...


def uses_order(engine: SearchEngine) -> bool:
    """Whether the order of a query's words, or punctuation, may change the engine's answer.

    An engine says so by an attribute ``uses_order``; one that does not say is taken to use it.
    """
    return bool(getattr(engine, "uses_order", True))


def ranks_of(
    engine: SearchEngine, queries: Sequence[str], doc_ids: Sequence[str], depth: int
) -> IntArray:
    """Where documents rank for queries, (len(queries), len(doc_ids)); 0 for none of the best.

    An engine that can do it quickly is asked to; any other is searched.
    """
    if isinstance(engine, RankingEngine):
        return engine.ranks(queries, doc_ids, depth)
    ranks = np.zeros((len(queries), len(doc_ids)), dtype=np.int64)
    columns = {doc_id: column for column, doc_id in enumerate(doc_ids)}
    for start in range(0, len(queries), QUERIES_AT_A_TIME):
        answers = engine.search(queries[start : start + QUERIES_AT_A_TIME], depth)
        for row, hits in enumerate(answers, start):
            for rank, hit in enumerate(hits, start=1):
                if hit.doc_id in columns:
                    ranks[row, columns[hit.doc_id]] = rank
    return ranks
