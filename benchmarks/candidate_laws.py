"""Laws of ``candidates.py``: P(y | x) ~ q(y) exp(-beta d(x, y)), with q learned or uniform."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.types import Float32Array, Float64Array, IntArray

BLOCK = 512
LEARNED_FROM = 3000
"""Distances of vectors are many: q is learned from so many of the words asked most often."""
ROUNDS, GOOD_ENOUGH = {"embedding": 25, "overlap": 100}, 1e-2
"""Of Blahut's and Arimoto's iteration: it ends this near to the optimum, in nats, or earlier."""


def output_marginal(
    sums: Callable[[Float64Array], Float64Array],
    back: Callable[[Float64Array], Float64Array],
    prior: Float64Array,
    size: int,
    rounds: int,
) -> Float64Array:
    """The q of the rate-distortion optimum: q(y) <- q(y) sum_x p(x) K(x, y) / (q K)(x).

    ``sums`` and ``back`` multiply by the kernel K = exp(-beta d) from either side. The largest
    factor bounds what is left to the optimum, in nats (Blahut 1972).
    """
    q = np.full(size, 1 / size)
    for _ in range(rounds):
        factors = back(prior / sums(q))
        q *= factors
        q /= q.sum()
        if np.log(factors.max()) < GOOD_ENOUGH:
            break
    return q


class EmbeddingDistance:
    """Distances of vectors, (output words, words of the log), in half precision."""

    def __init__(self, vectors: Float32Array, output: IntArray, words: IntArray) -> None:
        known = np.ascontiguousarray(vectors[words])
        squares = (known * known).sum(axis=1)
        self._distances = np.empty((len(output), len(words)), dtype=np.float16)
        for start in range(0, len(output), BLOCK):
            some = vectors[output[start : start + BLOCK]]
            squared = (some * some).sum(axis=1)[:, None] + squares - 2 * (some @ known.T)
            self._distances[start : start + BLOCK] = np.sqrt(np.maximum(squared, 0))
        _, rows, columns = np.intersect1d(output, words, return_indices=True)
        self._distances[rows, columns] = 0

    def to_words(self, words: IntArray) -> Float32Array:
        """The distances of all output words to some words of the log, (output, words)."""
        return self._distances[:, words].astype(np.float32)

    def of_outputs(self, outputs: IntArray | slice) -> Float32Array:
        """The distances of some output words to all words of the log, (outputs, log)."""
        return self._distances[outputs].astype(np.float32)

    def sums(self, beta: float, q: Float64Array) -> Float64Array:
        """The sum of q K for each word of the log."""
        total = np.zeros(self._distances.shape[1])
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            total += q[rows].astype(np.float32) @ np.exp(-beta * self.of_outputs(rows))
        return total

    def learned(self, beta: float, prior: Float64Array) -> Float64Array:
        """The output marginal, from the words asked most often."""
        often = np.sort(np.argsort(-prior)[:LEARNED_FROM])
        kernel = np.exp(-beta * self.to_words(often))
        shares, rounds = prior[often] / prior[often].sum(), ROUNDS["embedding"]
        return output_marginal(
            lambda q: q @ kernel, lambda r: kernel @ r, shares, len(kernel), rounds
        )


class DocumentDistance:
    """1 - cosine of sets of documents. Most words share none: K = exp(-beta) (1 + sparse)."""

    def __init__(self, of_output: csr_matrix, of_words: csr_matrix) -> None:
        sides = []
        for holds in (of_output, of_words):
            lengths = np.sqrt(np.maximum(np.diff(holds.indptr), 1)).astype(np.float32)
            sides.append(holds.multiply(1 / lengths[:, None]).tocsr())
        self._cosines = (sides[0] @ sides[1].T).tocsr()
        self._cosines.data = np.minimum(self._cosines.data, 1)
        self._turned = self._cosines.T.tocsr()

    def to_words(self, words: IntArray) -> Float32Array:
        """The distances of all output words to some words of the log, (output, words)."""
        return np.asarray(1 - self._turned[words].toarray().T)

    def of_outputs(self, outputs: IntArray) -> Float32Array:
        """The distances of some output words to all words of the log, (outputs, log)."""
        return np.asarray(1 - self._cosines[outputs].toarray())

    def _shared(self, beta: float) -> csr_matrix:
        shared = self._cosines.copy()
        shared.data = np.expm1(beta * shared.data)
        return shared

    def sums(self, beta: float, q: Float64Array) -> Float64Array:
        """The sum of q K for each word of the log."""
        return np.asarray(np.exp(-beta) * (q.sum() + self._shared(beta).T @ q))

    def learned(self, beta: float, prior: Float64Array) -> Float64Array:
        """The output marginal, from all words asked."""
        shared, scale = self._shared(beta), np.exp(-beta)
        turned = shared.T.tocsr()
        return output_marginal(
            lambda q: scale * (q.sum() + turned @ q),
            lambda r: scale * (r.sum() + shared @ r),
            prior,
            shared.shape[0],
            ROUNDS["overlap"],
        )


Distance = EmbeddingDistance | DocumentDistance
