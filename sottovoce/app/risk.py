"""What an attacker reads off the variants of one query, in numbers and in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.app.state import Choice, Workbench
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import Released, RiskReport
from sottovoce.privacy import attack as assess
from sottovoce.privacy.attacks.recovery import strongest


def risk_of(
    bench: Workbench, choice: Choice, query: str, variants: Sequence[str]
) -> dict[str, Any]:
    """Attack these variants of a query with everything that applies."""
    mechanism = choice.obfuscator.mechanism
    report = assess(
        [Released("query", query, tuple(variants))],
        mechanism=mechanism if isinstance(mechanism, WordMechanism) else None,
        whole_texts=not isinstance(mechanism, WordMechanism),
        release=choice.obfuscator.release,
        log=bench.log(),
        encoders=bench.attackers(),
        add_originals=True,
        counts=(len(variants),),
    )
    ranked, words = _query(report), _words(report)
    read = words["sentence"] if words else "No attack on single words applies: not measured."
    return {"query": ranked, "words": words, "sentence": f"{ranked['sentence']} {read}"}


def _query(report: RiskReport) -> dict[str, Any]:
    """Query inference by the encoder that comes nearest."""
    best = min((each for _, each in report.inferences), key=lambda each: each.queries[0].rank)
    (found,) = best.queries
    guesses = f"at guess {found.rank:g}" if found.rank > 1 else "at the first guess"
    return {
        "rank": found.rank,
        "ties": found.ties,
        "log": best.log,
        "in_log": not best.added,
        "by": best.encoder,
        "sentence": (
            f"An attacker who compares what was sent with a log of {best.log:,} queries, yours "
            f"among them, comes to yours {guesses}."
        ),
    }


def _words(report: RiskReport) -> dict[str, Any] | None:
    """The attack that reads off most words; None where none applies."""
    found = strongest(report.recoveries)
    if found is None or not found.words:
        return None
    return {
        "recovered": found.words_right,
        "of": found.words,
        "by": found.attack,
        "sentence": (
            f"The strongest attack we know ({found.attack}) reads {found.words_right} of its "
            f"{found.words} words off what was sent."
        ),
    }
