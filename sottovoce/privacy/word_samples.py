"""Which words are measured: a sample of the vocabulary, and their neighbours.

Mechanisms behave differently for frequent words in dense regions and for rare isolated ones, so
the sample is stratified by both: by frequency and, within a band of frequency, by the distance to
the nearest neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.files import read_words
from sottovoce.randomness import Randomness, as_generator
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map
from sottovoce.types import UNKNOWN, Float64Array, IntArray

WORDS = 200
"""Words in a sample unless told otherwise."""
POOL = 4
"""Words looked at for each one that is taken."""
NUMBERS_AT_ONCE = 1 << 22
"""Distances held at once by each thread: 32 MiB."""
FEW_RANKS = 64
"""Up to so many neighbours are searched for; for more, distances to all words cost less."""


def sample_words(space: WordSpace, count: int = WORDS, rng: Randomness = 0) -> IntArray:
    """Ids of ``count`` words, ascending: all of them where the space has no more.

    Spaces list frequent words first, so a band of ids is a band of frequency. Of each band some
    words are drawn, ordered by the distance of their nearest neighbour, and every ``POOL``-th
    is taken. The sample is public, and the same each time unless another ``rng`` is given: it says
    nothing of any text.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise UsageError("a sample needs at least one word")
    if count >= space.size:
        return np.arange(space.size, dtype=np.int64)
    chance = as_generator(rng)
    bands = round(np.sqrt(count))
    edges = np.arange(bands + 1) * space.size // bands
    shares = np.diff(edges * count // space.size)
    pools = [
        start + np.sort(chance.choice(end - start, min(end - start, POOL * share), replace=False))
        for start, end, share in zip(edges, edges[1:], shares, strict=False)
    ]
    nearest = nearest_others(space, np.concatenate(pools), [1])[1][:, 0]
    by_band = np.split(nearest, np.cumsum([len(pool) for pool in pools])[:-1])
    sampled = [
        pool[np.argsort(distances, kind="stable")][_spread(len(pool), share)]
        for pool, distances, share in zip(pools, by_band, shares, strict=True)
    ]
    return np.sort(np.concatenate(sampled))


def _spread(length: int, count: int) -> IntArray:
    """``count`` different places of 0..length-1, evenly spread."""
    return (2 * np.arange(count) + 1) * length // (2 * count)


def choose_words(space: WordSpace, words: int | Path, seed: int = 0) -> tuple[IntArray, int]:
    """A sample of so many words, or those of a file, one a line; and how many the space lacks."""
    if isinstance(words, int):
        return sample_words(space, words, seed), 0
    listed = read_words(words)
    if not listed:
        raise UsageError("the file of words is empty: write one word a line")
    ids = space.ids(sorted(listed))
    in_space = np.sort(ids[ids != UNKNOWN])
    if not len(in_space):
        raise UsageError(
            f"the space {space.name} knows none of the words of the file: write one word a line, "
            "spelt as in the space (mostly lower-case)"
        )
    return in_space, len(listed) - len(in_space)


def nearest_others(
    space: WordSpace, words: IntArray, ranks: Sequence[int]
) -> tuple[IntArray, Float64Array]:
    """Ids and Euclidean distances of each word's k-th nearest other words, for all k in ``ranks``.

    Among the words that may be released; k counts from 1, and a neighbour that does not
    exist is infinitely far. Both have shape (words, ranks).
    """
    released = space.output.ids
    if not all(1 <= rank <= len(released) for rank in ranks):
        raise UsageError(f"only {len(released)} words may be released: there is no such neighbour")
    find = _searched if max(ranks) <= FEW_RANKS else _sorted_out
    return find(space, words, np.asarray(ranks) - 1)


def _searched(space: WordSpace, words: IntArray, places: IntArray) -> tuple[IntArray, Float64Array]:
    """By the exact search: the word itself is found, too, and goes to the end."""
    count = min(int(places.max()) + 2, len(space.output))
    found, distances = space.nearest_output.top(space.vectors[words], count)
    ids = space.output.ids[found]
    distances[ids == words[:, None]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, places]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(distances, order, axis=1)


def _sorted_out(
    space: WordSpace, words: IntArray, places: IntArray
) -> tuple[IntArray, Float64Array]:
    """By the distances to all words."""
    released = space.output.ids
    at_once = max(1, min(256, NUMBERS_AT_ONCE // len(released)))
    distances = Distances(space, released)

    def find(block: IntArray) -> tuple[IntArray, Float64Array]:
        rows = distances.rows(block)
        rows[block[:, None] == released] = np.inf
        nearest = np.argpartition(rows, places, axis=1)[:, places]
        return released[nearest], np.take_along_axis(rows, nearest, axis=1)

    blocks = parallel_map(find, np.split(words, range(at_once, len(words), at_once)))
    return np.concatenate([ids for ids, _ in blocks]), np.concatenate([far for _, far in blocks])


def euclidean(space: WordSpace, words: IntArray, others: IntArray) -> Float64Array:
    """Euclidean distances of words to others, one by one."""
    return Distances(space, space.output.ids).pairs(words, others)
