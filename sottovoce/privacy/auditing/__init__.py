"""The audit: whether a mechanism keeps what is stated, or published, about it.

``findings.py`` says what an audit is made of; start there.
"""

from sottovoce.privacy.auditing.auditor import audit
from sottovoce.privacy.auditing.findings import (
    Audit,
    Check,
    Claim,
    ClaimVerdict,
    Finding,
    Verdict,
    Witness,
)

__all__ = ["Audit", "Check", "Claim", "ClaimVerdict", "Finding", "Verdict", "Witness", "audit"]
