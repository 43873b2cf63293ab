"""Company: what a set of public strings is worth for the text that it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNIFORM = "takes each for as likely as the next"
POPULAR = "takes each for as likely as it is popular"
SENSITIVE = "expects subjects that people hide"
MATCHED = "expects just what decoys are drawn by"
"""What observers may believe beforehand of what texts are about."""
MEASURED = (
    "That is how sure each would be of the best guess, not how often it is right: for that see "
    "docs/cover-measured.md, where attacks were measured."
)


@dataclass(frozen=True, repr=False)
class Company:
    """In what company a text left. It is for its owner alone, ``representative`` above all.

    queries, groups, group_size, pool
        How many strings were released, in how many groups of what size, of how many in all.
    representative, is_text, drawn, sent
        The string of the pool that stands for the text; whether it is the text itself; whether
        chance put it, or its group, into the set; whether it was sent: of groups that are not its
        own it can be a member, too.
    inclusion, epsilon
        How likely that was, and what the set tells between any two texts; None: without bound.
    subjects
        How many subjects the pool was cut into, if the queries are on as many different ones; None:
        they are drawn without regard to it.
    guesses
        The largest exact probability that any string (or group) has given the set, for whoever
        knows pool, parameters and law, by what they believe beforehand of what texts are about. It
        is how often the guess is right if texts come as the belief says, and no measured share.
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
        """The belief that is surest of its best guess, of all that were computed."""
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
        queries, leave = f"{self.queries} queries", "leave"
        if self.queries == 1:
            queries, leave = "1 query", "leaves"
        if self.group_size > 1:
            queries = f"{queries} in {self.groups} groups"
        if self.subjects is not None:
            queries = f"{queries} on {self.groups} of {self.subjects:,} subjects"
        meant = "of them" if self.group_size == 1 else "group of them"
        surest, *weaker = sorted(self.guesses.items(), key=lambda item: -item[1])
        less_sure = "".join(f"; who {prior}, {_in_words(guess)}" for prior, guess in weaker)
        return (
            f"{queries}, drawn from {self.pool:,} public ones, {leave} for it. Whoever knows all "
            f"of these and how they are drawn, and {surest[0]}, takes one {meant} for what is "
            f"meant with probability {_in_words(surest[1])}{less_sure}. {MEASURED} Whoever knows "
            "more of what people ask, or of you, may do better."
        )

    @property
    def whether_sent(self) -> str:
        """Whether the text itself, or what stands for it, was sent; without any text."""
        if self.drawn and not self.sent:
            return f"The engine failed before {self._stands_for_it} was sent."
        return self._whether("was sent as one of them", "was sent")

    def unsent(self) -> dict[str, Any]:
        """For JSON, while nothing has been sent: what is in the set is said as that."""
        whether = self._whether("is one of them", "is one of them")
        return {**self.to_dict(), "sent": False, "query_sent": False, "whether_sent": whether}

    def _whether(self, is_in: str, is_there: str) -> str:
        """Which of the query and what stands for it is in the set, in the words given for that."""
        if not self.sent:
            return (
                f"Neither the query nor what stands for it {is_there}: {self._stands_for_it} was "
                f"left out by chance, as in {1 - self.inclusion:.2g} of the cases. That it may be "
                "missing protects it."
            )
        whether = f"Not the query itself, but the nearest public one {is_in}."
        if self.is_text:
            whether = f"The query itself is public, and {is_in}."
        if self.drawn:
            return whether
        return f"{whether} Its own group was left out by chance: it belongs to another one, too."

    @property
    def _stands_for_it(self) -> str:
        return "the query itself, which is public," if self.is_text else "the nearest public one"

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


def _in_words(chance: float) -> str:
    """A probability, and one in how many cases, where that is not nearly each."""
    one_in = round(1 / chance)
    return f"{chance:.2g}" if one_in < 2 else f"{chance:.2g}, 1 in {one_in}"
