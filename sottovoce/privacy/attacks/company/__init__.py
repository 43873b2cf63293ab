"""Attacks on company: which of the strings that left together stands for what was asked.

Systems that send decoys were broken by what their decoys lack: a source that nobody can list, the
looks and subjects of what people ask, and a life of their own over time. Each of these attacks
reads one of them. Run all through :func:`attack_company`, on ``cover``, or :func:`attack_sets`, on
sets from any source.
"""

from sottovoce.privacy.attacks.company.report import CompanyReport, Naming
from sottovoce.privacy.attacks.company.run import Knowledge, attack_company, attack_sets
from sottovoce.privacy.attacks.company.sets import SeenSet, seen_sets

__all__ = [
    "CompanyReport",
    "Knowledge",
    "Naming",
    "SeenSet",
    "attack_company",
    "attack_sets",
    "seen_sets",
]
