"""The words nearest to every sum of a word's vector and a shift: exact, many times as fast.

Nearest to c + s is the word v with the largest c.v - |v|^2 / 2 + s.v. The first part is the same
for all shifts, the second one for all words: so one product with all words serves every word that
is moved by the same shift, and for each of them only a sum and its largest entries are left.

Sums are float32. Where two words are nearer to each other than rounding can tell, the exact search
decides, which is also what answers with distances.
"""

from __future__ import annotations

import numpy as np

from sottovoce.arrays import accumulated_error, row_norms
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map
from sottovoce.types import BoolArray, Float32Array, Float64Array, IntArray

SHIFTS_AT_A_TIME = 64
TILE = 1024
"""Words looked at together: their scores for all shifts stay in the cache."""


class MovedWords:
    """Some words of a space, to be moved by shifts."""

    def __init__(self, space: WordSpace, words: IntArray) -> None:
        self.space, self.words = space, words
        everything = len(space.output) == space.listed.size
        self._folded = space.listed.folded
        if not everything:
            self._folded = self._folded[space.output.ids]
        self._centres = np.ascontiguousarray(space.vectors[words])
        # Scores before any shift, (words, tiles, TILE); beyond the last word nothing is near.
        size = len(self._folded)
        starts = np.full((len(words), -(-size // TILE) * TILE), -np.inf, dtype=np.float32)
        np.matmul(self._centres, self._folded[:, :-1].T, out=starts[:, :size])
        starts[:, :size] += self._folded[:, -1]
        self._starts = starts.reshape(len(words), -1, TILE)
        self._longest = float(np.sqrt(-2.0 * self._folded[:, -1].min()))

    def nearest(self, shifts: Float64Array, k: int) -> tuple[IntArray, Float64Array]:
        """Ids and distances of the ``k`` words of the output nearest to each sum, nearest first.

        Both have the shape (words, shifts, k).
        """
        shape = (len(self.words), len(shifts), k)
        places = np.empty(shape, dtype=np.int64)
        doubtful = np.empty(shape[:2], dtype=np.bool_)
        for start in range(0, len(shifts), SHIFTS_AT_A_TIME):
            part = slice(start, start + SHIFTS_AT_A_TIME)
            places[:, part], doubtful[:, part] = self._block(shifts[part], k)
        distances = self._distances(places, shifts)
        rows, columns = np.nonzero(doubtful)
        if len(rows):
            points = self._sums(rows, shifts[columns])
            answer = self.space.nearest_output.top(points, k)
            places[rows, columns], distances[rows, columns] = answer
        return self.space.output.ids[places], distances

    def _block(self, shifts: Float64Array, k: int) -> tuple[IntArray, BoolArray]:
        """The places of the nearest words, and where rounding leaves them in doubt."""
        queries = shifts.astype(np.float32)
        tile_count = self._starts.shape[1]
        products = np.zeros((tile_count, len(shifts), TILE), dtype=np.float32)
        peaks = np.empty((len(self.words), len(shifts), tile_count), dtype=np.float32)

        def look_at(tile: int) -> None:
            """The best score of a tile, for all sums: its products stay in the cache."""
            vectors = self._folded[tile * TILE : (tile + 1) * TILE, :-1]
            products[tile, :, : len(vectors)] = queries @ vectors.T
            sums = np.empty((len(shifts), TILE), dtype=np.float32)
            for word, starts in enumerate(self._starts[:, tile]):
                np.add(products[tile], starts, out=sums)
                np.maximum.reduce(sums, axis=1, out=peaks[word, :, tile])

        parallel_map(look_at, range(tile_count))
        # What a sum may be off by: of products, of the shift, and of the sum that is released.
        lengths = row_norms(self._centres)[:, None] + 2 * row_norms(shifts)
        error = accumulated_error(shifts.shape[1]) * self._longest * (lengths + self._longest)
        places = np.empty((len(self.words), len(shifts), k), dtype=np.int64)
        doubtful = np.empty((len(self.words), len(shifts)), dtype=np.bool_)

        def find(word: int) -> None:
            """The k + 1 best words lie in the k + 1 best tiles, which are looked at once more."""
            best = min(k + 1, tile_count)
            near = np.argpartition(-peaks[word], best - 1, axis=1)[:, :best]
            rows = np.arange(len(shifts))
            scores = products[near, rows[:, None]] + self._starts[word, near]
            scores = scores.reshape(len(shifts), -1)
            ranked = np.empty((len(shifts), k + 1), dtype=np.float32)
            for rank in range(k + 1):
                place = scores.argmax(axis=1)
                ranked[:, rank] = scores[rows, place]
                scores[rows, place] = -np.inf
                if rank < k:
                    tile, inside = np.divmod(place, TILE)
                    places[word, :, rank] = near[rows, tile] * TILE + inside
            gaps = (ranked[:, :-1] - ranked[:, 1:]).min(axis=1)
            doubtful[word] = ~(gaps > 2 * error[word])

        parallel_map(find, range(len(self.words)))
        return places, doubtful

    def _sums(self, rows: IntArray, shifts: Float64Array) -> Float32Array:
        return np.asarray(shifts + self._centres[rows], dtype=np.float32)

    def _distances(self, places: IntArray, shifts: Float64Array) -> Float64Array:
        """From each sum to its words, in float64."""
        distances = np.empty(places.shape)
        for word, of_word in enumerate(places):
            points = self._sums(np.full(len(shifts), word), shifts).astype(np.float64)
            for rank, column in enumerate(of_word.T):
                distances[word, :, rank] = row_norms(self._folded[column, :-1] - points)
        return distances
