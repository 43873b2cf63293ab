"""Documents on disk, for collections that memory should not hold: written once, read by place."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from sottovoce.arrays import read_array
from sottovoce.collections import Document
from sottovoce.engines.base import Hit, beginning, whole_text
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import parse_json

LINES, OFFSETS = "documents.jsonl", "offsets.npy"
ID_HASHES, ID_PLACES = "id_hashes.npy", "id_places.npy"


class DocumentWriter:
    """Writes documents one after the other, and then how to find each by its place and id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = (folder / LINES).open("wb")
        self._offsets, self._hashes = array("q", [0]), array("Q")
        self._digest = hashlib.sha256()

    def add(self, document: Document) -> None:
        fields = (document.doc_id, document.title, document.text)
        line = json.dumps(fields, ensure_ascii=True).encode() + b"\n"
        self._lines.write(line)
        self._digest.update(line)
        self._offsets.append(self._offsets[-1] + len(line))
        self._hashes.append(_hash(document.doc_id))

    def finish(self) -> str:
        """Write the rest; answers a hash of all documents in their order."""
        self._lines.close()
        np.save(self._folder / OFFSETS, np.asarray(self._offsets, dtype=np.int64))
        hashes = np.asarray(self._hashes, dtype=np.uint64)
        places = np.argsort(hashes, kind="stable")
        np.save(self._folder / ID_HASHES, hashes[places])
        np.save(self._folder / ID_PLACES, places)
        self._refuse_doubles(hashes[places], places)
        return self._digest.hexdigest()

    def _refuse_doubles(self, hashes: np.ndarray, places: np.ndarray) -> None:
        stored = StoredDocuments(self._folder, "")
        for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
            if stored[int(places[at])].doc_id == stored[int(places[at + 1])].doc_id:
                raise UsageError("two documents have the same id: give each an id of its own")


def damaged() -> SottovoceError:
    """What to do about an index whose files are not what they were."""
    return SottovoceError(
        "the index on disk is damaged: remove it, and make it anew with 'sottovoce index'"
    )


class StoredDocuments:
    """The documents of a folder, each read when it is asked for; what engines ask of documents."""

    def __init__(self, folder: Path, sha256: str) -> None:
        self.sha256 = sha256
        try:
            self._offsets = read_array(folder / OFFSETS)
            self._hashes = read_array(folder / ID_HASHES)
            self._places = read_array(folder / ID_PLACES)
            shapes = self._offsets.ndim, self._hashes.shape, self._places.shape
            if shapes != (1, (len(self),), (len(self),)):
                raise damaged()
            self._lines = (
                np.memmap(folder / LINES, mode="r") if len(self) else np.zeros(0, np.uint8)
            )
        except (OSError, ValueError):
            raise damaged() from None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> Document:
        try:
            start, stop = self._offsets[place : place + 2].tolist()
            fields = parse_json(self._lines[start:stop].tobytes())
            if not (len(fields) == 3 and all(isinstance(one, str) for one in fields)):
                raise damaged()
        except (ValueError, TypeError):
            raise damaged() from None
        return Document(*fields)

    def __iter__(self) -> Iterator[Document]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"StoredDocuments({len(self)})"

    def texts(self) -> StoredTexts:
        return StoredTexts(self)

    def text(self, doc_id: str) -> str:
        return whole_text(self[self.place(doc_id)])

    def place(self, doc_id: str) -> int:
        """Where a document stands, from 0."""
        wanted = np.uint64(_hash(doc_id))
        first, end = (
            int(np.searchsorted(self._hashes, wanted, side)) for side in ("left", "right")
        )
        for place in self._places[first:end].tolist():
            if self[place].doc_id == doc_id:
                return int(place)
        raise UsageError("no document has this id; search answers the ids there are")

    def hit(self, place: int, score: float) -> Hit:
        """The document at this place, as an engine answers it."""
        document = self[place]
        return Hit(document.doc_id, score, document.title, beginning(document.text))


class StoredTexts(Sequence[str]):
    """Titles and texts, read when they are asked for."""

    def __init__(self, documents: StoredDocuments) -> None:
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        return whole_text(self._documents[place])


def write_documents(documents: Iterable[Document], writer: DocumentWriter) -> Iterator[Document]:
    """The documents, each written as it passes."""
    for document in documents:
        writer.add(document)
        yield document


def _hash(doc_id: str) -> int:
    data = doc_id.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
