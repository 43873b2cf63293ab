"""Sums over all pairs of words in float32: the constants by which laws are normalized.

Z(w) = sum over released y of a(y) exp(f(w, y)), with f(w, y) = f(y, w) a score of two words. Where
every word may be released, each pair is looked at once and counts for both words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, FloatArray, IntArray, Progress, count_up

WORDS_AT_A_TIME = 512
TOO_CLOSE = np.float32(1e-4)
"""Below this share of |w|^2, a squared distance is computed again from the difference."""
MOST = np.float32(80.0)
"""Scores are cut here: beyond, exp leaves the range of float32."""

Scores: TypeAlias = Callable[[IntArray, IntArray], Float32Array]
"""Symmetric scores (words, outputs) of pairs of words, in an array that may be written to."""


def squared_distances(folded: Float32Array, words: IntArray, outputs: IntArray) -> Float32Array:
    """|w - y|^2 in float32, (words, outputs); exactly 0 for a word and itself.

    ``folded`` holds the vectors of all words and -|w|^2 / 2 in its last column, as a space does;
    ``outputs`` is in ascending order.
    """
    # One product with [-2 w, -2] gives |y|^2 - 2 w.y.
    left = np.asarray(_rows(folded, words) * -2.0, dtype=np.float32)
    squares = left[:, -1].copy()
    left[:, -1] = -2.0
    squared = left @ _rows(folded, outputs).T
    squared += squares[:, None]
    # Where two words nearly coincide digits are lost: once more, from the difference.
    row, column = np.nonzero(squared <= TOO_CLOSE * squares[:, None])
    apart = folded[words[row], :-1] - folded[outputs[column], :-1]
    squared[row, column] = np.einsum("ij,ij->i", apart, apart)
    row, column = same_words(words, outputs)
    squared[row, column] = 0.0
    return squared


def _rows(folded: Float32Array, words: IntArray) -> Float32Array:
    """The rows of words; no copy where the words follow each other."""
    if len(words) and words[-1] - words[0] + 1 == len(words) and (np.diff(words) == 1).all():
        return folded[words[0] : words[-1] + 1]
    return folded[words]


def same_words(words: IntArray, outputs: IntArray) -> tuple[IntArray, IntArray]:
    """Row and column of each word among the ``outputs``, which are in ascending order."""
    if not len(outputs):
        return words[:0], words[:0]
    column = np.minimum(np.searchsorted(outputs, words), len(outputs) - 1)
    row = np.flatnonzero(outputs[column] == words)
    return row, column[row]


def log_sums(
    size: int,
    released: IntArray,
    scores: Scores,
    log_weights: FloatArray | None = None,
    progress: Progress | None = None,
) -> Float64Array:
    """The log of Z(w) of all ``size`` words; ``log_weights`` are log a(y) of ``released``."""
    weights, shift = np.ones(len(released), dtype=np.float32), 0.0
    if log_weights is not None:
        shift = float(log_weights.max())
        weights = np.exp(log_weights - shift).astype(np.float32)
    if len(released) == size:
        sums = _symmetric(size, scores, weights, progress)
        return np.log(np.maximum(sums, np.finfo(np.float64).tiny)) + shift
    return _rectangular(size, released, scores, weights, progress) + shift


def _symmetric(
    size: int, scores: Scores, weights: Float32Array, progress: Progress | None
) -> Float64Array:
    """Z of all words, each block of words against itself and those after it."""
    total = np.zeros(size)
    starts = list(range(0, size, WORDS_AT_A_TIME))
    count = count_up(progress, size)

    def part(start: int) -> Float64Array:
        """What the pairs of these words and all later ones add to Z from ``start`` on."""
        words = np.arange(start, min(start + WORDS_AT_A_TIME, size))
        added = np.zeros(size - start)
        for begin in range(start, size, WORDS_AT_A_TIME):
            outputs = np.arange(begin, min(begin + WORDS_AT_A_TIME, size))
            kernel = np.minimum(scores(words, outputs), MOST)
            np.exp(kernel, out=kernel)
            added[: len(words)] += kernel @ weights[outputs]
            if begin > start:
                added[begin - start : begin - start + len(outputs)] += weights[words] @ kernel
        return added

    for first in range(0, len(starts), 4 * threads()):
        some = starts[first : first + 4 * threads()]
        for start, added in zip(some, parallel_map(part, some), strict=True):
            total[start:] += added
        count(min(some[-1] + WORDS_AT_A_TIME, size) - some[0])
    return total


def _rectangular(
    size: int,
    released: IntArray,
    scores: Scores,
    weights: Float32Array,
    progress: Progress | None,
) -> Float64Array:
    """The log of Z(w), each row by its own largest score: a word may be far from all released."""
    log_weights = np.log(np.maximum(weights, np.finfo(np.float32).tiny))

    def part(start: int) -> Float64Array:
        words = np.arange(start, min(start + WORDS_AT_A_TIME, size))
        total = np.full(len(words), -np.inf)
        for begin in range(0, len(released), WORDS_AT_A_TIME):
            columns = slice(begin, begin + WORDS_AT_A_TIME)
            block = scores(words, released[columns])
            block += log_weights[columns]
            top = block.max(axis=1)
            block -= top[:, None]
            np.exp(block, out=block)
            total = np.logaddexp(total, top + np.log(block.sum(axis=1, dtype=np.float64)))
        return total

    starts = list(range(0, size, WORDS_AT_A_TIME))
    parts: list[Float64Array] = []
    for first in range(0, len(starts), 4 * threads()):
        parts += parallel_map(part, starts[first : first + 4 * threads()])
        if progress:
            progress(min(len(parts) * WORDS_AT_A_TIME, size), size)
    return np.concatenate(parts)
