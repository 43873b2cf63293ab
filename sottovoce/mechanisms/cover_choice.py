"""How a cover is chosen for a person: one in so many, so many queries, and decoys for the pool."""

from __future__ import annotations

from typing import NamedTuple

from sottovoce.choices import Decoys
from sottovoce.mechanisms.base import require
from sottovoce.mechanisms.cover import USUAL_P
from sottovoce.pools import Pool

LARGEST_GROUP = 5
"""Larger groups find more, and nobody has measured what they give away."""
LEAST_POPULARITY = 0.1
"""Of all draws so many must change by it: a log in which a few lines come twice states none."""


class CoverChoice(NamedTuple):
    """The parameters of a ``cover``: k groups of m strings, one's own with probability p."""

    k: int
    m: int
    p: float

    @property
    def spec(self) -> str:
        """The mechanism, as ``mechanism`` takes it."""
        return f"cover:k={self.k},m={self.m},p={self.p:g}"

    @property
    def queries(self) -> int:
        """How many queries leave at most."""
        return self.k * self.m

    @property
    def best_guess(self) -> float:
        """How often somebody is right at most who believes just what decoys are drawn by."""
        return self.p / self.k


def cover_for(
    one_in: int, most_queries: int | None = None, inclusion: float = USUAL_P
) -> CoverChoice:
    """The cover among ``one_in`` equals that finds most with at most so many queries a search.

    Queries that are left over make groups: each string leaves with those nearest to it, and more
    is found. Without ``most_queries`` there are as few as possible. Whoever knows what people ask,
    or what this person asks, guesses better than one in so many: docs/cover.md has the figures.
    """
    require_hiding(one_in, inclusion)
    most = one_in if most_queries is None else most_queries
    require(
        most >= one_in,
        f"one in {one_in} takes {one_in} queries, more than {most}: allow more queries, or be one "
        "in fewer",
    )
    return CoverChoice(one_in, min(most // one_in, LARGEST_GROUP), inclusion)


def require_hiding(k: int, inclusion: float | None = None) -> None:
    """Refuse a cover that hides nothing; a spec is taken as it is, and states no guarantee then."""
    require(k >= 2, f"one in {k} hides nothing: take 2 or more, 20 for example")
    require(
        inclusion is None or inclusion < 1,
        "if what stands for a query were always among the others, all else would be ruled out, and "
        "nothing would bound what a search tells: take an inclusion below 1, 0.9 for example",
    )


def usual_decoys(pool: Pool) -> Decoys:
    """How decoys are drawn unless somebody says it: as people ask, if the pool tells, or hide."""
    if pool.popularity is None:
        return "sensitive"
    shares = pool.popularity / pool.popularity.sum()
    changed = abs(shares - 1 / len(pool)).sum() / 2
    return "popular" if changed >= LEAST_POPULARITY else "sensitive"
