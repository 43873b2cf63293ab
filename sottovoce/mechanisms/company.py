"""Company: what a set of public strings is worth for the text that it hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Company:
    """In what company a text left. It is for its owner alone, ``representative`` above all.

    queries, groups, pool
        How many strings were released, of how many groups (or single strings), of how many.
    representative, is_text, drawn
        The string of the pool that stands for the text; whether it is the text itself; whether
        chance put it, or its group, into the set.
    inclusion, epsilon
        How likely that was, and what the set tells between any two texts; None: without bound.
    best_guess, prior
        The largest exact probability that any string (or group) has given the set, for whoever
        knows pool, parameters and law, and believes this ``prior`` of what texts are about.
    """

    queries: int
    groups: int
    pool: int
    representative: str
    is_text: bool
    drawn: bool
    inclusion: float
    epsilon: float | None
    best_guess: float
    prior: str

    @property
    def query_sent(self) -> bool:
        """Whether the text itself was released."""
        return self.is_text and self.drawn

    @property
    def sentence(self) -> str:
        """The same in words, without any text."""
        what = "queries" if self.queries == self.groups else f"queries in {self.groups} groups"
        return (
            f"one of {self.queries} {what} that were drawn from {self.pool:,} public ones. Whoever "
            f"knows all of them and how they were drawn, and takes {self.prior}, is right about it "
            f"in {self.best_guess:.2g} of the cases, 1 in {1 / self.best_guess:.0f}; whoever knows "
            "more of what people ask, or of you, may do better"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "query_sent": self.query_sent, "sentence": self.sentence}

    def __repr__(self) -> str:
        return f"Company({self.queries} queries, best_guess={self.best_guess:.3g})"
