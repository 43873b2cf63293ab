"""Company: what a set of public strings is worth for the text that it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNIFORM, POPULAR = "each as likely as the next", "each as likely as it is popular"
SENSITIVE = "each as likely as its subject is one that people hide"
"""What observers may believe beforehand of what texts are about."""


@dataclass(frozen=True, repr=False)
class Company:
    """In what company a text left. It is for its owner alone, ``representative`` above all.

    queries, groups, group_size, pool
        How many strings were released, in how many groups of what size, of how many in all.
    representative, is_text, drawn, sent
        The string of the pool that stands for the text; whether it is the text itself; whether
        chance put it, or its group, into the set; whether it was then sent.
    inclusion, epsilon
        How likely that was, and what the set tells between any two texts; None: without bound.
    subjects
        How many subjects the pool was cut into, if the queries are on as many different ones; None:
        they are drawn without regard to it.
    guesses
        The largest exact probability that any string (or group) has given the set, for whoever
        knows pool, parameters and law, by what they believe beforehand of what texts are about.
    """

    queries: int
    groups: int
    group_size: int
    pool: int
    representative: str
    is_text: bool
    drawn: bool
    sent: bool
    inclusion: float
    epsilon: float | None
    guesses: Mapping[str, float]
    subjects: int | None = None

    @property
    def prior(self) -> str:
        """The belief that makes the best guess of all that were computed."""
        return max(self.guesses, key=lambda prior: self.guesses[prior])

    @property
    def best_guess(self) -> float:
        """The largest of the guesses."""
        return self.guesses[self.prior]

    @property
    def query_sent(self) -> bool:
        """Whether the text itself was released."""
        return self.is_text and self.sent

    @property
    def sentence(self) -> str:
        """The same in words, without any text."""
        queries, one = f"{self.queries} queries", "the one"
        if self.group_size > 1:
            queries, one = f"{queries} in {self.groups} groups", "the group"
        if self.subjects is not None:
            queries = f"{queries} on {self.groups} of {self.subjects:,} subjects"
        others = "".join(
            f"; who takes {prior}, {guess:.2g}, 1 in {1 / guess:.0f}"
            for prior, guess in self.guesses.items()
            if prior != self.prior
        )
        return (
            f"{queries}, drawn from {self.pool:,} public ones, leave for it. Whoever knows all of "
            f"these and how they are drawn, and takes {self.prior}, names {one} that stands for it "
            f"with probability {self.best_guess:.2g} at most, 1 in {1 / self.best_guess:.0f}"
            f"{others}. Whoever knows more of what people ask, or of you, may do better."
        )

    @property
    def whether_sent(self) -> str:
        """Whether the text itself, or what stands for it, is in the set; without any text."""
        if self.query_sent:
            return "The query itself is public, and was sent as one of them."
        if self.sent:
            return "The query itself was not sent: the nearest public one was, as one of them."
        which = "the query itself, which is public," if self.is_text else "the nearest public one"
        if self.drawn:
            return f"The engine failed before {which} was sent."
        return (
            f"Neither the query nor what stands for it was sent: {which} was left out by chance, "
            f"as in {1 - self.inclusion:.2g} of the cases. That it may be missing protects it."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **vars(self),
            "guesses": dict(self.guesses),
            "best_guess": self.best_guess,
            "prior": self.prior,
            "query_sent": self.query_sent,
            "whether_sent": self.whether_sent,
            "sentence": self.sentence,
        }

    def __repr__(self) -> str:
        return f"Company({self.queries} queries, best_guess={self.best_guess:.3g})"
