"""Subjects: the strings of a pool in clusters, near strings together, fixed in public.

Within a subject strings have an order, too, in which near ones mostly follow each other.

Spherical k-means: a string belongs to the center with the largest inner product, and a center is
the mean of its strings at length 1. It begins with strings drawn by a seed that everybody knows,
and every decision is exact (``spaces.nearest``): the same pool has the same subjects everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.arrays import row_blocks, unit_rows
from sottovoce.errors import UsageError
from sottovoce.spaces.nearest import Nearest
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float32Array, IntArray

LEARNED_FROM = 50_000
"""Strings that decide the centers of a large pool; all others only follow."""
ROUNDS = 6
SEED = 0
"""Public: subjects are no secret."""


def subjects_of(vectors: Float32Array, count: int) -> IntArray:
    """The number of each row's subject, from 0 on; at most ``count`` of them, none empty.

    Rows may be mapped: they are read in blocks.
    """
    if not 1 <= count <= len(vectors):
        raise UsageError(f"{len(vectors)} strings have between 1 and as many subjects, not {count}")
    rng = Generator(PCG64(SEED))
    size = max(count, min(LEARNED_FROM, len(vectors)))
    sample = vectors[np.sort(rng.choice(len(vectors), size, replace=False))]
    centers = sample[np.sort(rng.choice(size, count, replace=False))]
    for _ in range(ROUNDS):
        nearest = _nearest(centers, sample)
        order = np.argsort(nearest, kind="stable")
        firsts = np.unique(nearest[order], return_index=True)[1]
        sums = np.add.reduceat(sample[order], firsts, axis=0, dtype=np.float64)
        centers = unit_rows(sums.astype(np.float32))
    _, subjects = np.unique(_nearest(centers, vectors), return_inverse=True)
    return np.asarray(subjects, dtype=np.int64)


def ordered_within(vectors: Float32Array, subjects: IntArray) -> IntArray:
    """The rows, subject after subject, in each a chain from a row to the nearest that is left.

    A chain begins with the row that is farthest from all others of its subject.
    """
    rows = np.argsort(subjects, kind="stable")
    ends = np.searchsorted(subjects[rows], np.arange(1, subjects.max() + 1))
    return np.concatenate([members[_chain(vectors[members])] for members in np.split(rows, ends)])


def _chain(rows: Float32Array) -> IntArray:
    with single_threaded_blas():  # Several threads would round differently.
        products = rows.astype(np.float64) @ rows.astype(np.float64).T
    place = int(products.sum(axis=1).argmin())
    chain = [place]
    for _ in range(len(rows) - 1):
        products[:, place] = -np.inf
        place = int(products[place].argmax())
        chain.append(place)
    return np.array(chain, dtype=np.int64)


def _nearest(centers: Float32Array, vectors: Float32Array) -> IntArray:
    search = Nearest(centers, "inner", device="cpu")
    return np.concatenate([search.top(block, 1)[0][:, 0] for block in row_blocks(vectors)])
