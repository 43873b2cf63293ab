"""What an attacker believes beforehand: which strings of a set look like something a person asks.

Beliefs are log-odds, to which the law of the sets is added: ln prior(x) + ln P(S | x), the exact
posterior of each member up to a constant. What a list of texts says of a pool is worked out once
(:class:`PublicTexts`), however many attackers have it and however often they attack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias, overload
from weakref import WeakKeyDictionary

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.likeness import Likeness, fit_to_strings, logistic
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.randomness import as_generator
from sottovoce.sensitive import sensitivity
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array, IntArray

Belief: TypeAlias = Callable[[SeenSet], Float64Array]
"""The log-odds of each string of a set."""

NEIGHBOURS = 3
"""How many texts of a history a string must be near to."""
PAIRS_AT_A_TIME = 8_000_000
"""Of strings and texts, whose nearness is held at once: some 200 MB."""
HARDLY = 1e-12
"""What is believed of a string that stands for nothing on a list."""
LEARNED_FROM = 2000
"""So many texts of a list, and strings of the pool, tell how much it says to be near to it."""


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


class PublicTexts(Sequence[str]):
    """Public texts as they are compared, and what one who has them makes of a pool.

    Each thing is worked out when it is first needed, and kept.
    """

    def __init__(
        self,
        texts: Sequence[str],
        pool: Pool,
        vectors: Float32Array | None = None,
        standing: IntArray | None = None,
    ) -> None:
        """``vectors``, ``standing``: see below; given by who has them already."""
        self.texts = [folded_text(text) for text in texts]
        self.pool = pool
        self._vectors, self._standing = vectors, standing
        self._weighted: WeakKeyDictionary[Likeness, Float64Array] = WeakKeyDictionary()

    @classmethod
    def of(cls, texts: Sequence[str], pool: Pool) -> PublicTexts:
        """Texts as those of a pool; what was worked out before is kept."""
        if isinstance(texts, PublicTexts) and texts.pool == pool:
            return texts
        return cls(texts, pool)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self.texts[at]

    def __repr__(self) -> str:
        return f"PublicTexts({len(self)} texts)"

    @cached_property
    def first(self) -> dict[str, int]:
        """Where each text comes first."""
        first: dict[str, int] = {}
        for at, text in enumerate(self.texts):
            first.setdefault(text, at)
        return first

    @cached_property
    def different(self) -> IntArray:
        """The places of the texts, each once."""
        return np.array([*self.first.values()], dtype=np.int64)

    @cached_property
    def vectors(self) -> Float32Array:
        """The vector of each, by the pool's encoder."""
        return self.pool.encoder.encode(self.texts) if self._vectors is None else self._vectors

    @cached_property
    def standing(self) -> IntArray:
        """The place of the string that stands for each in the pool."""
        if self._standing is not None:
            return self._standing
        return self.pool.representatives(self.texts, self.vectors)

    @cached_property
    def likeness(self) -> Likeness:
        """What strings look like that stand for such texts."""
        return fit_to_strings(self.standing, self.pool)

    @cached_property
    def near(self) -> NearTexts:
        """What it says to be near to such texts, and of their kind."""
        return NearTexts(self, self.pool, self.likeness)

    def masses(self, likeness: Likeness | None = None) -> Float64Array:
        """For how many different texts each string of the pool stands.

        likeness
            Texts of that kind count for more; else all are alike.
        """
        if likeness is None:
            return self._counts
        if likeness not in self._weighted:
            ratios = likeness.log_ratio([*self.first], _taken(self.vectors, self.different))
            self._weighted[likeness] = self._masses(np.exp(ratios))
        return self._weighted[likeness]

    @cached_property
    def _counts(self) -> Float64Array:
        return self._masses(np.ones(len(self.different)))

    def _masses(self, weights: Float64Array) -> Float64Array:
        standing = self.standing[self.different]
        return np.asarray(np.bincount(standing, weights, minlength=len(self.pool)), np.float64)

    def without(self, attacked: Collection[str]) -> PublicTexts:
        """The others; itself, with all that was worked out, if it holds none of these."""
        if self.first.keys().isdisjoint(attacked):
            return self
        left = [at for at, text in enumerate(self.texts) if text not in attacked]
        texts = [self.texts[at] for at in left]
        return PublicTexts(texts, self.pool, self.vectors[left], self.standing[left])

    def prepare(self) -> None:
        """Work everything out now rather than when it is first needed."""
        _ = self.near, self.masses(), self.masses(self.likeness)


@lru_cache(maxsize=2)
def queries_of(log: QueryLog, pool: Pool) -> PublicTexts:
    """The queries of a log, with vectors from disk; kept for the next attack with this log."""
    return PublicTexts(log.queries, pool, log.vectors(pool.encoder))


class Listed:
    """A belief: one of these texts was asked, each as likely as its weight.

    What is believed of a string is the sum over the texts that it stands for; where it stands for
    none of them, hardly anything is.
    """

    def __init__(
        self,
        texts: Sequence[str],
        pool: Pool,
        likeness: Likeness | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        """``likeness``: texts of that kind are likelier; else all are alike.

        ``beside``: texts that the list lacks, and that are put beside it.
        """
        masses = PublicTexts.of(texts, pool).masses(likeness)
        if beside:
            masses = masses + PublicTexts.of(beside, pool).masses(likeness)
        self._pool, self._logs = pool, np.log(masses / masses.sum() + HARDLY)

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log of what is believed of each string of a set."""
        places = [self._pool.place(string) for string in seen.strings]
        return np.array([np.log(HARDLY) if at is None else self._logs[at] for at in places])


class NearTexts:
    """A belief: strings near to some of these texts, and of the kind, if that is known.

    How much nearness says is learned: texts of the list against its others, and strings of the pool
    against all of it. A string is never compared with itself: what is attacked was taken out of the
    list, and that alone would tell it from decoys, which are in it.
    """

    def __init__(self, texts: Sequence[str], pool: Pool, likeness: Likeness | None = None) -> None:
        public = PublicTexts.of(texts, pool)
        different = [*public.first]
        self._likeness = likeness
        self._texts = _taken(public.vectors, public.different)
        self._places = {text: place for place, text in enumerate(different)}
        some, strangers = _some(len(different)), _some(len(pool))
        rows = np.concatenate(
            [
                self._rows([different[at] for at in some], self._texts[some]),
                self._rows([pool.strings[at] for at in strangers], pool.vectors[strangers]),
            ]
        )
        self._middle, self._spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        listed = np.arange(len(rows)) < len(some)
        self._weights = logistic((rows - self._middle) / self._spread, listed)

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log-odds of each string of a set."""
        rows = (self._rows(seen.strings, seen.vectors) - self._middle) / self._spread
        return np.asarray(rows @ self._weights[:-1] + self._weights[-1])

    def _rows(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        """How near strings are to the texts, some at a time: a log may have very many."""
        kind, rows = self._kind(strings, vectors), []
        at_a_time = max(1, PAIRS_AT_A_TIME // len(self._texts))
        for start in range(0, len(strings), at_a_time):
            part = slice(start, start + at_a_time)
            cosines = vectors[part] @ self._texts.T
            for row, string in enumerate(strings[part]):
                if (itself := self._places.get(folded_text(string))) is not None:
                    cosines[row, itself] = -np.inf
            rows.append(_nearness(cosines, kind[part]))
        return np.concatenate(rows)

    def _kind(self, strings: Sequence[str], vectors: Float32Array) -> Float64Array:
        if self._likeness is None:
            return np.zeros(len(strings))
        return self._likeness.log_ratio(strings, vectors)


class LikeHistory:
    """A belief: strings near to what the same person asked before, and of the kind, if known.

    Of others than these persons it says nothing.
    """

    def __init__(
        self, histories: Mapping[str, Sequence[str]], pool: Pool, likeness: Likeness | None
    ) -> None:
        self._beliefs = {
            person: NearTexts(asked, pool, likeness) for person, asked in histories.items()
        }

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log-odds of each string of a set."""
        return self._beliefs.get(seen.person, nothing)(seen)


def _taken(vectors: Float32Array, places: IntArray) -> Float32Array:
    """These rows; where they are all, no copy of what may be large and mapped."""
    return vectors if len(places) == len(vectors) else vectors[places]


def _some(count: int) -> IntArray:
    """The places of some of so many, always the same."""
    return np.sort(as_generator(0).permutation(count)[:LEARNED_FROM])


def _nearness(cosines: Float32Array, kind: Float64Array) -> Float64Array:
    """The mean cosine with a list, that with the nearest, with the nearest few, and the kind.

    A cosine of -inf is that of a text with itself, and left out; near to nothing is 0.
    """
    exact = cosines.astype(np.float64)
    nearest = np.partition(exact, -min(NEIGHBOURS, exact.shape[1]), axis=1)[:, -NEIGHBOURS:]
    means = [_mean_of_finite(part) for part in (exact, nearest)]
    best = nearest.max(axis=1)
    return np.column_stack([means[0], np.where(np.isfinite(best), best, 0.0), means[1], kind])


def _mean_of_finite(rows: Float64Array) -> Float64Array:
    left = np.isfinite(rows)
    sums = np.where(left, rows, 0.0).sum(axis=1)
    return np.asarray(sums / np.maximum(left.sum(axis=1), 1))
