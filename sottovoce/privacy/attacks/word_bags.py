"""Texts as bags of words, and vectors of texts that add up those of their words.

The vector of a text is the sum of its words' vectors, so its product with any other vector is the
sum of the words' products: a log is compared with a release by one product a word, and vectors of
queries are never written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.spaces.space import WordSpace
from sottovoce.text.words import words
from sottovoce.types import UNKNOWN, BoolArray, Float64Array, IntArray

ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, repr=False)
class Bags:
    """How often each text has each word; the order of the words is lost."""

    numbers: dict[str, int]
    """The column of each word."""
    counts: Any
    """A sparse matrix, (texts, words)."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> Bags:
        """Cut texts into words as a search engine does."""
        numbers: dict[str, int] = {}
        columns: list[int] = []
        starts = [0]
        for text in texts:
            columns += [numbers.setdefault(word, len(numbers)) for word in words(text)]
            starts.append(len(columns))
        counts = csr_matrix(
            (np.ones(len(columns)), np.array(columns, dtype=np.int32), starts),
            shape=(len(texts), len(numbers)),
        )
        counts.sum_duplicates()
        return cls(numbers, counts)

    def __repr__(self) -> str:
        return f"Bags({len(self)} texts, {len(self.numbers)} words)"

    def __len__(self) -> int:
        return int(self.counts.shape[0])


@dataclass(frozen=True)
class WordVectors:
    """A vector for each word: its vector in a space, and a direction that no other word has.

    name
        What an attack by these vectors is called.
    center
        What is subtracted from vectors of the space.
    listed, unlisted
        How far a word goes in the direction of its own: one that the space lists, and another.
    """

    name: str
    space: WordSpace | None = None
    center: Float64Array | None = None
    listed: float = 0.0
    unlisted: float = 0.0


class TextVectors:
    """The vectors of texts, as sums of words' vectors."""

    def __init__(self, bags: Bags, vectors: WordVectors) -> None:
        self.bags, self.vectors = bags, vectors
        space = vectors.space
        names = list(bags.numbers)
        self._ids = np.full(len(names), UNKNOWN) if space is None else space.ids(names)
        self.own: Float64Array = np.where(self._is_listed, vectors.listed, vectors.unlisted)
        """How far each word goes in the direction of its own."""

    @property
    def _is_listed(self) -> BoolArray:
        return np.asarray(self._ids != UNKNOWN)

    @property
    def dimension(self) -> int:
        """Of the space; directions of words' own come on top of it."""
        return 0 if self.vectors.space is None else self.vectors.space.dimension

    def in_space(self, columns: IntArray) -> Float64Array:
        """The vectors of some words in the space, zeros for those that it lacks."""
        out = np.zeros((len(columns), self.dimension))
        space, ids = self.vectors.space, self._ids[columns]
        listed = ids != UNKNOWN
        if space is not None and listed.any():
            out[listed] = space.vectors[ids[listed]]
            if self.vectors.center is not None:
                out[listed] -= self.vectors.center
        return out

    def sums_in_space(self) -> Iterator[tuple[slice, Float64Array]]:
        """The texts' vectors in the space, some texts at a time."""
        for start in range(0, len(self.bags), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            counts = self.bags.counts[rows]
            columns = np.unique(counts.indices)
            yield rows, np.asarray(counts[:, columns] @ self.in_space(columns))

    @cached_property
    def lengths(self) -> Float64Array:
        """The length of each text's vector; 1 for a vector of zeros."""
        squares = np.zeros(len(self.bags))
        if self.own.any():
            squares += self.bags.counts.power(2) @ self.own**2
        if self.dimension:
            for rows, sums in self.sums_in_space():
                squares[rows] += (sums * sums).sum(axis=1)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def mean_word(self) -> tuple[Float64Array, float]:
        """The mean vector of the words that the space lists, as often as they occur.

        Beside it, how far such a word is from it, on average.
        """
        times = np.asarray(self.bags.counts.sum(axis=0)).ravel() * self._is_listed
        total, mean = max(times.sum(), 1.0), np.zeros(self.dimension)
        blocks = [
            np.arange(start, min(start + ROWS_AT_A_TIME, len(times)))
            for start in range(0, len(times), ROWS_AT_A_TIME)
        ]
        for columns in blocks:
            mean += times[columns] @ self.in_space(columns) / total
        away = 0.0
        for columns in blocks:
            distances = np.sqrt(((self.in_space(columns) - mean) ** 2).sum(axis=1))
            away += float(times[columns] @ distances) / total
        return mean, away

    def cosines(self, points: Points) -> Float64Array:
        """Of each text with each point, (texts, points)."""
        products = np.zeros((len(self.own), len(points)))
        if self.dimension:
            for start in range(0, len(self.own), ROWS_AT_A_TIME):
                columns = np.arange(start, min(start + ROWS_AT_A_TIME, len(self.own)))
                products[columns] = self.in_space(columns) @ points.in_space.T
        numbers = self.bags.numbers
        columns = np.array([numbers.get(word, UNKNOWN) for word in points.numbers], dtype=np.int64)
        shared = np.flatnonzero(columns != UNKNOWN)
        if self.own.any() and len(shared):
            columns = columns[shared]
            products[columns] += self.own[columns, None] * points.own[:, shared].toarray().T
        return np.asarray(self.bags.counts @ products / self.lengths[:, None])


@dataclass(frozen=True, repr=False)
class Points:
    """Directions of length 1 to compare texts with."""

    in_space: Float64Array
    own: Any
    """In the directions of words' own: a sparse matrix, (points, words)."""
    numbers: dict[str, int]
    """The columns of these words."""

    def __len__(self) -> int:
        return len(self.in_space)


def centroids(lists: Sequence[Sequence[str]], vectors: WordVectors) -> Points:
    """The directions of the means of lists of texts, each text at length 1."""
    bags = Bags.of([text for listed in lists for text in listed])
    texts = TextVectors(bags, vectors)
    shares = np.concatenate([np.full(len(listed), 1 / max(len(listed), 1)) for listed in lists])
    starts = np.cumsum([0, *map(len, lists)])
    mean = csr_matrix(
        (shares / texts.lengths, np.arange(len(bags)), starts), shape=(len(lists), len(bags))
    )
    in_space = np.zeros((len(lists), texts.dimension))
    if texts.dimension:
        for rows, sums in texts.sums_in_space():
            in_space += mean[:, rows] @ sums
    directions = (mean @ bags.counts).multiply(texts.own[None, :]).tocsr()
    squares = (in_space * in_space).sum(axis=1)
    squares += np.asarray(directions.power(2).sum(axis=1)).ravel()
    scale = 1 / np.sqrt(np.where(squares > 0, squares, 1.0))
    return Points(
        in_space * scale[:, None], directions.multiply(scale[:, None]).tocsr(), bags.numbers
    )
