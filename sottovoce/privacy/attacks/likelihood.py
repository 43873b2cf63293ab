"""The exact Bayes attack on mechanisms whose law is known: argmax of prior(w) * prod p(y_i|w).

One pass over the words that may win, some at a time, decides all positions and all numbers of
variants together. Only the best word so far is kept, so memory is a block of laws.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.privacy.attacks.contenders import bounded, contenders
from sottovoce.privacy.attacks.target import Target, occurrences
from sottovoce.threads import parallel_map
from sottovoce.types import UNKNOWN, Float64Array, IntArray

WORDS_AT_A_TIME = 128
BLOCKS_AT_A_TIME = 8
"""Blocks between two reports of progress."""


class Best:
    """The best word of each row so far; the lowest id of several."""

    def __init__(self, rows: int) -> None:
        self.scores = np.full(rows, -np.inf)
        self.words = np.full(rows, UNKNOWN)

    def part(self, rows: slice) -> Best:
        """Some rows, sharing what is kept of them."""
        best = Best(0)
        best.scores, best.words = self.scores[rows], self.words[rows]
        return best

    def update(self, words: IntArray, scores: Float64Array) -> None:
        """Take in the scores (rows, words) of some words, which come in ascending order."""
        place = scores.argmax(axis=1)
        top = scores[np.arange(len(scores)), place]
        better = top > self.scores
        self.scores[better] = top[better]
        self.words[better] = words[place[better]]


def likelihood(target: Target, counts: list[int]) -> dict[int, IntArray]:
    """The most probable word of each position, for each number of variants."""
    assert target.mechanism is not None  # noqa: S101 - asked before
    mechanism, space = target.mechanism, target.space
    rows, words, times = occurrences([ids for n in counts for ids in target.seen(n)])
    columns, places = np.unique(words, return_inverse=True)
    height = len(counts) * len(target.ids)
    seen = csr_matrix((times.astype(np.float64), (rows, places)), shape=(height, len(columns)))
    best = Best(height)

    def scores(true: IntArray) -> Float64Array:
        law = mechanism.log_probabilities(true)
        assert law is not None  # noqa: S101 - asked before
        # A sparse product adds up what was seen and nothing else: no 0 * -inf.
        return np.asarray(seen @ law[:, columns].T) + target.prior(true)

    if bounded(mechanism):
        tried = contenders(target, seen, columns, scores)
    else:
        tried = np.arange(space.size)
    blocks = [tried[at : at + WORDS_AT_A_TIME] for at in range(0, len(tried), WORDS_AT_A_TIME)]
    for first in range(0, len(blocks), BLOCKS_AT_A_TIME):
        some = blocks[first : first + BLOCKS_AT_A_TIME]
        for true, found in zip(some, parallel_map(scores, some), strict=True):
            best.update(true, found)
        if target.progress:
            target.progress(min(first + BLOCKS_AT_A_TIME, len(blocks)), len(blocks))
    return by_count(target, counts, unseen_out(best.words, rows))


def unseen_out(guesses: IntArray, rows: IntArray) -> IntArray:
    """Guesses, none where nothing was seen: a prior alone is no attack on a release."""
    out = np.full_like(guesses, UNKNOWN)
    out[rows] = guesses[rows]
    return out


def by_count(target: Target, counts: list[int], guesses: IntArray) -> dict[int, IntArray]:
    """Guesses of all numbers of variants, laid end to end, taken apart."""
    parts = np.split(guesses, len(counts))
    return {n: target.settled(part, n) for n, part in zip(counts, parts, strict=True)}
