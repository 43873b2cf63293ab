"""Re-ranking: order the pool by the true query, which never leaves this machine."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np

from sottovoce.collections import Document
from sottovoce.encoders import Encoder, corpus_vectors, load_encoder
from sottovoce.encoders.base import VECTORS_KEPT, query_side
from sottovoce.engines import BM25
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.search.pooling import Pooled
from sottovoce.types import Float32Array, Float64Array, Progress


class Ranked(NamedTuple):
    """A document of the final answer; ``rank`` counts from 1."""

    doc_id: str
    rank: int
    score: float
    title: str
    snippet: str
    found_by: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Ranked(rank={self.rank}, score={self.score:g})"


class Reranker(Protocol):
    """Anything that says how well texts answer a query."""

    name: str

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """One number a text, the greater the better."""
        ...


def rerank(
    query: str, pooled: Sequence[Pooled], reranker: Reranker, texts: Sequence[str]
) -> list[Ranked]:
    """Order a pool by the scores of its texts, ``texts[i]`` being that of ``pooled[i]``.

    Ties keep the order of the pool, and so do scores that are not numbers, at the end.
    """
    if len(texts) != len(pooled):
        raise UsageError(f"give one text a document: {len(pooled)} documents, {len(texts)} texts")
    if not pooled:
        return []
    scores = reranker.scores(query, texts)
    if scores.shape != (len(texts),):
        raise SottovoceError(f"re-ranker '{reranker.name}' did not answer one score a text")
    order = np.argsort(-scores, kind="stable").tolist()
    return [
        _ranked(pooled[place], rank, float(scores[place]))
        for rank, place in enumerate(order, start=1)
    ]


def _ranked(pooled: Pooled, rank: int, score: float) -> Ranked:
    return Ranked(pooled.doc_id, rank, score, pooled.title, pooled.snippet, pooled.found_by)


def load_reranker(name: str = "auto") -> Reranker:
    """Load a re-ranker by name.

    ``light`` and ``strong`` compare vectors, ``auto`` with the strong encoder where it is
    installed, ``bm25`` compares words, ``none`` keeps the order of the pool. Any other name is
    taken for an encoder.
    """
    if name == "bm25":
        return BM25Reranker()
    if name == "none":
        return PoolOrder()
    try:
        return EncoderReranker(load_encoder(name))
    except UsageError as error:
        raise UsageError(f"{error}; a re-ranker may also be bm25 or none") from None


class EncoderReranker:
    """Inner products of vectors; those of documents are kept, those of queries never."""

    def __init__(self, encoder: Encoder, keep: int = VECTORS_KEPT) -> None:
        if keep < 0:
            raise UsageError(f"the number of vectors to keep cannot be negative, got {keep}")
        self.encoder, self.keep = encoder, keep
        self.name = encoder.name
        self._prepared: dict[bytes, Float32Array] = {}
        self._kept: OrderedDict[bytes, Float32Array] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"EncoderReranker({self.encoder!r}, {len(self._kept)} vectors kept)"

    def prepare(self, texts: Sequence[str], progress: Progress | None = None) -> None:
        """Get the vectors of a whole public collection ready: from disk, or computed once."""
        vectors = corpus_vectors(self.encoder, texts, progress)
        self._prepared.update(zip(map(_key, texts), vectors, strict=True))

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """The inner product of the query and each text."""
        if not texts:
            return np.zeros(0)
        (query_vector,) = query_side(self.encoder).encode([query]).astype(np.float64)
        return np.asarray((self._vectors(texts).astype(np.float64) * query_vector).sum(axis=1))

    def _vectors(self, texts: Sequence[str]) -> Float32Array:
        """The vectors of texts; only those that are not kept are computed."""
        keys = [_key(text) for text in texts]
        vectors = {key: self._prepared[key] for key in keys if key in self._prepared}
        with self._lock:
            vectors |= {key: self._kept[key] for key in keys if key in self._kept}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        # Each vector is a copy: a row of the batch would keep the whole batch in memory.
        rows = (row.copy() for row in self.encoder.encode(list(new.values())))
        vectors.update(zip(new, rows, strict=True))
        with self._lock:
            for key in dict.fromkeys(keys):
                if key not in self._prepared:
                    self._kept[key] = vectors[key]
                    self._kept.move_to_end(key)
            while len(self._kept) > self.keep:
                self._kept.popitem(last=False)
        return np.stack([vectors[key] for key in keys])


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class BM25Reranker:
    """BM25 with the pool as the whole collection; 0 for texts that share no word."""

    name = "bm25"

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """The BM25 score of each text."""
        engine = BM25(Document(str(at), "", text) for at, text in enumerate(texts))
        scores = np.zeros(len(texts))
        for hit in engine.search([query], len(texts))[0]:
            scores[int(hit.doc_id)] = hit.score
        return scores


class PoolOrder:
    """No re-ranking: the score is 1 / place in the pool."""

    name = "none"

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """One over the place of each text."""
        return 1.0 / np.arange(1, len(texts) + 1)
