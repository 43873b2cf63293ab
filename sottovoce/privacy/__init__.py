"""What could an attacker still learn? A mechanism is measured through its public interface.

:func:`attack` tries to read the originals off releases, :func:`attack_company` which string of a
set was meant, :func:`attack_chorus` which of several obfuscated texts; :func:`audit` tries to
refute what is said of a mechanism; :func:`deniability` measures how well single words are hidden,
and :func:`calibrate` finds the epsilon that hides them well enough, :func:`equivalent_epsilon` the
one that does in another space what an epsilon does in this; :func:`similarity` compares
texts with their releases; :func:`quipu` weighs risk against utility; :func:`membership` finds out
whose text a model was trained on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.privacy.attacks.company.choirs import attack_chorus
    from sottovoce.privacy.attacks.company.report import ChorusReport, CompanyReport, Naming
    from sottovoce.privacy.attacks.company.run import Knowledge, attack_company, attack_sets
    from sottovoce.privacy.attacks.cosine import attacker_encoders, infer
    from sottovoce.privacy.attacks.headline import Headline
    from sottovoce.privacy.attacks.query_log import QueryLog, read_log
    from sottovoce.privacy.attacks.ranked import Inference
    from sottovoce.privacy.attacks.releases import Released, read_releases
    from sottovoce.privacy.attacks.report import RiskReport
    from sottovoce.privacy.attacks.run import attack
    from sottovoce.privacy.attacks.vectors import Inversion, SeenVector, invert
    from sottovoce.privacy.attacks.words import WordRecovery
    from sottovoce.privacy.auditing import Audit, Claim, Finding, Verdict, Witness, audit
    from sottovoce.privacy.calibration import Calibration, calibrate
    from sottovoce.privacy.costs import Cost, measure_cost
    from sottovoce.privacy.equivalent_epsilons import (
        EpsilonMatch,
        epsilon_with_unchanged,
        equivalent_epsilon,
    )
    from sottovoce.privacy.membership_audit import (
        MembershipReport,
        UserLog,
        membership,
        read_user_log,
    )
    from sottovoce.privacy.plausible_deniability import Deniability, deniability
    from sottovoce.privacy.quipu_score import Curve, QuipuScore, quipu, read_curves
    from sottovoce.privacy.targets import Targets
    from sottovoce.privacy.text_similarity import Similarity, SimilarityMeter, similarity
    from sottovoce.privacy.word_samples import sample_words

__all__ = [
    "Audit",
    "Calibration",
    "ChorusReport",
    "Claim",
    "CompanyReport",
    "Cost",
    "Curve",
    "Deniability",
    "EpsilonMatch",
    "Finding",
    "Headline",
    "Inference",
    "Inversion",
    "Knowledge",
    "MembershipReport",
    "Naming",
    "QueryLog",
    "QuipuScore",
    "Released",
    "RiskReport",
    "SeenVector",
    "Similarity",
    "SimilarityMeter",
    "Targets",
    "UserLog",
    "Verdict",
    "Witness",
    "WordRecovery",
    "attack",
    "attack_chorus",
    "attack_company",
    "attack_sets",
    "attacker_encoders",
    "audit",
    "calibrate",
    "deniability",
    "epsilon_with_unchanged",
    "equivalent_epsilon",
    "infer",
    "invert",
    "measure_cost",
    "membership",
    "quipu",
    "read_curves",
    "read_log",
    "read_releases",
    "read_user_log",
    "sample_words",
    "similarity",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".attacks.cosine": "attacker_encoders, infer",
        ".attacks.company.choirs": "attack_chorus",
        ".attacks.company.report": "ChorusReport, CompanyReport, Naming",
        ".attacks.company.run": "Knowledge, attack_company, attack_sets",
        ".attacks.headline": "Headline",
        ".attacks.query_log": "QueryLog, read_log",
        ".attacks.ranked": "Inference",
        ".attacks.releases": "Released, read_releases",
        ".attacks.report": "RiskReport",
        ".attacks.run": "attack",
        ".attacks.vectors": "Inversion, SeenVector, invert",
        ".attacks.words": "WordRecovery",
        ".auditing": "Audit, Claim, Finding, Verdict, Witness, audit",
        ".calibration": "Calibration, calibrate",
        ".costs": "Cost, measure_cost",
        ".equivalent_epsilons": "EpsilonMatch, epsilon_with_unchanged, equivalent_epsilon",
        ".membership_audit": "MembershipReport, UserLog, membership, read_user_log",
        ".plausible_deniability": "Deniability, deniability",
        ".quipu_score": "Curve, QuipuScore, quipu, read_curves",
        ".targets": "Targets",
        ".text_similarity": "Similarity, SimilarityMeter, similarity",
        ".word_samples": "sample_words",
    },
)
