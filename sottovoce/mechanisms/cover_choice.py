"""How large a cover is, chosen by what a person understands: one in so many, so many queries."""

from __future__ import annotations

from typing import NamedTuple

from sottovoce.mechanisms.base import require
from sottovoce.mechanisms.cover import USUAL_P

LARGEST_GROUP = 5
"""Larger groups find more, and nobody has measured what they give away."""


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
    require(one_in >= 2, f"one in {one_in} hides nothing: take 2 or more, 20 for example")
    most = one_in if most_queries is None else most_queries
    require(
        most >= one_in,
        f"one in {one_in} takes {one_in} queries, more than {most}: allow more queries, or be one "
        "in fewer",
    )
    return CoverChoice(one_in, min(most // one_in, LARGEST_GROUP), inclusion)
