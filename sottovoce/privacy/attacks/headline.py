"""The strongest of the attacks tried: one definition, and never without what the attacker knew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


class Measured(Protocol):
    """A result of an attack that can be compared with others."""

    @property
    def mean(self) -> float:
        """The share that the attack got."""
        ...


M = TypeVar("M", bound=Measured)


def strongest(results: Iterable[M]) -> M | None:
    """The result of the attack that got most; the first of several. None where none applies.

    It is chosen by the share that is then reported: this errs on the side of the attacker.
    """
    return max(results, key=lambda result: result.mean, default=None)


@dataclass(frozen=True)
class Headline:
    """The most that any of the attacks tried got, which one did, and what it knew."""

    what: str
    """``words``, ``queries``, or ``groups``: which string of a set stands for the query."""
    attack: str
    n: int
    share: float
    low: float
    high: float
    knows: str

    @property
    def mean(self) -> float:
        """The share: by it attacks are compared."""
        return self.share

    @property
    def sentence(self) -> str:
        """In plain words, for people."""
        got = {
            "words": f"recovers {self.share:.0%} of the words",
            "queries": f"names {self.share:.0%} of the queries at the first guess",
            "groups": f"names what stands for the query in {self.share:.0%} of the sets",
        }[self.what]
        return (
            f"The strongest of the attacks tried ({self.attack}, {self.n} variants) {got} "
            f"(95 %: {self.low:.0%}–{self.high:.0%}). The attacker knows {self.knows}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return vars(self)
