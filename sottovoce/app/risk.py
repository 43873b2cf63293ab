"""What attacks read off the variants of one query, in numbers and in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from sottovoce.app.loaded import LoadedParts, Protection
from sottovoce.privacy import Released, RiskReport, attack
from sottovoce.privacy.attacks.company.report import CompanyReport
from sottovoce.privacy.attacks.headline import strongest


class Risk(TypedDict):
    """What attacks on one query gave; ``words`` is null where no attack on words applies."""

    query: dict[str, Any] | None
    words: dict[str, Any] | None
    sentence: str


def risk_of(
    parts: LoadedParts, protection: Protection, query: str, variants: Sequence[str]
) -> Risk:
    """Attack these variants of a query with everything that applies."""
    obfuscator = protection.obfuscator
    report = attack(
        [Released("query", query, tuple(variants))],
        mechanism=obfuscator.mechanism,
        release=obfuscator.release,
        pipeline=obfuscator.pipeline,
        log=parts.log(),
        encoders=parts.attackers(),
        add_originals=True,
        counts=(len(variants),),
    )
    if report.company is not None:
        by_group = _group_risk(report.company)
        return {"query": by_group, "words": None, "sentence": by_group["sentence"]}
    by_query, by_word = _query_risk(report), _word_risk(report)
    sentences = (
        by_query["sentence"] if by_query else "Whether your query can be named was not measured.",
        by_word["sentence"] if by_word else "No attack on single words applies: not measured.",
    )
    return {"query": by_query, "words": by_word, "sentence": " ".join(sentences)}


def _group_risk(company: CompanyReport) -> dict[str, Any]:
    """The attack that comes nearest to what stands for the query, among what left with it."""
    best = min(company.namings, key=lambda naming: naming.ranks[0])
    (rank,) = best.ranks
    guesses = f"at guess {rank:g}" if rank > 1 else "at the first guess"
    when = "never: what stands for your query was not sent" if math.isinf(rank) else guesses
    return {
        "rank": None if math.isinf(rank) else rank,
        "log": company.strings,
        "by": best.attack,
        "knows": best.knows,
        "sentence": f"Of {company.strings} queries that left, the strongest of the attacks tried "
        f"({best.attack}) names the one that stands for yours {when}. The attacker knows "
        f"{best.knows}. Someone who knows what you asked before does better.",
    }


def _query_risk(report: RiskReport) -> dict[str, Any] | None:
    """The query inference that comes nearest."""
    inferences = [inference for _, inference in report.inferences if inference.queries]
    if not inferences:
        return None
    best = min(inferences, key=lambda inference: inference.queries[0].rank)
    (ranked,) = best.queries
    guesses = f"at guess {ranked.rank:g}" if ranked.rank > 1 else "at the first guess"
    return {
        "rank": ranked.rank,
        "ties": ranked.ties,
        "log": best.log,
        "in_log": not best.added,
        "by": best.attack,
        "knows": best.knows,
        "sentence": f"The strongest of the attacks tried ({best.attack}) comes to your query "
        f"{guesses}: the attacker knows {best.knows}.",
    }


def _word_risk(report: RiskReport) -> dict[str, Any] | None:
    """The attack that reads off most words; None where none applies."""
    recovery = strongest(recovery for _, recovery in report.recoveries if recovery.words.total)
    if recovery is None:
        return None
    words = recovery.words
    return {
        "recovered": words.right,
        "of": words.total,
        "by": recovery.attack,
        "knows": recovery.knows,
        "sentence": f"An attacker who has not your query in a list reads {words.right} of its "
        f"{words.total} words off what was sent ({recovery.attack}), and knows {recovery.knows}.",
    }
