"""The documents of an engine on this machine: by place, by id, and as hits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property

from sottovoce.collections import Document
from sottovoce.engines.base import Hit
from sottovoce.errors import UsageError

SNIPPET = 300
"""Characters of a document that a hit shows."""


class Documents:
    """Documents in their order, which decides ties."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._places = {document.doc_id: place for place, document in enumerate(self._documents)}
        if len(self._places) < len(self._documents):
            raise UsageError("two documents have the same id: give each an id of its own")

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
        """The whole text of a document, its title first."""
        return whole_text(self._documents[self.place(doc_id)])

    def place(self, doc_id: str) -> int:
        """Where a document stands, from 0."""
        if doc_id not in self._places:
            raise UsageError("no document has this id; search answers the ids there are")
        return self._places[doc_id]

    def hit(self, place: int, score: float) -> Hit:
        """The document at this place, as an engine answers it."""
        document = self._documents[place]
        return Hit(document.doc_id, score, document.title, beginning(document.text))


class DocumentEngine:
    """What all engines over documents on this machine have in common."""

    name: str
    remote = False
    pause = 0.0
    most_queries: int | None = None

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = Documents(documents)

    def __len__(self) -> int:
        return len(self._documents)

    @property
    def fingerprint(self) -> str:
        return self._documents.sha256

    def text(self, doc_id: str) -> str:
        return self._documents.text(doc_id)


def whole_text(document: Document) -> str:
    """The title and the text."""
    return f"{document.title}\n{document.text}".strip()


def beginning(text: str) -> str:
    """The beginning of a text, cut after a word where there is a blank to cut at."""
    if len(text) <= SNIPPET:
        return text
    return f"{text[: SNIPPET - 1].rsplit(None, 1)[0]}…"
