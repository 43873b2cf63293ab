"""Groups of similar words: a partition of a vocabulary, made once for each space."""

from __future__ import annotations

import numpy as np

from sottovoce.spaces.distances import Distances, Measure
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

SEEDS = 64
"""Words whose neighbours are looked up together, before they turn out to be needed."""
SPARE = 8
"""Neighbours looked up for each place of a group, since some will be taken by then."""


def disjoint_groups(space: WordSpace, words: IntArray, size: int, measure: Measure) -> IntArray:
    """The number of each word's group.

    In order, each word that has no group yet forms one with the ``size - 1`` nearest words that
    have none; the last group takes what is left. (CusText's mapping, algorithm 1 of its paper.)
    """
    group = np.full(len(words), -1, dtype=np.int64)
    free, number = np.arange(len(words)), 0
    while len(free):
        seeds, left = free[:SEEDS], len(free)
        near = free[_nearest(space, words[seeds], words[free], min(left, SPARE * size), measure)]
        for seed, candidates in zip(seeds, near, strict=True):
            if group[seed] >= 0:
                continue
            group[seed] = number
            others = candidates[group[candidates] < 0][: size - 1]
            if len(others) < min(size, left) - 1:
                group[seed] = -1  # Too many are taken: look again among the free ones.
                break
            group[others] = number
            left -= 1 + len(others)
            number += 1
        free = free[group[free] < 0]
    return group


def _nearest(
    space: WordSpace, words: IntArray, targets: IntArray, count: int, measure: Measure
) -> IntArray:
    """The places of the ``count`` targets nearest to each word, nearest first."""
    distances = Distances(space, targets, measure)
    halves = np.array_split(words, 2) if len(words) > 1 else [words]
    return np.concatenate(parallel_map(lambda some: smallest(distances.rows(some), count), halves))


def smallest(rows: Float64Array, count: int) -> IntArray:
    """The places of the ``count`` smallest entries of each row, ascending; ties by place."""
    if count < rows.shape[1]:
        places = np.sort(np.argpartition(rows, count - 1, axis=1)[:, :count], axis=1)
    else:
        places = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    order = np.argsort(np.take_along_axis(rows, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
