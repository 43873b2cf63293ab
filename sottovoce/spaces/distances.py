"""Exact distances from words to a set of words, in float64, tile by tile.

A tile is small enough for the processor's cache, so that what is done with distances costs little
beside the matrix product that gives them. The squared distance |w|^2 + |y|^2 - 2 w.y loses digits
where two words nearly coincide; those few are computed again from the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float64Array, IntArray

Measure = Literal["euclidean", "angle", "product"]

WORDS_AT_A_TIME = 256
TARGETS_AT_A_TIME = 1024
PAIRS_AT_A_TIME = 256
TOO_CLOSE = 1e-4
"""Below this share of |w|^2, a squared distance is computed again from the difference."""


class Distances:
    """Distances from any words of a space to its words ``targets``, which ascend.

    ``euclidean`` is |w - y|, ``angle`` is 1 - cos(w, y), ``product`` is both multiplied. A word
    without direction (the zero vector) has cosine 0 to every other word. The distance of a word
    to itself is exactly 0.
    """

    def __init__(self, space: WordSpace, targets: IntArray, measure: Measure = "euclidean") -> None:
        self.space, self.targets, self.measure = space, targets, measure

    def tiles(self, words: IntArray) -> Iterator[tuple[int, Float64Array]]:
        """Distances of the words to some targets after the other, with the first one's place.

        Each tile may be written to, and is gone when the next one is asked for.
        """
        left = self._factor(words, np.empty((len(words), self._width)))
        self._prepare_left(left, words)
        buffer = np.empty((len(words), TARGETS_AT_A_TIME))
        scratch = np.empty((TARGETS_AT_A_TIME, self._width))
        for start in range(0, len(self.targets), TARGETS_AT_A_TIME):
            targets = self.targets[start : start + TARGETS_AT_A_TIME]
            right = self._factor(targets, scratch[: len(targets)])
            tile = np.matmul(left, right.T, out=buffer[:, : len(targets)])
            yield start, self._settled(tile, words, targets)

    def rows(self, words: IntArray) -> Float64Array:
        """Distances of each word to all targets, (words, targets)."""
        out = np.empty((len(words), len(self.targets)))
        for begin in range(0, len(words), WORDS_AT_A_TIME):
            some = slice(begin, begin + WORDS_AT_A_TIME)
            for start, tile in self.tiles(words[some]):
                out[some, start : start + tile.shape[1]] = tile
        return out

    def pairs(self, words: IntArray, others: IntArray) -> Float64Array:
        """Distances of words to others, one by one."""
        out = np.empty(len(words))
        for start in range(0, len(words), PAIRS_AT_A_TIME):
            some = slice(start, start + PAIRS_AT_A_TIME)
            out[some] = self._few_pairs(words[some], others[some])
        return out

    def _few_pairs(self, words: IntArray, others: IntArray) -> Float64Array:
        left, right = self._vectors[words].astype(np.float64), self._vectors[others]
        out = np.ones(len(words))
        if self.measure != "euclidean":
            norms = np.sqrt(self._squares[words] * self._squares[others])
            out -= np.einsum("ij,ij->i", left, right) / np.where(norms > 0, norms, 1.0)
            out = np.where(words == others, 0.0, np.maximum(out, 0.0))
        if self.measure != "angle":
            left -= right
            out *= np.sqrt(np.einsum("ij,ij->i", left, left))
        return out

    @cached_property
    def _vectors(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.asarray(self.space.vectors)

    @cached_property
    def _squares(self) -> Float64Array:
        """|w|^2 of every word of the space; cheap beside a tile for each of them."""
        out = np.empty(self.space.size)
        for start in range(0, len(out), TARGETS_AT_A_TIME):
            some = self._vectors[start : start + TARGETS_AT_A_TIME].astype(np.float64)
            np.einsum("ij,ij->i", some, some, out=out[start : start + len(some)])
        return out

    @property
    def _width(self) -> int:
        return self.space.dimension + 2

    def _factor(self, words: IntArray, out: Float64Array) -> Float64Array:
        """Rows [y, 1, |y|^2], or [y / |y|, 1, 0]: see :meth:`_prepare_left`."""
        contiguous = words[-1] - words[0] + 1 == len(words)
        rows = slice(words[0], words[-1] + 1) if contiguous else words
        out[:, :-2] = self._vectors[rows]
        out[:, -2] = 1.0
        out[:, -1] = self._squares[rows]
        if self.measure != "euclidean":
            norms = np.sqrt(out[:, -1])
            out[:, :-2] /= np.where(norms > 0, norms, 1.0)[:, None]
            out[:, -1] = 0.0
        return out

    def _prepare_left(self, left: Float64Array, words: IntArray) -> None:
        """Make it [-2 w, |w|^2, 1], or [-w / |w|, 1, 0], so that products are distances at once."""
        euclidean = self.measure == "euclidean"
        left[:, :-2] *= -2.0 if euclidean else -1.0
        left[:, -2] = self._squares[words] if euclidean else 1.0
        left[:, -1] = 1.0

    def _settled(self, tile: Float64Array, words: IntArray, targets: IntArray) -> Float64Array:
        """Distances out of products, exact where two words are close or the same."""
        if self.measure == "euclidean":
            limits = TOO_CLOSE * self._squares[words]
            close = np.flatnonzero(tile.min(axis=1) <= limits)
            row, column = np.nonzero(tile[close] <= limits[close, None])
            tile[close[row], column] = self.pairs(words[close[row]], targets[column]) ** 2
            return np.sqrt(tile, out=tile)
        np.maximum(tile, 0.0, out=tile)
        if self.measure == "product":
            euclidean = Distances(self.space, targets)
            euclidean._squares = self._squares
            tile *= euclidean.rows(words)
        tile[words[:, None] == targets] = 0.0
        return tile
