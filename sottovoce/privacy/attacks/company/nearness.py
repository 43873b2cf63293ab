"""Beliefs of one who knows some public texts: what is near to them is what may have been asked.

How much nearness says is learned: texts of the list against its others, and strings of the pool
against all of it. A string is never compared with itself: what is attacked was taken out of the
list, and that alone would tell it from decoys, which are in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from sottovoce.likeness import HeldOutLikeness, logistic
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.beliefs import Belief, nothing
from sottovoce.privacy.attacks.company.public_texts import PublicTexts, some_of
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array, IntArray

NEAREST_FEW = 3
"""How many texts a string must be near to."""
AMONG = (5, 10, 20, 40, 80)
"""Of so many strings of the pool that are nearest to a string, it counts how many are texts of the
list, or as near as these."""
PAIRS_AT_A_TIME = 8_000_000
"""Of strings and texts, whose nearness is held at once: some 200 MB."""
ROUNDING = 1e-6
"""By less than this two cosines do not differ."""


class Learned:
    """Log-odds that were learned from rows of numbers: of some kind against others."""

    def __init__(self, like: Float64Array, others: Float64Array) -> None:
        rows = np.concatenate([like, others])
        self._middle, self._spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        is_like = np.arange(len(rows)) < len(like)
        self._weights = logistic((rows - self._middle) / self._spread, is_like)

    def __call__(self, rows: Float64Array) -> Float64Array:
        standard = (rows - self._middle) / self._spread
        return np.asarray(standard @ self._weights[:-1] + self._weights[-1])


class Measure(Protocol):
    """Numbers that say how near strings are to texts."""

    def rows(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        """A row for each string."""


class Nearness:
    """The mean cosine with all texts, that with the nearest, and with the nearest few."""

    def __init__(self, texts: PublicTexts) -> None:
        self._texts = texts.different

    def rows(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        """Some strings at a time: a log may have very many texts."""
        rows = []
        at_a_time = max(1, PAIRS_AT_A_TIME // len(self._texts))
        for start in range(0, len(strings), at_a_time):
            part = slice(start, start + at_a_time)
            rows.append(_nearness(_cosines_with_others(self._texts, strings[part], vectors[part])))
        return np.concatenate(rows)


class Neighbours:
    """How many of a string's own nearest strings of the pool are texts of the list.

    What a cosine is worth differs from place to place; how many others are as near does not.
    """

    def __init__(self, texts: PublicTexts) -> None:
        self._texts = texts.different

    def rows(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        """Some strings at a time: a pool may have very many."""
        pool, rows = self._texts.pool, []
        ranks = np.array([rank for rank in AMONG if rank < len(pool)] or [len(pool) - 1])
        at_a_time = max(1, PAIRS_AT_A_TIME // max(len(pool), len(self._texts)))
        for start in range(0, len(strings), at_a_time):
            part = slice(start, start + at_a_time)
            near = _cosines_with_pool(pool, strings[part], vectors[part])
            # Of each rank the cosine of the string of the pool that has it.
            edges = -np.partition(-near, ranks - 1, axis=1)[:, ranks - 1] - ROUNDING
            listed = _cosines_with_others(self._texts, strings[part], vectors[part])
            counts = np.stack([(listed >= edge[:, None]).sum(axis=1) for edge in edges.T], axis=1)
            rows.append(np.log(counts + 0.5))
        return np.concatenate(rows)


@lru_cache(maxsize=2)
def near_to(texts: PublicTexts) -> Belief:
    """Strings near to some of these texts, and of their kind."""
    return belief_by(Nearness(texts), texts, texts.kind)


@lru_cache(maxsize=2)
def among_neighbours(texts: PublicTexts) -> Belief:
    """Strings whose neighbours are such texts, and of their kind."""
    return belief_by(Neighbours(texts), texts, texts.kind)


def belief_by(measure: Measure, texts: PublicTexts, kind: HeldOutLikeness | None) -> Belief:
    """What a measure and the kind say, as learned from these texts and strings of the pool.

    The kind of a text is that of the string that stands for it: texts are folded, strings are as
    they are written, and capitals alone would tell the two apart.
    """
    pool, like = texts.pool, texts.different.sample

    def with_kind(
        near: Float64Array, strings: Sequence[str], vectors: Float32Array
    ) -> Float64Array:
        return near if kind is None else np.column_stack([near, kind.log_ratio(strings, vectors)])

    def of_pool(places: IntArray) -> tuple[list[str], Float32Array]:
        return [pool.strings[at] for at in places.tolist()], pool.vectors[places]

    strangers = of_pool(some_of(len(pool)))
    learned = Learned(
        with_kind(measure.rows(like.texts, like.vectors), *of_pool(like.standing)),
        with_kind(measure.rows(*strangers), *strangers),
    )

    def belief(seen: SeenSet) -> Float64Array:
        near = measure.rows(seen.strings, seen.vectors)
        return learned(with_kind(near, seen.strings, seen.vectors))

    return belief


class LikeHistory:
    """A belief: strings near to what the same person asked before, and of the kind, if known.

    Of others than these persons it says nothing.
    """

    def __init__(
        self, histories: Mapping[str, Sequence[str]], pool: Pool, kind: HeldOutLikeness | None
    ) -> None:
        self._beliefs: dict[str, Belief] = {}
        for person, asked in histories.items():
            texts = PublicTexts(asked, pool)
            self._beliefs[person] = belief_by(Nearness(texts), texts, kind)

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log-odds of each string of a set."""
        return self._beliefs.get(seen.person, nothing)(seen)


def _cosines_with_others(
    texts: PublicTexts, strings: Sequence[str], vectors: Float32Array
) -> Float64Array:
    """(strings, texts); -inf for a string and itself."""
    cosines = (vectors @ texts.vectors.T).astype(np.float64)
    for row, string in enumerate(strings):
        if (itself := texts.first.get(folded_text(string))) is not None:
            cosines[row, itself] = -np.inf
    return cosines


def _cosines_with_pool(pool: Pool, strings: Sequence[str], vectors: Float32Array) -> Float32Array:
    """(strings, pool); -inf for a string and itself."""
    cosines = np.asarray(vectors @ pool.vectors.T)
    for row, string in enumerate(strings):
        if (itself := pool.place(string)) is not None:
            cosines[row, itself] = -np.inf
    return cosines


def _nearness(cosines: Float64Array) -> Float64Array:
    """The mean cosine with a list, that with the nearest, and with the nearest few.

    A cosine of -inf is that of a text with itself, and left out; near to nothing is 0.
    """
    few = min(NEAREST_FEW, cosines.shape[1])
    nearest = np.partition(cosines, -few, axis=1)[:, -NEAREST_FEW:]
    means = [_mean_of_finite(part) for part in (cosines, nearest)]
    best = nearest.max(axis=1)
    return np.column_stack([means[0], np.where(np.isfinite(best), best, 0.0), means[1]])


def _mean_of_finite(rows: Float64Array) -> Float64Array:
    left = np.isfinite(rows)
    sums = np.where(left, rows, 0.0).sum(axis=1)
    return np.asarray(sums / np.maximum(left.sum(axis=1), 1))
