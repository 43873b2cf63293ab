"""The words nearest to every sum of a word's vector and a shift: exact, many times as fast.

Nearest to c + s is the word v with the largest c.v - |v|^2 / 2 + s.v. The last part is the same for
all words c, so one product with all words serves every word that is moved by the same shift; and
the same shift at another length has the same products, times a number (``Shifts``).

Let m be the mean of the words c. A score is (m.v - |v|^2 / 2 + s.v) + (c - m).v. The first part is
computed once a shift. The second is large for few words v, which are looked at for every shift; for
all others there is a bound, and only those whose first part is large enough for it are looked at.

Sums are float32. All words that come nearer to the best than rounding can tell apart are decided as
in the exact search, so that the answers are its answers.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from sottovoce.arrays import accumulated_error, row_norms
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, IntArray

TILE = 1024
"""Words of which the best is looked at, for every word that is moved."""
NEAR = 1024
"""Words that are looked at for every shift, for each word that is moved."""
SHIFTS_AT_A_TIME = 16
"""Shifts that a thread looks at."""
LANES = 64
"""Scores are compared in so many groups, of which each has its best."""
MOST_IN_DOUBT = 64
"""Where rounding leaves more words than this for a word and a shift, the exact search decides."""
SAME_SHIFT = 1e-9
"""How far, relatively, a shift may be off from another one, scaled: far below float32's errors."""


class Shifts:
    """Vectors to be added to those of words, with their products with all words of the output."""

    def __init__(
        self, space: WordSpace, vectors: Float64Array, room: Float32Array | None = None
    ) -> None:
        """``room``: where the products go, as many rows as vectors or more; else new memory."""
        self.space, self.vectors = space, vectors
        self.scale = 1.0
        """What the products are to be multiplied by."""
        words, queries = space.nearest_output.vectors, vectors.astype(np.float32)
        if room is None:
            room = np.empty((len(vectors), len(words)), dtype=np.float32)
        self.products = products = room[: len(vectors)]

        # Few large pieces: for each, BLAS arranges all queries anew.
        piece = max(TILE, -(-len(words) // threads()))

        def multiply(start: int) -> None:
            rows = slice(start, start + piece)
            np.matmul(queries, words[rows].T, out=products[:, rows])

        parallel_map(multiply, range(0, len(words), piece))

    def part(self, rows: slice) -> Shifts:
        """Some of them."""
        part = copy(self)
        part.vectors, part.products = self.vectors[rows], self.products[rows]
        return part

    def scaled_to(self, space: WordSpace, vectors: Float64Array) -> Shifts | None:
        """These vectors with the products of those, if all are the same ones times a number."""
        size = float((self.vectors * self.vectors).sum())
        if space is not self.space or vectors.shape != self.vectors.shape or not size > 0:
            return None
        scale = float((vectors * self.vectors).sum()) / size
        off = row_norms(vectors - scale * self.vectors)
        if not (scale > 0 and (off <= SAME_SHIFT * row_norms(vectors)).all()):
            return None
        scaled = copy(self)
        scaled.vectors, scaled.scale = vectors, scale
        return scaled


class MovedWords:
    """Some words of a space, to be moved by shifts."""

    def __init__(self, space: WordSpace, words: IntArray) -> None:
        self.space, self.words = space, words
        self._centres = np.ascontiguousarray(space.vectors[words])
        vectors, half_norms = space.nearest_output.vectors, space.listed.folded[:, -1]
        half_norms = half_norms[space.output.ids]
        middle = self._centres.mean(axis=0, keepdims=True)
        apart = (self._centres - middle.astype(np.float64)).astype(np.float32)
        products = vectors @ np.concatenate([apart, middle]).T
        # The first part of a score without the shift, padded to whole tiles, and the second one.
        self._firsts = np.full(-(-len(vectors) // TILE) * TILE, -np.inf, dtype=np.float32)
        self._firsts[: len(vectors)] = products[:, -1] + half_norms
        self._seconds = np.ascontiguousarray(products[:, :-1])
        # Words with a large second part, and what it is at most for all others.
        near = min(NEAR, len(vectors))
        self._near = np.empty((near, len(words)), dtype=np.int64)
        self._others = np.empty(len(words), dtype=np.float32)
        for word, column in enumerate(self._seconds.T):
            order = np.argpartition(-column, min(near, len(column) - 1))
            self._near[:, word] = np.sort(order[:near])
            self._others[word] = column[order[near]] if near < len(column) else -np.inf
        self._near_seconds = np.take_along_axis(self._seconds, self._near, axis=0)
        longest = float(np.sqrt(-2.0 * half_norms.min()))
        # What a score may be off by is this, and so much for every unit of the shift's length:
        # of products, of the shift, and of the sum that is released.
        error = accumulated_error(space.dimension) * longest
        lengths = row_norms(self._centres) + row_norms(apart) + row_norms(middle)
        self._error, self._error_by_length = error * (lengths + longest), 2 * error

    def nearest(self, shifts: Shifts, k: int) -> tuple[IntArray, Float64Array]:
        """Ids and distances of the ``k`` words of the output nearest to each sum, nearest first.

        Both have the shape (words, shifts, k).
        """
        parts = parallel_map(
            lambda start: self._block(shifts, slice(start, start + SHIFTS_AT_A_TIME), k),
            range(0, len(shifts.vectors), SHIFTS_AT_A_TIME),
        )
        places, distances = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return self.space.output.ids[places], distances

    def _block(self, shifts: Shifts, block: slice, k: int) -> tuple[IntArray, Float64Array]:
        """Places and distances for some shifts."""
        vectors, count = shifts.vectors[block], len(self.words)
        errors = self._error + self._error_by_length * row_norms(vectors)[:, None]
        candidates = [
            self._candidates(products, shifts.scale, 2 * error, k)
            for products, error in zip(shifts.products[block], errors, strict=True)
        ]
        places = np.empty((len(vectors), count, k), dtype=np.int64)
        distances = np.empty(places.shape)
        points = np.add(vectors[:, None], self._centres, dtype=np.float64).astype(np.float32)
        search = self.space.nearest_output
        clear = np.array([pairs is not None for pairs in candidates])
        if clear.any():
            pairs = [of_shift for of_shift in candidates if of_shift is not None]
            rows = np.concatenate([row + at * count for at, (row, _) in enumerate(pairs)])
            columns = np.concatenate([column for _, column in pairs])
            flat = points[clear].reshape(-1, points.shape[2]).astype(np.float64)
            answers = search.decide(flat, rows, columns, k)
            places[clear], distances[clear] = (part.reshape(-1, count, k) for part in answers)
        for at in np.flatnonzero(~clear):
            places[at], distances[at] = search.top(points[at], k)
        return places.swapaxes(0, 1), distances.swapaxes(0, 1)

    def _candidates(
        self, products: Float32Array, scale: float, margins: Float64Array, k: int
    ) -> tuple[IntArray, IntArray] | None:
        """Pairs (word that is moved, place of a word) that may be among the k nearest.

        None if there are too many, or if they cannot be told.
        """
        size = len(products)
        firsts = np.empty_like(self._firsts)
        np.multiply(products, np.float32(scale), out=firsts[:size])
        firsts[size:] = 0.0
        firsts += self._firsts
        # What the k-th best score is at least, by the near words and by the best of each tile.
        near = firsts.take(self._near)
        near += self._near_seconds
        best = firsts.reshape(-1, TILE).argmax(axis=1)
        best += np.arange(0, len(firsts), TILE)
        kth = np.maximum(kth_at_least(near, k), kth_at_least(self._scores(firsts, best), k))
        if not np.isfinite(kth).all():
            return None
        # Other words are looked at if they can reach it with any of the second parts.
        least = np.nextafter(np.float32((kth - margins - self._others).min()), np.float32(-np.inf))
        far = np.flatnonzero(firsts >= least)
        scores = self._scores(firsts, far)
        floors = (np.maximum(kth, kth_at_least(scores, k)) - margins).astype(np.float32)
        floors = np.nextafter(floors, np.float32(-np.inf))
        at, row = np.divmod(np.flatnonzero(near >= floors), len(self.words))
        place, other_row = np.divmod(np.flatnonzero(scores >= floors), len(self.words))
        both = (row * size + self._near[at, row], other_row * size + far[place])
        pairs = np.divmod(np.unique(np.concatenate(both)), size)
        counts = np.bincount(pairs[0], minlength=len(self.words))
        return pairs if k <= counts.min() and counts.max() <= MOST_IN_DOUBT + k else None

    def _scores(self, firsts: Float32Array, places: IntArray) -> Float32Array:
        """Of the words at some places, for each word that is moved: (places, words)."""
        return np.asarray(self._seconds.take(places, axis=0) + firsts[places, None])


def kth_at_least(scores: Float32Array, k: int) -> Float32Array:
    """What the k-th largest of each column is at least; for k = 1 what it is."""
    lanes = max(LANES, k)
    whole = len(scores) // lanes * lanes
    if whole:
        # The best of different lanes are different ones.
        peaks = scores[:whole].reshape(-1, lanes * scores.shape[1]).max(axis=0)
        peaks = peaks.reshape(lanes, -1)
        rest = scores[whole:]
        np.maximum(peaks[: len(rest)], rest, out=peaks[: len(rest)])
    else:
        peaks = scores
    if k == 1:
        return np.asarray(peaks.max(axis=0, initial=-np.inf))
    if len(peaks) < k:
        return np.full(scores.shape[1], -np.inf, dtype=np.float32)
    return np.asarray(np.partition(peaks, len(peaks) - k, axis=0)[len(peaks) - k])
