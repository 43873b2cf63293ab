"""What a search engine is to sottovoce: queries in, ranked documents out.

Also what engines on this machine share: their documents, by place, by id, and as hits.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from sottovoce.collections import Document
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.text.words import ENGLISH
from sottovoce.types import Float64Array, IntArray

QUERIES_AT_A_TIME = 1000
"""Answers held at once; bounds the memory of :func:`ranks_of`."""
SNIPPET = 300
"""Characters of a document that a hit shows."""


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
        Whether queries leave this machine, or come to a server here that passes them on.
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


@runtime_checkable
class LocalEngine(SearchEngine, Protocol):
    """A search engine on this machine, whose documents can be read."""

    def text(self, doc_id: str) -> str:
        """The whole text of a document, its title first."""


@runtime_checkable
class RankingEngine(Protocol):
    """An engine that can say where documents rank without listing all others."""

    def ranks(self, queries: Sequence[str], doc_ids: Sequence[str], depth: int) -> IntArray:
        """The rank (from 1) of each document for each query; 0 where it is not in the best."""


@runtime_checkable
class ListingEngine(Protocol):
    """An engine that can say where its documents stand that it finds, without describing them."""

    def listed(self, queries: Sequence[str], depth: int) -> IntArray:
        """Places of the best documents, best first, (queries, depth); NOTHING after the last."""


def uses_order(engine: SearchEngine) -> bool:
    """Whether the order of a query's words, or punctuation, may change the engine's answer.

    An engine says so by an attribute ``uses_order``; one that does not say is taken to use it.
    """
    return bool(getattr(engine, "uses_order", True))


def language_of(engine: SearchEngine) -> str:
    """The language whose function words find nothing in an engine; English if it does not say."""
    return str(getattr(engine, "language", ENGLISH))


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


# Engines on this machine.

NOTHING = -1
"""In a list of places: no more documents."""


class Documents:
    """Documents in their order, which decides ties."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._places = {document.doc_id: place for place, document in enumerate(self._documents)}
        if len(self._places) < len(self._documents):
            raise UsageError("two documents have the same id: give each an id of its own")
        self._beginnings: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def __repr__(self) -> str:
        return f"Documents({len(self)})"

    @cached_property
    def sha256(self) -> str:
        """A hash of all documents in their order."""
        digest = hashlib.sha256()
        for document in self._documents:
            for part in (document.doc_id, document.title, document.text):
                data = part.encode("utf-8", "surrogatepass")
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def texts(self) -> list[str]:
        return [whole_text(document) for document in self._documents]

    def text(self, doc_id: str) -> str:
        return whole_text(self._documents[self.place(doc_id)])

    def place(self, doc_id: str) -> int:
        """Where a document stands, from 0."""
        if doc_id not in self._places:
            raise UsageError("no document has this id; search answers the ids there are")
        return self._places[doc_id]

    def hit(self, place: int, score: float) -> Hit:
        """The document at this place, as an engine answers it."""
        document = self._documents[place]
        snippet = self._beginnings.get(place)
        if snippet is None:
            snippet = self._beginnings[place] = beginning(document.text)
        return Hit(document.doc_id, score, document.title, snippet)


class KeptDocuments(Protocol):
    """What engines ask of their documents, in memory or on disk."""

    @property
    def sha256(self) -> str:
        """A hash of all documents in their order."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Document]: ...

    def texts(self) -> Sequence[str]:
        """The title and text of each."""

    def text(self, doc_id: str) -> str:
        """The title and text of one."""

    def place(self, doc_id: str) -> int:
        """Where a document stands, from 0."""

    def hit(self, place: int, score: float) -> Hit:
        """The document at this place, as an engine answers it."""


class DocumentEngine(ABC):
    """What all engines over documents on this machine have in common."""

    name: str
    remote = False
    pause = 0.0
    most_queries: int | None = None

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents: KeptDocuments = Documents(documents)

    def __len__(self) -> int:
        return len(self._documents)

    @property
    def fingerprint(self) -> str:
        return self._documents.sha256

    def text(self, doc_id: str) -> str:
        return self._documents.text(doc_id)

    @abstractmethod
    def ranked(self, queries: Sequence[str], depth: int) -> Iterator[tuple[IntArray, Float64Array]]:
        """Places and scores of the best documents of each query, best first; ties by place."""

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents of each query, best first; ties by document order."""
        return [self.hits(*ranking) for ranking in self.ranked(queries, depth)]

    def listed(self, queries: Sequence[str], depth: int) -> IntArray:
        """The same as places alone, (queries, depth); NOTHING after the last."""
        rows = np.full((len(queries), depth), NOTHING, dtype=np.int64)
        for row, (places, _) in zip(rows, self.ranked(queries, depth), strict=True):
            row[: len(places)] = places
        return rows

    def hits(self, places: IntArray, scores: Float64Array) -> list[Hit]:
        """Documents as an engine answers them."""
        pairs = zip(places.tolist(), scores.tolist(), strict=True)
        return [self._documents.hit(place, score) for place, score in pairs]


def whole_text(document: Document) -> str:
    """The title and the text."""
    return f"{document.title}\n{document.text}".strip()


def beginning(text: str) -> str:
    """The beginning of a text, cut after a word where there is a blank to cut at."""
    if len(text) <= SNIPPET:
        return text
    return f"{text[: SNIPPET - 1].rsplit(None, 1)[0]}…"
