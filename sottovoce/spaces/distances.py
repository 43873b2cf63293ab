"""Exact distances in float64: from words to a set of words, and all words within a distance.

Distances come in tiles small enough for the processor's cache, so that what is done with them costs
little beside the matrix product that gives them. The squared distance |w|^2 + |y|^2 - 2 w.y loses
digits where two words nearly coincide; those few are computed again from the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from sottovoce.spaces.scan import FloatBound
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float32Array, Float64Array, IntArray

Measure = Literal["euclidean", "angle", "product"]

WORDS_AT_A_TIME = 256
TARGETS_AT_A_TIME = 1024
PAIRS_AT_A_TIME = 256
TOO_CLOSE = 1e-4
"""Below this share of |w|^2, a squared distance is computed again from the difference."""
SCANNED_AT_A_TIME = 2048
MANY = 256
"""For more near words than this, distances to all words cost less than to each of these."""


class Distances:
    """Distances from any words of a space to ``targets``, ids of its words in ascending order.

    ``euclidean`` is |w - y|, ``angle`` is 1 - cos(w, y), ``product`` is both multiplied. A word
    without direction (the zero vector) has cosine 0 to every other word. The distance of a word
    to itself is exactly 0.
    """

    def __init__(self, space: WordSpace, targets: IntArray, measure: Measure = "euclidean") -> None:
        self.space, self.targets, self.measure = space, targets, measure

    def tiles(self, words: IntArray) -> Iterator[tuple[int, Float64Array]]:
        """Distances of the words to blocks of targets, each with the place of its first target.

        A tile may be written to, and is overwritten when the next one is asked for.
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
            rows = slice(begin, begin + WORDS_AT_A_TIME)
            for start, tile in self.tiles(words[rows]):
                out[rows, start : start + tile.shape[1]] = tile
        return out

    def pairs(self, words: IntArray, partners: IntArray) -> Float64Array:
        out = np.empty(len(words))
        for start in range(0, len(words), PAIRS_AT_A_TIME):
            rows = slice(start, start + PAIRS_AT_A_TIME)
            out[rows] = self._few_pairs(words[rows], partners[rows])
        return out

    def _few_pairs(self, words: IntArray, partners: IntArray) -> Float64Array:
        left, right = self._vectors[words].astype(np.float64), self._vectors[partners]
        out = np.ones(len(words))
        if self.measure != "euclidean":
            norms = np.sqrt(self._squares[words] * self._squares[partners])
            out -= np.einsum("ij,ij->i", left, right) / np.where(norms > 0, norms, 1.0)
            out = np.where(words == partners, 0.0, np.maximum(out, 0.0))
        if self.measure != "angle":
            left -= right
            out *= np.sqrt(np.einsum("ij,ij->i", left, left))
        return out

    @cached_property
    def _vectors(self) -> Float32Array:
        return np.asarray(self.space.vectors)

    @cached_property
    def _squares(self) -> Float64Array:
        """|w|^2 of every word of the space; cheap beside a tile for each of them."""
        out = np.empty(self.space.size)
        for start in range(0, len(out), TARGETS_AT_A_TIME):
            block = self._vectors[start : start + TARGETS_AT_A_TIME].astype(np.float64)
            np.einsum("ij,ij->i", block, block, out=out[start : start + len(block)])
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
            # Squared distances that have lost digits are computed again, pair by pair.
            limits = TOO_CLOSE * self._squares[words]
            close = np.flatnonzero(tile.min(axis=1) <= limits)
            row, column = np.nonzero(tile[close] <= limits[close, None])
            tile[close[row], column] = self.pairs(words[close[row]], targets[column]) ** 2
            return np.sqrt(tile, out=tile)
        np.maximum(tile, 0.0, out=tile)
        if self.measure == "product":
            # The tile holds angles; multiply them by the Euclidean distances.
            euclidean = Distances(self.space, targets)
            euclidean._squares = self._squares
            tile *= euclidean.rows(words)
        tile[words[:, None] == targets] = 0.0
        return tile


def smallest(rows: Float64Array, count: int) -> IntArray:
    """The places of the ``count`` smallest entries of each row, ascending; ties by place."""
    if count < rows.shape[1]:
        places = np.sort(np.argpartition(rows, count - 1, axis=1)[:, :count], axis=1)
    else:
        places = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    order = np.argsort(np.take_along_axis(rows, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


class Ranges:
    """Searches ``targets``, words of a space in ascending order, by Euclidean distance."""

    def __init__(self, space: WordSpace, targets: IntArray) -> None:
        self.space, self.targets = space, targets
        self.distances = Distances(space, targets)

    @cached_property
    def _operand(self) -> Float32Array:
        everything = len(self.targets) == self.space.size
        return self.space.folded if everything else self.space.folded[self.targets]

    @cached_property
    def _bound(self) -> FloatBound:
        return FloatBound(self._operand, True)

    def within(
        self, words: IntArray, reaches: Float64Array, expected: IntArray
    ) -> list[tuple[IntArray, Float64Array]]:
        """Places and distances of the targets within ``reaches`` of each word, in order of place.

        ``expected`` says about how many there will be; it decides how they are looked for, not
        what is found.
        """
        near: list[tuple[IntArray, Float64Array]] = [(words[:0], reaches[:0])] * len(words)
        for rows, search in (
            (np.flatnonzero(expected > MANY), self._among_all),
            (np.flatnonzero(expected <= MANY), self._by_scan),
        ):
            if len(rows):
                for row, result in zip(rows, search(words[rows], reaches[rows]), strict=True):
                    near[row] = result
        return near

    def _among_all(
        self, words: IntArray, reaches: Float64Array
    ) -> list[tuple[IntArray, Float64Array]]:
        """Compare the distances to all targets, tile by tile."""
        pieces: list[list[tuple[IntArray, Float64Array]]] = [[] for _ in words]
        for start, tile in self.distances.tiles(words):
            near = tile <= reaches[:, None]
            for row in range(len(words)):
                places = np.flatnonzero(near[row])
                pieces[row].append((start + places, tile[row, places]))
        return [
            (np.concatenate([p for p, _ in row]), np.concatenate([d for _, d in row]))
            for row in pieces
        ]

    def _by_scan(
        self, words: IntArray, reaches: Float64Array
    ) -> list[tuple[IntArray, Float64Array]]:
        """Scan in float32 for the targets that may be near, then compute their distances."""
        points = np.ascontiguousarray(self.space.vectors[words])
        queries = np.ascontiguousarray(self._bound.queries(points).T)
        squares = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        # |w - y| <= r is w.y - |y|^2 / 2 >= (|w|^2 - r^2) / 2, here with the scan's error.
        floors = ((squares - reaches**2) / 2 - self._bound.slack(points)).astype(np.float32)
        buffer = np.empty((SCANNED_AT_A_TIME, len(words)), dtype=np.float32)
        rows, places = [words[:0]], [words[:0]]
        for start in range(0, len(self.targets), SCANNED_AT_A_TIME):
            block = self._operand[start : start + SCANNED_AT_A_TIME]
            scores = np.matmul(block, queries, out=buffer[: len(block)])
            # Words without a near target in this block are left out at once.
            hit = np.flatnonzero(scores.max(axis=0) >= floors)
            row, place = np.nonzero(floors[hit, None] <= scores[:, hit].T)
            rows.append(hit[row])
            places.append(start + place)
        # The pairs of each word together, places ascending.
        row, place = np.concatenate(rows), np.concatenate(places)
        order = np.argsort(row, kind="stable")
        row, place = row[order], place[order]
        # Exact distances decide, and each word gets its own.
        distances = self.distances.pairs(words[row], self.targets[place])
        near = distances <= reaches[row]
        ends = np.cumsum(np.bincount(row[near], minlength=len(words)))[:-1]
        return list(zip(np.split(place[near], ends), np.split(distances[near], ends), strict=True))
