"""The risk of a set of releases: what every attack got that applies, and the strongest of them.

One definition for all outputs: the strongest attack is the one with the greatest share, and it is
never named without what the attacker knew. Two readings stand side by side: an attacker who has the
very query in a list (query inference), and one who has not (words).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sottovoce.choices import Release
from sottovoce.privacy.attacks.ranked import Inference
from sottovoce.privacy.attacks.words import Share, WordRecovery


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


@dataclass(frozen=True, repr=False)
class RiskReport:
    """What all attacks got; it holds no text."""

    releases: int
    mechanism: str | None
    release: Release
    recoveries: tuple[tuple[int, WordRecovery], ...]
    """Words recovered: how many variants were seen, and what came of it."""
    inferences: tuple[tuple[int, Inference], ...]
    """Query inference, in the same way."""
    not_tried: dict[str, str]
    """Attacks that were not tried, and why: that is no zero."""
    left_out: int = 0
    """Texts whose variants do not line up."""
    seeded: bool = False

    @property
    def words(self) -> Headline | None:
        """The largest share of words that an attacker recovered who has not the query in a list."""
        return strongest(
            _headline("words", recovery.attack, n, recovery.words, recovery.knows)
            for n, recovery in self.recoveries
            if recovery.words.total
        )

    @property
    def queries(self) -> Headline | None:
        """The largest share of queries that an attacker named who has them in a list."""
        return strongest(
            Headline(
                "queries",
                inference.attack,
                n,
                inference.lazy.value,
                inference.lazy.low,
                inference.lazy.high,
                inference.knows,
            )
            for n, inference in self.inferences
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "releases": self.releases,
            "mechanism": self.mechanism,
            "release": self.release,
            "strongest": {
                "words": self.words and self.words.to_dict(),
                "queries": self.queries and self.queries.to_dict(),
            },
            "recoveries": [{"n": n, **recovery.to_dict()} for n, recovery in self.recoveries],
            "inferences": [{"n": n, **inference.to_dict()} for n, inference in self.inferences],
            "not_tried": self.not_tried,
            "left_out": self.left_out,
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"RiskReport({self.releases} releases, {self.mechanism})"


def _headline(what: str, attack: str, n: int, share: Share, knows: str) -> Headline:
    return Headline(what, attack, n, share.right / share.total, share.low, share.high, knows)
