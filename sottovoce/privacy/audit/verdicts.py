"""What an audit says: verdicts, the findings behind them, and witnesses that anybody can check."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sottovoce.guarantees import Guarantee
from sottovoce.types import Float64Array

Verdict: TypeAlias = Literal["REFUTED", "CONSISTENT", "NOT REFUTED", "NO CLAIM"]
"""
* ``REFUTED``: a counterexample was found, or a test failed beyond chance.
* ``CONSISTENT``: computed exactly, for everything the claim speaks of.
* ``NOT REFUTED``: looked for by sampling, or on some pairs only, and not found. No proof.
* ``NO CLAIM``: nothing is promised, so nothing can be refuted.
"""
STRUCTURE = "structure"
"""The label of findings about the machinery rather than about one claim."""


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

    @property
    def sentence(self) -> str:
        """The witness in words."""
        if self.probabilities is None:
            said = "has log-densities that differ by"
        else:
            more, less = self.probabilities
            said = f"has probability {more:.3g} given the one and {less:.3g} given the other:"
        return (
            f"inputs '{self.first}' and '{self.second}', output {self.output}: it {said} "
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
    """The outcome of one check of one claim."""

    check: str
    claim: str
    verdict: Verdict
    sentence: str
    witness: Witness | None = None
    figures: dict[str, float | int | None] = field(default_factory=dict)
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


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim and what became of it."""

    label: str
    guarantee: Guarantee
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "label": self.label,
            "guarantee": self.guarantee.to_dict(),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Audit:
    """Everything an audit of a mechanism found."""

    mechanism: str
    space: str | None
    claims: tuple[ClaimVerdict, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]
    level: float
    """The chance, at most, that sampling refutes a mechanism that keeps its claims."""
    seeded: bool

    @classmethod
    def of(
        cls,
        mechanism: str,
        space: str | None,
        guarantees: dict[str, Guarantee],
        findings: tuple[Finding, ...],
        level: float,
        seeded: bool,
    ) -> Audit:
        """Verdicts of the claims and of the whole, from the findings."""
        claims = tuple(
            ClaimVerdict(label, guarantee, _of_claim(label, guarantee, findings))
            for label, guarantee in guarantees.items()
        )
        said = {claim.verdict for claim in claims} - {"NO CLAIM"}
        verdict: Verdict = "NO CLAIM"
        if any(finding.verdict == "REFUTED" for finding in findings):
            verdict = "REFUTED"
        elif said:
            verdict = "CONSISTENT" if said == {"CONSISTENT"} else "NOT REFUTED"
        return cls(mechanism, space, claims, verdict, findings, level, seeded)

    @property
    def refutes_what_is_stated(self) -> bool:
        """Whether our own promise, or the machinery, failed, and not what others published."""
        return any(
            each.verdict == "REFUTED" and each.claim != "published" for each in self.findings
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mechanism": self.mechanism,
            "space": self.space,
            "verdict": self.verdict,
            "claims": [claim.to_dict() for claim in self.claims],
            "findings": [finding.to_dict() for finding in self.findings],
            "level": self.level,
            "seeded": self.seeded,
        }


def _of_claim(label: str, guarantee: Guarantee, findings: tuple[Finding, ...]) -> Verdict:
    if guarantee.notion == "none":
        return "NO CLAIM"
    said = {finding.verdict for finding in findings if finding.claim == label}
    if "REFUTED" in said:
        return "REFUTED"
    return "CONSISTENT" if "CONSISTENT" in said else "NOT REFUTED"


def _nats(value: float) -> str:
    return "infinitely many nats" if math.isinf(value) else f"{value:.4g} nats"
