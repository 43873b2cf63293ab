"""The risk of a set of releases: what every attack got that applies, and the strongest of them.

Two readings stand side by side: an attacker who has the very query in a list (query inference), and
one who has not (words). Where texts leave in company, a third: which of what left was meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sottovoce.choices import Release
from sottovoce.privacy.attacks.company.report import CompanyReport
from sottovoce.privacy.attacks.headline import Headline, strongest
from sottovoce.privacy.attacks.ranked import Inference
from sottovoce.privacy.attacks.words import Share, WordRecovery


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
    company: CompanyReport | None = None
    """Which string of a set was meant, where texts leave as sets."""

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

    @property
    def groups(self) -> Headline | None:
        """The largest share of sets in which an attacker named what stands for the query."""
        return None if self.company is None else self.company.headline

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "releases": self.releases,
            "mechanism": self.mechanism,
            "release": self.release,
            "strongest": {
                "words": self.words and self.words.to_dict(),
                "queries": self.queries and self.queries.to_dict(),
                "groups": self.groups and self.groups.to_dict(),
            },
            "recoveries": [{"n": n, **recovery.to_dict()} for n, recovery in self.recoveries],
            "inferences": [{"n": n, **inference.to_dict()} for n, inference in self.inferences],
            "company": self.company and self.company.to_dict(),
            "not_tried": self.not_tried,
            "left_out": self.left_out,
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"RiskReport({self.releases} releases, {self.mechanism})"


def _headline(what: str, attack: str, n: int, share: Share, knows: str) -> Headline:
    return Headline(what, attack, n, share.right / share.total, share.low, share.high, knows)
