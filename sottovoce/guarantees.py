"""What a mechanism promises, as data: the notion, its metric, its epsilon, and its limits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sottovoce.errors import UsageError

Notion = Literal["metric", "local", "group", "none"]
NOTIONS: tuple[Notion, ...] = ("metric", "local", "group", "none")

WORD_BY_WORD = (
    "the number of words, their order and the punctuation between them are released as they are"
)
FIXED_LENGTH = "texts of different lengths are not covered: they can be told apart"
SUBJECT = "subject"
"""The scope of a promise about which of several subjects a text is on, not about its words."""
MANY_RELEASES = "n independent variants of a text cost n times this"


@dataclass(frozen=True)
class Guarantee:
    """The privacy a mechanism has, per protected token (or text) and release.

    * ``metric``: two inputs at distance d give any output with log-probabilities that differ by
      at most epsilon * d. What that means depends on the metric: epsilons of different metrics
      cannot be compared, and it is no bound that holds for all pairs of words alike.
    * ``local``: the same bound epsilon for every two inputs.
    * ``group``: the bound epsilon holds inside a group; which group it is, is released.
    * ``none``: nothing is promised, whatever parameter is called epsilon.
    """

    notion: Notion
    epsilon: float | None
    metric: str | None = None
    scope: str = "in-vocabulary token"
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.notion not in NOTIONS:
            raise UsageError(f"unknown notion '{self.notion}': use one of {', '.join(NOTIONS)}")
        if (self.notion == "none") != (self.epsilon is None):
            raise UsageError("a guarantee has an epsilon, unless its notion is 'none'")
        if self.epsilon is not None and not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise UsageError(f"epsilon must be a positive number, got {self.epsilon}")
        if (self.notion == "metric") != (self.metric is not None):
            raise UsageError("a metric guarantee, and only that, names its metric")

    def loss(self, distance: float, releases: int = 1) -> float:
        """The most that ``releases`` outputs can tell two inputs at ``distance`` apart, in nats.

        ``distance`` is measured in the declared metric and summed over the words of a text. For
        ``local`` it is the number of words that differ; for ``group`` likewise, inside groups.
        """
        if not distance >= 0 or releases < 0:
            raise UsageError("distance and releases cannot be negative")
        if distance == 0 or releases == 0:
            return 0.0
        return math.inf if self.epsilon is None else self.epsilon * distance * releases

    def with_caveats(self, *more: str) -> Guarantee:
        """The same promise with further limits stated."""
        return replace(self, caveats=(*self.caveats, *(c for c in more if c not in self.caveats)))

    def without_caveat(self, caveat: str) -> Guarantee:
        """The same promise without a limit that does not apply."""
        return replace(self, caveats=tuple(c for c in self.caveats if c != caveat))

    @property
    def sentence(self) -> str:
        """One plain sentence for people."""
        if self.notion == "none":
            return "no formal guarantee."
        if self.notion == "metric":
            things = "texts" if self.scope == "text" else "words"
            return (
                f"metric privacy with epsilon {self.epsilon:g} per unit of {self.metric} distance, "
                f"for each {self.scope} and release: the closer two {things}, the harder to "
                f"tell apart; distant {things} can be told apart."
            )
        if self.notion == "group":
            return (
                f"epsilon {self.epsilon:g} inside a group of similar words, for each {self.scope} "
                "and release; the group itself is released."
            )
        if self.scope == "text":
            return (
                f"local differential privacy with epsilon {self.epsilon:g} between any two texts, "
                "for each release."
            )
        if self.scope == SUBJECT:
            return (
                f"local differential privacy with epsilon {self.epsilon:g} between any two "
                "subjects, as far as texts on a subject come as its public weights say; which "
                "text on it is meant is not hidden."
            )
        return (
            f"local differential privacy with epsilon {self.epsilon:g}, for each {self.scope} "
            "and release."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "caveats": list(self.caveats)}
