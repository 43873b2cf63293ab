"""The intersection attack on boxes: a word is possible only if its box holds all that was seen.

Among the words that survive, the likelihood decides; so this is the exact Bayes attack, by sparse
boxes instead of rows over the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.attacks.boxes import contents
from sottovoce.privacy.attacks.likelihood import Best, by_count, unseen_out
from sottovoce.privacy.attacks.target import Target, occurrences
from sottovoce.types import BoolArray, IntArray

WORDS_AT_A_TIME = 512
ROWS_AT_A_TIME = 4096


def intersection(
    target: Target, counts: list[int]
) -> tuple[dict[int, IntArray], dict[int, float | None]]:
    """The most probable survivor of each position, and how many survive on average."""
    mechanism, space = target.mechanism, target.space
    assert isinstance(mechanism, BoxMechanism)  # noqa: S101 - asked before
    rows, words, times = occurrences([ids for n in counts for ids in target.seen(n)])
    height = len(counts) * len(target.ids)
    shape = (height, space.size)
    seen = csr_matrix((times.astype(np.float64), (rows, words)), shape=shape)
    once = csr_matrix((np.ones(len(rows)), (rows, words)), shape=shape)
    wanted = np.bincount(rows, minlength=height)
    inside = contents(mechanism, target.progress)
    best, survivors = Best(height), np.zeros(height)
    possible = np.zeros(space.size, dtype=np.bool_)
    for true in _blocks(np.arange(space.size)):
        for some, held in _held(once, wanted, inside[true]):
            survivors[some] += held.sum(axis=1)
            possible[true] |= held.any(axis=0)
    for true in _blocks(np.flatnonzero(possible)):
        laws = mechanism.laws(true)
        edges = np.cumsum([0, *(len(box) for box, _ in laws)])
        ids = np.concatenate([box for box, _ in laws])
        law = np.concatenate([chances for _, chances in laws])
        boxes = csr_matrix((law, ids, edges), shape=(len(true), space.size)).T.tocsr()
        for some, held in _held(once, wanted, inside[true]):
            scores = (seen[some] @ boxes).toarray() + target.prior(true)
            best.part(some).update(true, np.where(held, scores, -np.inf))
    guesses = by_count(target, counts, unseen_out(best.words, rows))
    means: dict[int, float | None] = {}
    for n, left, had in zip(
        counts, np.split(survivors, len(counts)), np.split(wanted, len(counts)), strict=True
    ):
        means[n] = float(left[had > 0].mean()) if (had > 0).any() else None
    return guesses, means


def _blocks(words: IntArray) -> Iterator[IntArray]:
    for start in range(0, len(words), WORDS_AT_A_TIME):
        yield words[start : start + WORDS_AT_A_TIME]


def _held(once: Any, wanted: IntArray, inside: Any) -> Iterator[tuple[slice, BoolArray]]:
    """Some rows after the other, and which words' boxes hold all that was seen there."""
    columns = inside.T.tocsr()
    for first in range(0, len(wanted), ROWS_AT_A_TIME):
        some = slice(first, first + ROWS_AT_A_TIME)
        held = (once[some] @ columns).toarray() == wanted[some, None]
        yield some, held & (wanted[some, None] > 0)
