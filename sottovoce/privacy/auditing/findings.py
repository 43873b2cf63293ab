"""What an audit is made of. Read this file first.

An audit takes what is said of a mechanism and tries to refute it:

* A :class:`Claim` is a guarantee that somebody gives for a mechanism: we ourselves (``stated``) or
  its paper or code (``published``). It says by how much two inputs may be told apart.
* A :class:`Subject` is a mechanism with its claims, and how thoroughly it is looked at.
* A :data:`Check` looks at a subject for one kind of failure, and reports findings.
  ``__init__.py`` chooses the checks of a mechanism; the other files of this room hold them.
* A :class:`Finding` is the outcome of one check: a sentence, figures, and a :data:`Verdict`. One
  that refutes a claim carries a :class:`Witness`, two inputs and an output that anybody can check.
* An :class:`Audit` is all of them, with a verdict for each claim and for the whole.

A check may be exact or may draw. All checks that draw share one small risk of a false alarm,
``LEVEL``; each of them has ``RISK_OF_A_CHECK`` for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.random import Generator

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.privacy.auditing.fewer_outputs import with_fewer_outputs
from sottovoce.privacy.word_samples import euclidean
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float64Array, IntArray

LEVEL = 1e-3
"""The chance, at most, that a whole audit refutes a sound mechanism by sampling."""
SAMPLED_CHECKS = 16
"""No audit has more checks that sample; each of them has an equal share of the level."""
RISK_OF_A_CHECK = LEVEL / SAMPLED_CHECKS
FEWEST_DRAWS = 1000
IN_FULL_SPACE = 10
"""In the mechanism's own space, draws are dear: so many times fewer there than on small spaces."""
OFTEN_DRAWN = 12
"""Of the words looked at, so many are drawn often."""
TOLERANCE = 1e-9
"""Nats by which an exact log-ratio may exceed its bound: rounding."""

Verdict: TypeAlias = Literal["REFUTED", "CONSISTENT", "NOT REFUTED", "NO CLAIM"]
"""
* ``REFUTED``: a counterexample was found, or a test failed beyond chance.
* ``CONSISTENT``: computed exactly, for everything the claim speaks of.
* ``NOT REFUTED``: looked for by sampling, or on some pairs only, and not found. No proof.
* ``NO CLAIM``: nothing is promised, so nothing can be refuted.
"""
Figures: TypeAlias = dict[str, float | int | None]
"""Numbers behind a finding, by name."""
STRUCTURE = "structure"
"""The label of findings about the machinery rather than about one claim."""


@dataclass(frozen=True)
class Claim:
    """A guarantee under its label: ``stated`` by us, or ``published`` by paper or code."""

    label: str
    guarantee: Guarantee

    @property
    def epsilon(self) -> float:
        """The claimed epsilon; a claim to audit has one."""
        assert self.guarantee.epsilon is not None  # noqa: S101 - see ``claims``
        return self.guarantee.epsilon

    @property
    def is_metric(self) -> bool:
        """Whether it allows more the farther two inputs are apart."""
        return self.guarantee.notion == "metric"

    def distances(
        self, mechanism: WordMechanism, words: IntArray, others: IntArray
    ) -> Float64Array:
        """How far words are apart in the claim's metric; 1 where it bounds every pair alike."""
        if not self.is_metric:
            return np.asarray(words != others, dtype=np.float64)
        if self.guarantee.metric == "euclidean":
            return euclidean(mechanism.space, words, others)
        return mechanism.distances(words, others)

    def bounds(self, mechanism: WordMechanism, words: IntArray, others: IntArray) -> Float64Array:
        """The log-ratio allowed for each pair, in nats."""
        return self.epsilon * self.distances(mechanism, words, others)


def guarantees(mechanism: Mechanism) -> dict[str, Guarantee]:
    """What is said of a mechanism, by label."""
    by_label = {"stated": mechanism.guarantee}
    if mechanism.published is not None:
        by_label["published"] = mechanism.published
    return by_label


def claims(mechanism: Mechanism) -> list[Claim]:
    """What is promised of a mechanism, and so can be refuted."""
    return [
        Claim(label, guarantee)
        for label, guarantee in guarantees(mechanism).items()
        if guarantee.epsilon
    ]


@dataclass(frozen=True)
class Witness:
    """Two inputs and one output whose probabilities break the bound."""

    first: str
    second: str
    output: str
    probabilities: tuple[float, float] | None
    """Of the output given the first input, and given the second; None for densities. Where the
    witness was sampled: a lower confidence bound, and an upper one."""
    log_ratio: float
    bound: float

    @classmethod
    def of_words(
        cls,
        space: WordSpace,
        ids: Sequence[int] | IntArray,
        probabilities: tuple[float, float],
        log_ratio: float,
        bound: float,
    ) -> Witness:
        """Two words of a space and the word released, by their ids."""
        first, second, output = space.words(np.array(ids))
        return cls(first, second, f"'{output}'", probabilities, log_ratio, bound)

    @property
    def sentence(self) -> str:
        if self.probabilities is None:
            comparison = "has log-densities that differ by"
        else:
            more, less = self.probabilities
            comparison = f"has probability {more:.3g} given the one and {less:.3g} given the other:"
        return (
            f"inputs '{self.first}' and '{self.second}', output {self.output}: it {comparison} "
            f"{_nats(self.log_ratio)}, where the claim allows {_nats(self.bound)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: there a log-ratio is null."""
        return {
            "inputs": [self.first, self.second],
            "output": self.output,
            "probabilities": self.probabilities and list(self.probabilities),
            "log_ratio": self.log_ratio if math.isfinite(self.log_ratio) else None,
            "infinite": math.isinf(self.log_ratio),
            "bound": self.bound,
        }


@dataclass(frozen=True, repr=False)
class Points:
    """Audited pairs for a figure: distances (or none), log-ratios, and what is allowed."""

    distances: Float64Array
    losses: Float64Array
    bounds: Float64Array


@dataclass(frozen=True)
class Finding:
    """The outcome of one check of one claim, or of the machinery (``claim`` is ``STRUCTURE``)."""

    check: str
    claim: str
    verdict: Verdict
    sentence: str
    witness: Witness | None = None
    figures: Figures = field(default_factory=dict)
    points: Points | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; numbers that are not finite are null."""
        return {
            "check": self.check,
            "claim": self.claim,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "witness": self.witness and self.witness.to_dict(),
            "figures": {
                name: None if value is None or not math.isfinite(value) else value
                for name, value in self.figures.items()
            },
        }


def structural(
    check: str, verdict: Verdict, sentence: str, figures: Figures | None = None
) -> list[Finding]:
    """The only finding of a check of the machinery, whatever is claimed."""
    return [Finding(check, STRUCTURE, verdict, sentence, None, figures or {})]


Audited = TypeVar("Audited", bound=Mechanism)


@dataclass(frozen=True)
class Subject(Generic[Audited]):
    """What every check is given: a mechanism, what is claimed of it, and how much to look at."""

    mechanism: Audited
    claims: list[Claim]
    words: IntArray
    """Ids of words to look at, where not all are; none for a mechanism that takes whole texts."""
    texts: int
    """How many texts to look at instead."""
    draws: int
    """For each word, on small spaces."""
    quick: bool
    rng: Generator

    @property
    def few_draws(self) -> int:
        """For each word, in the mechanism's own space."""
        return max(FEWEST_DRAWS, self.draws // IN_FULL_SPACE)

    @property
    def few_words(self) -> IntArray:
        """Words to draw often."""
        return self.words[:: max(1, len(self.words) // OFTEN_DRAWN)][:OFTEN_DRAWN]

    @cached_property
    def narrow(self) -> Audited:
        """The mechanism in its own space, releasing fewer words where that makes draws cheap."""
        if not isinstance(self.mechanism, WordMechanism):
            return self.mechanism
        return with_fewer_outputs(self.mechanism, self.words, self.rng)

    @property
    def narrowly(self) -> str:
        """What ``narrow`` releases, for sentences; nothing where that is everything."""
        if self.narrow is self.mechanism or not isinstance(self.narrow, WordMechanism):
            return ""
        return f" with {len(self.narrow.space.output):,} words to be released"


Step: TypeAlias = Callable[[float], None]
"""Told the share of a check's work that is done."""
Check: TypeAlias = Callable[[Subject[Any], Step], list[Finding]]
"""Looks at a subject for one kind of failure."""


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim and what became of it."""

    label: str
    guarantee: Guarantee
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "guarantee": self.guarantee.to_dict()}


@dataclass(frozen=True)
class Audit:
    """Everything an audit of a mechanism found."""

    mechanism: str
    space: str | None
    guarantees: dict[str, Guarantee]
    """What is said of the mechanism, by label."""
    findings: tuple[Finding, ...]
    seeded: bool
    level: float = LEVEL
    """The chance, at most, that sampling refutes a mechanism that keeps its claims."""

    @property
    def claims(self) -> tuple[ClaimVerdict, ...]:
        return tuple(
            ClaimVerdict(label, guarantee, self._verdict(label, guarantee))
            for label, guarantee in self.guarantees.items()
        )

    def _verdict(self, label: str, guarantee: Guarantee) -> Verdict:
        if guarantee.notion == "none":
            return "NO CLAIM"
        verdicts = {finding.verdict for finding in self.findings if finding.claim == label}
        if "REFUTED" in verdicts:
            return "REFUTED"
        return "CONSISTENT" if "CONSISTENT" in verdicts else "NOT REFUTED"

    @property
    def verdict(self) -> Verdict:
        """Of the whole: as good as its worst part."""
        if any(finding.verdict == "REFUTED" for finding in self.findings):
            return "REFUTED"
        verdicts = {claim.verdict for claim in self.claims} - {"NO CLAIM"}
        if not verdicts:
            return "NO CLAIM"
        return "CONSISTENT" if verdicts == {"CONSISTENT"} else "NOT REFUTED"

    @property
    def refutes_what_is_stated(self) -> bool:
        """Whether our own promise, or the machinery, failed, and not what others published."""
        return any(
            finding.verdict == "REFUTED" and finding.claim != "published"
            for finding in self.findings
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "space": self.space,
            "verdict": self.verdict,
            "claims": [claim.to_dict() for claim in self.claims],
            "findings": [finding.to_dict() for finding in self.findings],
            "level": self.level,
            "seeded": self.seeded,
        }


def _nats(value: float) -> str:
    return "infinitely many nats" if math.isinf(value) else f"{value:.4g} nats"
