"""The risk of a set of releases: every attack that applies, and the strongest as the headline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.inference import Inference, infer
from sottovoce.privacy.attacks.priors import counted
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.recovery import Recovery
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.run import COUNTS, numbers_of_variants, reconstruct
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.types import Float64Array, Progress

QUERY_INFERENCE = "query inference"

Prior = Literal["uniform", "log"]


@dataclass(frozen=True)
class Headline:
    """The most that any attack got back, and which one did."""

    attack: str
    n: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class RiskReport:
    """What all attacks got back; it holds no text. The headline is the strongest attack's."""

    releases: int
    mechanism: str | None
    release: str
    prior: Prior
    recoveries: tuple[Recovery, ...]
    inferences: tuple[tuple[int, Inference], ...]
    """Query inference: how many variants were seen, and what came of it, encoder by encoder."""
    seeded: bool

    @property
    def attacks(self) -> list[Recovery]:
        """What attacks measured, without bounds and without those that do not apply."""
        return [each for each in self.recoveries if each.applies and not each.bound]

    @property
    def words(self) -> Headline | None:
        """The largest share of words that an attack got back; None where none applies."""
        return _strongest(
            Headline(each.attack, each.n, each.word_share, *each.word_interval)
            for each in self.attacks
            if each.word_share is not None and each.word_interval is not None
        )

    @property
    def texts(self) -> Headline | None:
        """The largest share of whole texts that an attack got back; None where none applies."""
        whole = [
            Headline(each.attack, each.n, each.query_share, *each.query_interval)
            for each in self.attacks
            if each.query_share is not None and each.query_interval is not None
        ]
        ranked = [
            Headline(
                f"{QUERY_INFERENCE} by encoder {each.encoder}",
                n,
                each.lazy.value,
                each.lazy.low,
                each.lazy.high,
            )
            for n, each in self.inferences
        ]
        return _strongest([*whole, *ranked])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "releases": self.releases,
            "mechanism": self.mechanism,
            "release": self.release,
            "prior": self.prior,
            "strongest": {
                "words": vars(self.words) if self.words else None,
                "texts": vars(self.texts) if self.texts else None,
            },
            "recoveries": [each.to_dict() for each in self.recoveries],
            "inference": [{"n": n, **each.to_dict()} for n, each in self.inferences],
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"RiskReport({self.releases} releases, {self.mechanism}, words: {self.words})"


def attack(
    releases: Sequence[Released],
    *,
    mechanism: WordMechanism | None = None,
    whole_texts: bool = False,
    release: Literal["independent", "once"] = "independent",
    log: QueryLog | None = None,
    encoders: Sequence[Encoder] = (),
    add_originals: bool = False,
    prior: Prior = "uniform",
    counts: Sequence[int] = COUNTS,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> RiskReport:
    """Run every attack on the releases.

    mechanism
        What made them: with it the attacker knows more. Without, only the mode and query inference.
    whole_texts
        They were made by replacing texts as a whole, so there are no words to line up.
    counts
        How many variants the attacker sees, one number after the other; all of them in the end.
    log, encoders
        The query log that the attacker searches, and what they compare with, one after the other:
        no encoder is the strongest against every mechanism. Without a log there is no query
        inference.
    prior
        What the attacker thinks of words beforehand: all alike, or as frequent as in the log.
    """
    if log is not None and not encoders:
        raise UsageError("query inference needs an encoder: see attacker_encoders")
    if prior == "log" and (log is None or mechanism is None):
        raise UsageError("a prior from the log needs a log, and the mechanism that was used")
    most = max((len(each.variants) for each in releases), default=0)
    if not most:
        raise UsageError("there is nothing to attack: no text has a variant")
    seen = numbers_of_variants(counts and (*counts, most), most)
    frequencies: Literal["uniform"] | Float64Array = "uniform"
    if prior == "log" and log is not None and mechanism is not None:
        frequencies = counted(mechanism.space, log.queries)
    inferences: list[tuple[int, Inference]] = []
    if log is not None:
        inferences = [
            (
                n,
                infer(
                    releases, log, by, variants=n, add_originals=add_originals, progress=progress
                ),
            )
            for by in encoders
            for n in seen
        ]
    recoveries = []
    if not whole_texts:
        recoveries = reconstruct(
            releases,
            mechanism,
            release=release,
            counts=seen,
            prior=frequencies,
            rng=rng,
            progress=progress,
        )
    return RiskReport(
        releases=len(releases),
        mechanism=mechanism.spec if mechanism else None,
        release=release,
        prior=prior,
        recoveries=tuple(recoveries),
        inferences=tuple(inferences),
        seeded=is_seeded(rng),
    )


def _strongest(found: Iterable[Headline]) -> Headline | None:
    return max(found, key=lambda each: each.share, default=None)
