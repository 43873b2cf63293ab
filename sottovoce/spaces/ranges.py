"""All words within a distance of a word: a float32 scan that misses none, then exact distances."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sottovoce.spaces.distances import Distances
from sottovoce.spaces.scan import FloatBound
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float32Array, Float64Array, IntArray

TARGETS_AT_A_TIME = 2048
MANY = 256
"""For more near words than this, distances to all words cost less than to each of these."""


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
        found: list[tuple[IntArray, Float64Array]] = [(words[:0], reaches[:0])] * len(words)
        for some, search in (
            (np.flatnonzero(expected > MANY), self._among_all),
            (np.flatnonzero(expected <= MANY), self._by_scan),
        ):
            if len(some):
                for row, result in zip(some, search(words[some], reaches[some]), strict=True):
                    found[row] = result
        return found

    def _among_all(
        self, words: IntArray, reaches: Float64Array
    ) -> list[tuple[IntArray, Float64Array]]:
        pieces: list[list[tuple[IntArray, Float64Array]]] = [[] for _ in words]
        for start, tile in self.distances.tiles(words):
            near = tile <= reaches[:, None]
            for row in range(len(words)):
                places = np.flatnonzero(near[row])
                pieces[row].append((start + places, tile[row, places]))
        return [
            (np.concatenate([p for p, _ in own]), np.concatenate([d for _, d in own]))
            for own in pieces
        ]

    def _by_scan(
        self, words: IntArray, reaches: Float64Array
    ) -> list[tuple[IntArray, Float64Array]]:
        points = np.ascontiguousarray(self.space.vectors[words])
        queries = np.ascontiguousarray(self._bound.queries(points).T)
        squares = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        # |w - y| <= r is w.y - |y|^2 / 2 >= (|w|^2 - r^2) / 2, here with the scan's error.
        floors = ((squares - reaches**2) / 2 - self._bound.slack(points)).astype(np.float32)
        buffer = np.empty((TARGETS_AT_A_TIME, len(words)), dtype=np.float32)
        rows, places = [words[:0]], [words[:0]]
        for start in range(0, len(self.targets), TARGETS_AT_A_TIME):
            block = self._operand[start : start + TARGETS_AT_A_TIME]
            scores = np.matmul(block, queries, out=buffer[: len(block)])
            hit = np.flatnonzero(scores.max(axis=0) >= floors)
            row, place = np.nonzero(floors[hit, None] <= scores[:, hit].T)
            rows.append(hit[row])
            places.append(start + place)
        row, place = np.concatenate(rows), np.concatenate(places)
        order = np.argsort(row, kind="stable")
        row, place = row[order], place[order]
        far = self.distances.pairs(words[row], self.targets[place])
        near = far <= reaches[row]
        ends = np.cumsum(np.bincount(row[near], minlength=len(words)))[:-1]
        return list(zip(np.split(place[near], ends), np.split(far[near], ends), strict=True))
