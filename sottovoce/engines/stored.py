"""Engines over an index on disk: the answers of those in memory, for collections of any size."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.arrays import read_array
from sottovoce.collections import Document
from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder, write_vectors
from sottovoce.engines.dense import Dense
from sottovoce.engines.lexical import BM25
from sottovoce.engines.stored_documents import (
    ID_HASHES,
    ID_PLACES,
    LINES,
    OFFSETS,
    DocumentWriter,
    StoredDocuments,
    damaged,
    write_documents,
)
from sottovoce.engines.stored_postings import (
    DOCS,
    EDGES,
    TERMS,
    WEIGHTS,
    PostingsWriter,
    read_terms,
    write_postings,
)
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import (
    GROWING,
    locked,
    move_file,
    parse_json,
    settle_file,
    write_whole,
)
from sottovoce.text.words import ENGLISH, LANGUAGES
from sottovoce.types import Float32Array, IntArray, Progress

FACTS, VECTORS, LOCK = "index.json", "vectors.npy", ".lock"
FILES = (LINES, OFFSETS, ID_HASHES, ID_PLACES, TERMS, EDGES, DOCS, WEIGHTS, VECTORS)
LAYOUT = 1
"""Raised when an index of the same documents would look different."""
HOW = "make it with 'sottovoce index COLLECTION FOLDER'"


@dataclass(frozen=True)
class IndexFacts:
    """What an index was made of; ``encoder`` is None where it has no vectors.

    ``sizes`` says how long its files are: the power may go while a computer thinks they are there.
    """

    layout: int
    documents: int
    sha256: str
    language: str
    k1: float
    b: float
    encoder: str | None = None
    encoder_fingerprint: str | None = None
    sizes: dict[str, int] = field(default_factory=dict)


def make_index(
    documents: Iterable[Document],
    folder: Path | str,
    *,
    encoder: str | None = None,
    language: str = ENGLISH,
    k1: float = 0.9,
    b: float = 0.4,
    progress: Progress | None = None,
) -> IndexFacts:
    """Write the index of documents, which are read once and never held together.

    In memory are the terms, a few bytes a document, and the postings of some millions of words.
    With an ``encoder``, also the vectors of all documents.
    """
    folder = Path(folder).expanduser()
    if language not in LANGUAGES:
        raise UsageError(f"unknown language of documents: use {', '.join(LANGUAGES)}")
    if (folder / FACTS).exists():
        raise UsageError(f"the folder {folder.name} holds an index: remove it, or name another")
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"another process writes an index into {folder.name}: wait for it"
    with locked(folder / LOCK, wait=False, busy=busy, remove=True):
        writer, postings = DocumentWriter(folder), PostingsWriter(folder, language)
        count = write_postings(write_documents(documents, writer), postings)
        sha256 = writer.finish()
        postings.finish(k1, b)
        facts = IndexFacts(LAYOUT, count, sha256, language, k1, b)
        if encoder is not None:
            loaded = load_encoder(encoder)
            _write_vectors(folder, sha256, loaded, progress)
            facts = replace(facts, encoder=loaded.name, encoder_fingerprint=loaded.fingerprint)
        else:
            (folder / VECTORS).unlink(missing_ok=True)
        facts = replace(facts, sizes=_sizes(folder))
        for name in facts.sizes:
            settle_file(folder / name)
        write_whole(folder / FACTS, json.dumps(asdict(facts), indent=1).encode())
        _remove_leftovers(folder)
    return facts


def _write_vectors(folder: Path, sha256: str, encoder: Encoder, progress: Progress | None) -> None:
    """The vectors of all documents; what a killed process left is used for the same ones only."""
    key = hashlib.sha256(f"{sha256} {encoder.name} {encoder.fingerprint}".encode()).hexdigest()
    growing = folder / f".{key}.npy"
    write_vectors(growing, encoder, StoredDocuments(folder, sha256).texts(), progress)
    move_file(growing, folder / VECTORS)


def _remove_leftovers(folder: Path) -> None:
    """What killed processes left, once an index is whole."""
    for file in folder.glob(".*"):
        if file.suffix in {".npy", GROWING}:
            file.unlink()


def _sizes(folder: Path) -> dict[str, int]:
    """How long each file of an index is."""
    return {name: (folder / name).stat().st_size for name in FILES if (folder / name).exists()}


def index_facts(folder: Path) -> IndexFacts:
    """What an index was made of."""
    try:
        content: dict[str, Any] = parse_json((folder / FACTS).read_text(encoding="utf-8"))
        facts = IndexFacts(**content)
        if facts.language not in LANGUAGES or not math.isfinite(facts.k1 + facts.b):
            raise ValueError
    except (OSError, ValueError, TypeError, OverflowError):
        raise UsageError(f"the folder {folder.name} holds no whole index: {HOW}") from None
    if facts.layout != LAYOUT:
        raise SottovoceError(f"the index {folder.name} has another layout: {HOW}, anew")
    if facts.sizes and facts.sizes != _sizes(folder):
        raise damaged()
    return facts


class StoredBM25(BM25):
    """BM25 over an index on disk: the same answers as :class:`BM25` over the same documents."""

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder).expanduser()
        facts = index_facts(folder)
        self.k1, self.b, self.language = facts.k1, facts.b, facts.language
        self.name = "stored"
        self._documents = StoredDocuments(folder, facts.sha256)
        try:
            self._terms = read_terms(folder)
            edges = read_array(folder / EDGES, mapped=False)
            self._docs, self._weights = read_array(folder / DOCS), read_array(folder / WEIGHTS)
        except (OSError, ValueError):
            raise damaged() from None
        whole = (
            {edges.dtype.kind, self._docs.dtype.kind, self._weights.dtype.kind} <= {"i", "u"}
            and edges.shape == (len(self._terms) + 1,)
            and self._docs.shape == self._weights.shape == (edges[-1],)
            and edges[0] == 0
            and (edges[1:] >= edges[:-1]).all()
            and len(self._documents) == facts.documents
        )
        if not whole:
            raise damaged()
        self._edges = edges.tolist()

    def __repr__(self) -> str:
        return f"StoredBM25({len(self)} documents, k1={self.k1:g}, b={self.b:g})"

    def _postings(self, term: int) -> tuple[IntArray, IntArray]:
        docs, weights = super()._postings(term)
        if len(docs) and not 0 <= docs.min() <= docs.max() < len(self):
            raise damaged()
        return docs.astype(np.int64), weights.astype(np.int64)


class StoredDense(Dense):
    """Dense search over an index on disk: the same answers as :class:`Dense`."""

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder).expanduser()
        facts = index_facts(folder)
        if facts.encoder is None:
            raise UsageError(f"the index {folder.name} has no vectors: {HOW} --encoder NAME")
        self.encoder = load_encoder(facts.encoder)
        if self.encoder.fingerprint != facts.encoder_fingerprint:
            raise SottovoceError(f"the encoder of {folder.name} changed since then: {HOW}, anew")
        self.name = f"stored-dense:{self.encoder.name}"
        self._documents = StoredDocuments(folder, facts.sha256)
        try:
            vectors: Float32Array = read_array(folder / VECTORS)
        except (OSError, ValueError):
            raise damaged() from None
        if vectors.shape != (len(self._documents), self.encoder.dimension):
            raise damaged()
        self._use(np.asarray(vectors))
