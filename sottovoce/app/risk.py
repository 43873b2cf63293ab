"""What an attacker reads off the variants of one query, in numbers and in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from sottovoce.app.loaded import LoadedParts, Protection
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import Released, RiskReport
from sottovoce.privacy import attack as assess
from sottovoce.privacy.attacks.recovery import strongest

NO_WORDS = "No attack on single words applies: not measured."
NOT_BY_PLACE = (
    "The attacks on single words need their order, which is random here: not measured, and no "
    "proof that nobody can read them."
)


class Risk(TypedDict):
    """What attacks on one query gave; ``words`` is null where no attack on words applies."""

    query: dict[str, Any]
    words: dict[str, Any] | None
    sentence: str


def risk_of(
    parts: LoadedParts, protection: Protection, query: str, variants: Sequence[str]
) -> Risk:
    """Attack these variants of a query with everything that applies."""
    mechanism = protection.obfuscator.mechanism
    # The attacks on words go place by place: on words in random order they would seem to fail.
    by_place = mechanism.by_word and protection.obfuscator.pipeline.order == "kept"
    report = assess(
        [Released("query", query, tuple(variants))],
        mechanism=mechanism if by_place and isinstance(mechanism, WordMechanism) else None,
        whole_texts=not by_place,
        release=protection.obfuscator.release,
        log=parts.log(),
        encoders=parts.attackers(),
        add_originals=True,
        counts=(len(variants),),
    )
    by_query, by_word = _query_risk(report), _word_risk(report)
    on_words = by_word["sentence"] if by_word else NOT_BY_PLACE if mechanism.by_word else NO_WORDS
    return {"query": by_query, "words": by_word, "sentence": f"{by_query['sentence']} {on_words}"}


def _query_risk(report: RiskReport) -> dict[str, Any]:
    """Query inference by the encoder that comes nearest."""
    inferences = [inference for _, inference in report.inferences]
    best = min(inferences, key=lambda inference: inference.queries[0].rank)
    (inferred,) = best.queries
    guesses = f"at guess {inferred.rank:g}" if inferred.rank > 1 else "at the first guess"
    return {
        "rank": inferred.rank,
        "ties": inferred.ties,
        "log": best.log,
        "in_log": not best.added,
        "by": best.encoder,
        "sentence": (
            f"An attacker who compares what was sent with a log of {best.log:,} queries, yours "
            f"among them, comes to yours {guesses}."
        ),
    }


def _word_risk(report: RiskReport) -> dict[str, Any] | None:
    """The attack that reads off most words; None where none applies."""
    recovery = strongest(report.recoveries)
    if recovery is None or not recovery.words:
        return None
    return {
        "recovered": recovery.words_right,
        "of": recovery.words,
        "by": recovery.attack,
        "sentence": (
            f"The strongest attack we know ({recovery.attack}) reads {recovery.words_right} of its "
            f"{recovery.words} words off what was sent."
        ),
    }
