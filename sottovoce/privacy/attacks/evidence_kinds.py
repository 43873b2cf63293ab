"""Which kind of evidence there is for a mechanism and a release."""

from sottovoce.privacy.attacks.evidence import evidence_for as evidence_for
