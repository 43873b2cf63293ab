"""What the service says of itself: health, mechanisms, settings, the plane, the ledger."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from typing_extensions import TypedDict

from sottovoce import __version__, defaults
from sottovoce.app import measured
from sottovoce.app.loaded import LoadedParts, Protection, account_of
from sottovoce.app.measured import MAIN, Figure, Measured, Summary
from sottovoce.app.openapi import Like
from sottovoce.app.schemas import VOICES, ProtectionBody, Voice
from sottovoce.errors import SpaceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Budget, Ledger, NoLedgerError, Promise, Record, Spent, in_words
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.build import kind, names, stand_ins

VERDICTS = Path(__file__).with_name("verdicts.json")
NOT_AUDITED = "NOT AUDITED"
MEANINGS = {
    "REFUTED": "a counterexample was found",
    "CONSISTENT": "every claim was computed exactly, and holds",
    "NOT REFUTED": "we tried to refute it and did not succeed, which is no proof",
    "NO CLAIM": "nothing is promised, so nothing can be refuted",
    NOT_AUDITED: "nobody has tried to refute it here",
}
PUBLISHED_ONLY = (
    "a counterexample was found to what was published about it, which is not what is stated here"
)
RECORDS = 50
"""The latest records of the ledger that are shown."""


# Health


class Health(TypedDict):
    """``status`` is loading, ready or incomplete; ``problems`` say what to do.

    What is not loaded yet, or not there, is null.
    """

    status: str
    problems: list[str]
    version: str
    collection: str | None
    engine: str | None
    remote: bool | None
    reranker: str | None
    space: str | None
    log: int | None


def health_of(parts: LoadedParts, problems: list[str]) -> Health:
    """What is there; nothing is waited for."""
    engine = parts.engine() if parts.engine.is_loaded else None
    has_collection = engine is not None and not engine.remote and parts.collection.is_loaded
    return {
        "status": "loading" if not parts.ready else "incomplete" if problems else "ready",
        "problems": problems,
        "version": __version__,
        "collection": parts.collection().name if has_collection else None,
        "engine": None if engine is None else engine.name,
        "remote": None if engine is None else engine.remote,
        "reranker": parts.reranker().name if parts.reranker.is_loaded else None,
        "space": parts.space().name if parts.space.is_loaded else None,
        "log": len(parts.log()) if parts.log.is_loaded else None,
    }


# Mechanisms


PromiseInWords = Annotated[
    dict[str, Any], Like(Guarantee, name="PromiseInWords", more=(("sentence", str),))
]


class Verdict(TypedDict):
    """What an audit of a mechanism with its usual parameters found, by whom and when."""

    verdict: str
    meaning: str
    claims: list[dict[str, Any]]
    why: str | None


class DescribedMechanism(TypedDict):
    """A mechanism with its usual parameters; ``published`` is what its paper claims beyond."""

    name: str
    summary: str
    paper: str
    spec: str
    parameters: list[dict[str, Any]]
    guarantee: PromiseInWords
    published: PromiseInWords | None
    protects: str
    warning: str | None
    audit: Verdict


class Mechanisms(TypedDict):
    """All mechanisms, and which is used unless another is asked for."""

    default: str
    mechanisms: list[DescribedMechanism]


def all_mechanisms(parts: LoadedParts) -> Mechanisms:
    """Every mechanism: what it does, promises, claims, and the audit's verdict."""
    mechanisms = [_mechanism(parts, name) for name in names()]
    return {"default": defaults.MECHANISM, "mechanisms": mechanisms}


def _mechanism(parts: LoadedParts, name: str) -> Any:
    """A mechanism, described with the service's word space if there is one."""
    resources = stand_ins(kind(name))
    if "space" in resources:
        with suppress(SpaceError):
            resources["space"] = parts.space()
    mechanism = kind(name)(**resources)
    published = mechanism.published
    return {
        **mechanism.describe(),
        "guarantee": _in_words(mechanism.guarantee),
        "published": None if published is None else _in_words(published),
        "warning": warning(mechanism),
        "audit": verdict_of(name),
    }


def _in_words(guarantee: Guarantee) -> dict[str, Any]:
    return {**guarantee.to_dict(), "sentence": guarantee.sentence}


@cache
def verdicts() -> dict[str, Any]:
    """What audits found, by mechanism; ``tools/audit_verdicts.py`` writes it."""
    content: dict[str, Any] = json.loads(VERDICTS.read_text("utf-8"))
    return content


def verdict_of(name: str) -> Any:
    """The audit's verdict on a mechanism."""
    audits = verdicts()
    audit = audits["mechanisms"].get(name, {"verdict": NOT_AUDITED, "claims": [], "why": None})
    origin = {key: audits[key] for key in ("by", "made", "space")}
    meaning = PUBLISHED_ONLY if _refuted(audit) == {"published"} else MEANINGS[audit["verdict"]]
    return {**audit, **origin, "meaning": meaning}


def _refuted(audit: dict[str, Any]) -> set[str]:
    """Which claims an audit refuted: what is stated, what was published."""
    return {claim["label"] for claim in audit["claims"] if claim["verdict"] == "REFUTED"}


def warning(mechanism: Mechanism) -> str | None:
    """In plain words, where nothing is promised or a promise was refuted; else None."""
    refuted = _refuted(verdict_of(mechanism.name))
    sentences = []
    if mechanism.guarantee.notion == "none":
        sentences.append("This promises nothing: no proof limits what a stranger can learn.")
    if "published" in refuted:
        sentences.append("What was published about it is wrong: our audit found a counterexample.")
    if refuted - {"published"}:
        sentences.append("What it states was refuted by our audit: do not rely on it.")
    return " ".join(sentences) or None


# Settings


class DescribedSetting(TypedDict):
    """A setting; ``cost`` in nats per unit of distance, null where nothing bounds it.

    ``account`` is that of the ledger, ``point`` the id of its point in the plane, if it has one.
    """

    mechanism: str
    spec: str
    epsilon: float | None
    n: int
    release: str
    guarantee: PromiseInWords
    account: Annotated[dict[str, Any], Like(Promise, name="Account")]
    cost: float | None
    warning: str | None
    point: str | None
    risk: dict[str, Figure | None]
    utility: Figure | None
    baseline: float | None
    sentences: dict[str, str | None]
    not_measured: str | None


class DescribedVoice(DescribedSetting):
    """A setting with a name."""

    id: str
    name: str
    line: str


class Voices(TypedDict):
    """The voices, which is the default and why, and where their figures come from.

    ``own_queries`` warns that the public queries seem to be the person's own; only whoever has the
    token is told.
    """

    default: str
    why_default: str
    own_queries: str | None
    measured: dict[str, Any] | None
    not_measured: str | None
    voices: list[DescribedVoice]


def all_voices(parts: LoadedParts, *, trusted: bool = False) -> Voices:
    """The voices, each with what it promises and what was measured of it.

    ``trusted``: whether it is for the person, who may know what the ledger holds.
    """
    summary = measured.summary_of(parts)
    usual = parts.usual_voice()
    company = parts.offers_company()
    return {
        "default": usual.id,
        "why_default": usual.why,
        "own_queries": parts.own_queries() if trusted and company else None,
        "measured": measured.origin(summary) if summary else None,
        "not_measured": None if summary else measured.not_measured(parts),
        "voices": [
            {
                "id": voice.id,
                "name": voice.name,
                "line": _line(voice, parts),
                **_setting(parts, parts.protection(ProtectionBody(voice=voice.id)), summary),
            }
            for voice in VOICES
            if company or not voice.in_company
        ],
    }


def _line(voice: Voice, parts: LoadedParts) -> str:
    """A voice in words; a company that is smaller than usual says so."""
    small = parts.small_company if voice.in_company else None
    return voice.line if small is None else f"{voice.line} {small}"


def describe_setting(body: ProtectionBody, parts: LoadedParts) -> DescribedSetting:
    """One setting, as a voice is described."""
    return _setting(parts, parts.protection(body), measured.summary_of(parts))


def _setting(
    parts: LoadedParts, protection: Protection, summary: Summary | None
) -> DescribedSetting:
    """What a setting is, promises and costs, and what was measured of exactly this setting."""
    obfuscator = protection.obfuscator
    mechanism = obfuscator.mechanism
    figures = measured.figures_of(parts, summary, protection)
    epsilon = mechanism.guarantee.epsilon
    return {
        "mechanism": mechanism.name,
        "spec": mechanism.spec,
        "epsilon": getattr(mechanism, "epsilon", None),
        "n": obfuscator.n,
        "release": obfuscator.release,
        "guarantee": _in_words(mechanism.guarantee),
        "account": account_of(mechanism, mechanism.guarantee)._asdict(),
        "cost": None if epsilon is None else epsilon * obfuscator.releases,
        "warning": warning(mechanism),
        "point": measured.identity(figures) if figures else None,
        "risk": _risk(figures or {}),
        "utility": (figures or {}).get(MAIN),
        "baseline": _baseline(summary or {}),
        "sentences": measured.sentences(figures, summary),
        "not_measured": measured.missing(parts, figures),
    }


def _risk(figures: Measured) -> dict[str, Figure | None]:
    return {"query": figures.get("lazy"), "words": figures.get("words")}


def _baseline(summary: Summary) -> float | None:
    """What is found without privacy."""
    baseline: float | None = (summary.get("baseline") or {}).get(MAIN)
    return baseline


# The plane of risk and utility


class Point(TypedDict):
    """A setting in the plane of risk and utility; ``spec`` is null where others made releases."""

    id: str
    mechanism: str
    spec: str | None
    epsilon: float | None
    release: str
    n: int
    title: str
    utility: Figure | None
    risk: dict[str, Figure | None]
    tooltip: str


class Plane(TypedDict):
    """All measured settings of this collection."""

    measured: dict[str, Any] | None
    not_measured: str | None
    baseline: float | None
    points: list[Point]


def plane(parts: LoadedParts) -> Plane:
    """Where each measured setting lies: risk to the right, what is still found upwards."""
    summary = measured.summary_of(parts)
    settings = summary["settings"] if summary else []
    return {
        "measured": measured.origin(summary) if summary else None,
        "not_measured": None if summary else measured.not_measured(parts),
        "baseline": _baseline(summary or {}),
        "points": [_point(figures, summary) for figures in settings],
    }


def _point(figures: Measured, summary: Summary | None) -> Point:
    name, release, n = figures["mechanism"], figures["release"], figures["n"]
    title = f"{figures['spec'] or name}, {release}, {n} variants"
    if protected := (figures.get("texts") or {}).get("protect"):
        title += f", protecting {protected} words"
    sentences = measured.sentences(figures, summary)
    return {
        "id": measured.identity(figures),
        "mechanism": name,
        "spec": figures["spec"],
        "epsilon": figures.get("epsilon"),
        "release": release,
        "n": n,
        "title": title,
        "utility": figures.get(MAIN),
        "risk": _risk(figures),
        "tooltip": " ".join(filter(None, (f"{title}.", *sentences.values()))),
    }


# The ledger


class LedgerState(TypedDict):
    """Limits, what was spent under each promise, and the latest records."""

    budget: Annotated[dict[str, Any], Like(Budget)]
    spent: list[Annotated[dict[str, Any], Like(Spent, more=(("unit", str), ("sentence", str)))]]
    records: list[Annotated[dict[str, Any], Like(Record)]]


def ledger_state() -> LedgerState:
    """Budget, spent and left, and the latest records. No text is in any of it."""
    try:
        ledger = Ledger.open(create=False)
    except NoLedgerError:
        return {"budget": Budget().to_dict(), "spent": [], "records": []}
    return {
        "budget": ledger.budget().to_dict(),
        "spent": [
            {**total.to_dict(), "unit": total.unit, "sentence": in_words(total)}
            for total in ledger.spent()
        ],
        "records": [record.to_dict() for record in ledger.entries(RECORDS)],
    }


def set_budget(per_text: float | None, total: float | None) -> LedgerState:
    """Set the budget, and say how things stand."""
    Ledger.open().set_budget(per_text, total)
    return ledger_state()
