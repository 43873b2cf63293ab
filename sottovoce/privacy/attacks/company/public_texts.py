"""Public texts that attackers have, and what one who has them makes of a pool.

Each thing is worked out once for a list and a pool, however many attackers have it and however
often they attack.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache
from typing import overload

import numpy as np

from sottovoce.likeness import HeldOutLikeness, fit_held_out
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.randomness import as_generator
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array, IntArray

LEARNED_FROM = 2000
"""So many texts of a list, and strings of a pool, are learned from: always the same."""
AT_A_TIME = 10_000
"""Texts whose nearest strings are looked up at once."""


class PublicTexts(Sequence[str]):
    """Public texts as they are compared; what is made of them is kept."""

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

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

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
    def different(self) -> PublicTexts:
        """Each text once."""
        if len(self.first) == len(self):
            return self
        return self.some(np.array([*self.first.values()], dtype=np.int64))

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
    def kind(self) -> HeldOutLikeness:
        """What strings look like that stand for such texts."""
        return fit_held_out(self.standing, self.pool)

    @cached_property
    def in_pool(self) -> float:
        """The share of the texts that are strings of the pool."""
        return float(np.mean([self.pool.place(text) is not None for text in self.texts]))

    @cached_property
    def to_pool(self) -> Float64Array:
        """How near the nearest string of the pool is to each text, but for the text itself."""
        nearest = []
        for start in range(0, len(self), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            places = self.pool.best(self.vectors[part], min(2, len(self.pool)))
            cosines = np.einsum("ij,ikj->ik", self.vectors[part], self.pool.vectors[places])
            in_pool = [self.pool.place(text) for text in self.texts[part]]
            is_itself = places[:, 0] == [-1 if place is None else place for place in in_pool]
            nearest.append(np.where(is_itself, cosines[:, -1], cosines[:, 0]))
        return np.concatenate(nearest).astype(np.float64)

    def some(self, places: IntArray) -> PublicTexts:
        """The texts at these places, with what was worked out of each alone."""
        picked = PublicTexts(
            [self.texts[at] for at in places.tolist()],
            self.pool,
            self.vectors[places],
            self.standing[places],
        )
        if "to_pool" in self.__dict__:
            picked.__dict__["to_pool"] = self.to_pool[places]
        return picked

    @cached_property
    def sample(self) -> PublicTexts:
        """As many as are learned from."""
        return self if len(self) <= LEARNED_FROM else self.some(some_of(len(self)))

    def without(self, attacked: Collection[str]) -> PublicTexts:
        """The others; itself, with all that was worked out, if it holds none of these."""
        if self.first.keys().isdisjoint(attacked):
            return self
        left = [at for at, text in enumerate(self.texts) if text not in attacked]
        return self.some(np.array(left, dtype=np.int64))


def some_of(count: int) -> IntArray:
    """The places of some of so many, always the same."""
    return np.sort(as_generator(0).permutation(count)[:LEARNED_FROM])


@lru_cache(maxsize=2)
def queries_of(log: QueryLog, pool: Pool) -> PublicTexts:
    """The queries of a log, with vectors from disk; kept for the next attack with this log."""
    return PublicTexts(log.queries, pool, log.vectors(pool.encoder))
