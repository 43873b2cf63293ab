"""Postings on disk: built in bounded memory, read through a memory map.

Documents are read once. The terms of some millions of words at a time are sorted and written as a
run; when all are read, and it is known how many documents hold each term, every run is put where
its terms belong. Weights are those that the engine in memory computes, to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from sottovoce.collections import Document
from sottovoce.engines.base import whole_text
from sottovoce.engines.lexical import UNITS, bm25_weights
from sottovoce.errors import UsageError
from sottovoce.text.words import content_words, stems
from sottovoce.types import IntArray

TERMS, EDGES, DOCS, WEIGHTS = "terms.txt", "edges.npy", "docs.npy", "weights.npy"
WORDS_AT_A_TIME = 1 << 22
"""Words whose postings are sorted in memory."""
MOST = 2**31 - 1
"""Documents, and units of a weight, are kept in 32 bits."""


class PostingsWriter:
    """The postings of documents that come one after the other, for BM25."""

    def __init__(self, folder: Path, language: str, words_at_a_time: int = WORDS_AT_A_TIME) -> None:
        self._folder, self._language = folder, language
        self._words_at_a_time = words_at_a_time
        self._terms: dict[str, int] = {}
        self._lengths = array("i")
        self._df = np.zeros(0, dtype=np.int64)
        self._waiting, self._places = array("i"), array("i")
        self._runs: list[Path] = []

    def add(self, document: Document) -> None:
        document_stems = stems(content_words(whole_text(document), self._language), self._language)
        terms = self._terms
        self._waiting.extend([terms.setdefault(stem, len(terms)) for stem in document_stems])
        self._places.extend([len(self._lengths)] * len(document_stems))
        self._lengths.append(len(document_stems))
        if len(self._waiting) >= self._words_at_a_time:
            self._write_run()

    def _write_run(self) -> None:
        """Sort what waits by term and document, and write it with its frequencies."""
        size = len(self._lengths)
        keys = np.asarray(self._waiting, dtype=np.int64)
        keys *= size
        keys += np.asarray(self._places, dtype=np.int64)
        keys, counts = np.unique(keys, return_counts=True)
        terms, docs = np.divmod(keys, size)
        self._df = np.bincount(terms, minlength=len(self._terms)) + np.pad(
            self._df, (0, len(self._terms) - len(self._df))
        )
        run = self._folder / f".run{len(self._runs)}.npy"
        np.save(run, np.stack([terms, docs, counts]).astype(np.int32))
        self._runs.append(run)
        self._waiting, self._places = array("i"), array("i")

    def finish(self, k1: float, b: float) -> None:
        """Put all runs where they belong, and write the terms."""
        self._write_run()
        if len(self._lengths) > MOST:
            raise UsageError(f"more than {MOST:,} documents: split the collection")
        lengths = np.asarray(self._lengths, dtype=np.int64)
        edges = np.concatenate(([0], np.cumsum(self._df)))
        np.save(self._folder / EDGES, edges)
        shape = (int(edges[-1]),)
        all_docs = open_memmap(self._folder / DOCS, "w+", np.dtype(np.int32), shape)
        all_weights = open_memmap(self._folder / WEIGHTS, "w+", np.dtype(np.int32), shape)
        weigh = bm25_weights(self._df, lengths, k1, b)
        free = edges[:-1].copy()
        for run in self._runs:
            self._place_run(run, free, weigh, all_docs, all_weights)
            run.unlink()
        all_docs.flush()
        all_weights.flush()
        with (self._folder / TERMS).open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"{term}\n" for term in self._terms)

    def _place_run(
        self,
        run: Path,
        free: IntArray,
        weigh: Callable[[IntArray, IntArray, IntArray], np.ndarray],
        all_docs: np.ndarray,
        all_weights: np.ndarray,
    ) -> None:
        """The postings of a run, behind those of earlier documents; ``free`` is where."""
        terms, docs, counts = np.load(run).astype(np.int64)
        if not len(terms):
            return
        held, first, how_many = np.unique(terms, return_index=True, return_counts=True)
        places = np.arange(len(terms)) + np.repeat(free[held] - first, how_many)
        free[held] += how_many
        weights = np.maximum(np.rint(weigh(terms, counts, docs) * UNITS), 1)
        if weights.max() > MOST:
            raise UsageError("the collection is too large for weights of 32 bits")
        all_docs[places] = docs
        all_weights[places] = weights


def read_terms(folder: Path) -> dict[str, int]:
    """The number of each term; ``ValueError`` if one comes twice."""
    count, terms = 0, dict[str, int]()
    with (folder / TERMS).open(encoding="utf-8", newline="\n") as lines:
        for count, line in enumerate(lines, start=1):
            terms[line[:-1]] = count - 1
    if len(terms) != count:
        raise ValueError
    return terms


def write_postings(documents: Iterable[Document], writer: PostingsWriter) -> int:
    """Add all documents; answers how many there are."""
    count = 0
    for document in documents:
        writer.add(document)
        count += 1
    return count
