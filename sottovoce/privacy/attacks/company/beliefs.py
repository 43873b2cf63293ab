"""What an attacker believes beforehand: which strings of a set look like something a person asks.

Beliefs are log-odds, to which the law of the sets is added: ln prior(x) + ln P(S | x), the exact
posterior of each member up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.likeness import Likeness, logistic
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.randomness import as_generator
from sottovoce.sensitive import sensitivity
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array

Belief: TypeAlias = Callable[[SeenSet], Float64Array]
"""The log-odds of each string of a set."""

NEIGHBOURS = 3
"""How many texts of a history a string must be near to."""
STRANGERS = 2000
"""Strings of the pool that a history is compared with."""


def nothing(seen: SeenSet) -> Float64Array:
    """All strings are alike."""
    return np.zeros(len(seen.strings))


def looks_like(likeness: Likeness) -> Belief:
    """The learned log-ratio of texts of the person's kind against the pool."""

    def belief(seen: SeenSet) -> Float64Array:
        return likeness.log_ratio(seen.strings, seen.vectors)

    return belief


def is_popular(pool: Pool) -> Belief:
    """As often as the pool says that a string is asked; strings that it lacks as its rarest."""
    assert pool.popularity is not None  # noqa: S101 - only asked for with a popularity
    logs = np.log(pool.popularity)

    def belief(seen: SeenSet) -> Float64Array:
        places = [pool.place(string) for string in seen.strings]
        return np.array([logs.min() if place is None else logs[place] for place in places])

    return belief


def is_sensitive(encoder: Encoder) -> Belief:
    """Strings on subjects that people hide are what a person hides."""

    def belief(seen: SeenSet) -> Float64Array:
        return sensitivity(seen.strings, seen.vectors, encoder)

    return belief


class LikeHistory:
    """A belief: strings near to what the same person asked before, and of the kind, if known.

    How much nearness says is learned from each history itself: every text of it against the
    others, and strings of the pool against all of them. Of others than these persons it says
    nothing.
    """

    def __init__(
        self, histories: Mapping[str, Sequence[str]], pool: Pool, likeness: Likeness | None
    ) -> None:
        self._likeness, self._encoder = likeness, pool.encoder
        some = as_generator(0).permutation(len(pool))[:STRANGERS]
        self._strangers = pool.vectors[some]
        self._kind_of_strangers = self._kind([pool.strings[at] for at in some], self._strangers)
        self._models = {person: self._learned(asked) for person, asked in histories.items()}

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log-odds of each string of a set."""
        if seen.person not in self._models:
            return nothing(seen)
        asked, middle, spread, weights = self._models[seen.person]
        rows = _nearness(seen.vectors @ asked.T, self._kind(seen.strings, seen.vectors))
        return np.asarray((rows - middle) / spread @ weights[:-1] + weights[-1])

    def _kind(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        if self._likeness is None:
            return np.zeros(len(strings))
        return self._likeness.log_ratio(strings, vectors)

    def _learned(
        self, history: Sequence[str]
    ) -> tuple[Float32Array, Float64Array, Float64Array, Float64Array]:
        texts = [folded_text(text) for text in history]
        asked = self._encoder.encode(texts)
        others = ~np.eye(len(asked), dtype=bool)
        rows = np.concatenate(
            [
                _nearness(
                    (asked @ asked.T)[others].reshape(len(asked), -1), self._kind(texts, asked)
                ),
                _nearness(self._strangers @ asked.T, self._kind_of_strangers),
            ]
        )
        middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        weights = logistic((rows - middle) / spread, np.arange(len(rows)) < len(asked))
        return asked, middle, spread, weights


def _nearness(cosines: Float32Array, kind: Float64Array) -> Float64Array:
    """The mean cosine with a history, that with the nearest few of it, and the kind."""
    exact = cosines.astype(np.float64)
    few = np.sort(exact, axis=1)[:, -NEIGHBOURS:]
    return np.column_stack([exact.mean(axis=1), few.mean(axis=1), kind])
