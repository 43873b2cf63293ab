"""What an attack recovered, as counts with intervals, and which attack counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sottovoce.statistics import clopper_pearson


class Guessed(NamedTuple):
    """What came of one text: how many of its words were guessed, and whether all of it was."""

    id: str
    right: int
    words: int
    whole: bool


@dataclass(frozen=True)
class Recovery:
    """One attack on the first ``n`` variants of every text.

    Shares are of all words and all texts, those included that the attack cannot guess. Where
    ``applies`` is False nothing was measured, and ``why`` says so: that is no zero.
    """

    attack: str
    n: int
    words: int = 0
    words_right: int = 0
    queries: int = 0
    queries_right: int = 0
    applies: bool = True
    why: str = ""
    bound: bool = False
    """Not an attack, but what somebody would recover who saw the noisy points themselves. Averaged
    over words drawn from the prior, no attack exceeds it; on given words it is a guide."""
    left_out: int = 0
    """Texts whose variants differ in their number of words: they have no positions."""
    survivors: float | None = None
    """Intersection: how many words could have given all that was seen, on average."""
    seeded: bool = False
    by_text: tuple[Guessed, ...] = ()
    """The same counts text by text; a bound has none."""

    @property
    def word_share(self) -> float | None:
        """The share of the words that were guessed."""
        return self.words_right / self.words if self.applies and self.words else None

    @property
    def query_share(self) -> float | None:
        """The share of the texts of which every word was guessed."""
        return self.queries_right / self.queries if self.applies and self.queries else None

    @property
    def word_interval(self) -> tuple[float, float] | None:
        """Clopper-Pearson, 95 %; it takes words as independent, which those of a text are not."""
        return _interval(self.words_right, self.words) if self.applies else None

    @property
    def query_interval(self) -> tuple[float, float] | None:
        """Clopper-Pearson, 95 %."""
        return _interval(self.queries_right, self.queries) if self.applies else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "attack": self.attack,
            "n": self.n,
            "applies": self.applies,
            "why": self.why,
            "bound": self.bound,
            "words": self.words,
            "words_right": self.words_right,
            "word_share": self.word_share,
            "word_interval": self.word_interval,
            "queries": self.queries,
            "queries_right": self.queries_right,
            "query_share": self.query_share,
            "query_interval": self.query_interval,
            "survivors": self.survivors,
            "left_out": self.left_out,
            "seeded": self.seeded,
        }


def strongest(recoveries: Iterable[Recovery]) -> Recovery | None:
    """The attack that recovered most: the headline. None where no attack applies."""
    measured = [each for each in recoveries if each.applies and not each.bound]
    return max(
        measured, key=lambda each: (each.word_share or 0.0, each.query_share or 0.0), default=None
    )


def _interval(hits: int, trials: int) -> tuple[float, float] | None:
    if not trials:
        return None
    low, high = clopper_pearson(hits, trials)
    return float(low), float(high)
