"""The audit: whether a mechanism keeps what is stated, or published, about it."""

from sottovoce.privacy.audit.run import audit
from sottovoce.privacy.audit.verdicts import Audit, ClaimVerdict, Finding, Verdict, Witness

__all__ = ["Audit", "ClaimVerdict", "Finding", "Verdict", "Witness", "audit"]
