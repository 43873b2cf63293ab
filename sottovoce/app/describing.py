"""Settings, mechanisms and the plane of risk and utility, described for people."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from sottovoce.app import measured
from sottovoce.app.measured import MAIN, Measured, Summary
from sottovoce.app.schemas import Chosen
from sottovoce.app.state import Choice, Workbench
from sottovoce.app.voices import DEFAULT, VOICES
from sottovoce.errors import SpaceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Promise
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.build import stand_ins
from sottovoce.mechanisms.registry import kind, names

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


@cache
def verdicts() -> dict[str, Any]:
    """What audits found, by mechanism; see :mod:`sottovoce.app.verdicts`."""
    if not VERDICTS.exists():
        return {"mechanisms": {}}
    found: dict[str, Any] = json.loads(VERDICTS.read_text("utf-8"))
    return found


def verdict_of(name: str) -> dict[str, Any]:
    """The audit's verdict on a mechanism, and who found it when."""
    known = verdicts()
    found = known["mechanisms"].get(name, {"verdict": NOT_AUDITED, "claims": [], "why": None})
    told = {key: known[key] for key in ("by", "made", "space") if key in known}
    refuted = {each["label"] for each in found["claims"] if each["verdict"] == "REFUTED"}
    meaning = PUBLISHED_ONLY if refuted == {"published"} else MEANINGS[found["verdict"]]
    return {**found, **told, "meaning": meaning}


def all_voices(bench: Workbench) -> dict[str, Any]:
    """The voices, each with what it promises and what was measured of it."""
    summary = measured.summary_of(bench)
    return {
        "default": DEFAULT,
        "measured": measured.origin(summary) if summary else None,
        "not_measured": None if summary else measured.not_measured(bench),
        "voices": [
            {
                "id": each.id,
                "name": each.name,
                "line": each.line,
                **describe(bench, bench.choice(Chosen(voice=each.id)), summary),
            }
            for each in VOICES
        ],
    }


def describe_setting(chosen: Chosen, bench: Workbench) -> dict[str, Any]:
    """One setting, as a voice is described."""
    return describe(bench, bench.choice(chosen), measured.summary_of(bench))


def describe(bench: Workbench, choice: Choice, summary: Summary | None) -> dict[str, Any]:
    """What a setting is, promises and costs, and what was measured of exactly this setting."""
    obfuscator = choice.obfuscator
    mechanism = obfuscator.mechanism
    found = measured.measured(bench, summary, choice)
    releases = 1 if obfuscator.release == "once" else obfuscator.n
    epsilon = mechanism.guarantee.epsilon
    return {
        "mechanism": mechanism.name,
        "spec": mechanism.spec,
        "epsilon": getattr(mechanism, "epsilon", None),
        "n": obfuscator.n,
        "release": choice.release,
        "guarantee": _promise(mechanism.guarantee),
        "account": _account(mechanism),
        "cost": None if epsilon is None else epsilon * releases,
        "warning": warning(mechanism),
        "point": measured.identity(found) if found else None,
        "risk": {
            "query": (found or {}).get("lazy"),
            "words": (found or {}).get("words"),
        },
        "utility": (found or {}).get(MAIN),
        "baseline": ((summary or {}).get("baseline") or {}).get(MAIN),
        "sentences": measured.sentences(found, summary),
        "not_measured": measured.missing(bench, found),
    }


def _account(mechanism: Mechanism) -> dict[str, Any]:
    """What the ledger counts releases of a mechanism with: all of it equal, or another account."""
    where = mechanism.metric_space
    return Promise.of(mechanism.guarantee, where[1] if where else None)._asdict()


def warning(mechanism: Mechanism) -> str | None:
    """In plain words, where nothing is promised or a promise was refuted; else None."""
    audited = verdict_of(mechanism.name)
    refuted = {each["label"] for each in audited["claims"] if each["verdict"] == "REFUTED"}
    said = []
    if mechanism.guarantee.notion == "none":
        said.append("This promises nothing: no proof limits what a stranger can learn.")
    if "published" in refuted:
        said.append("What was published about it is wrong: our audit found a counterexample.")
    if refuted - {"published"}:
        said.append("What it states was refuted by our audit: do not rely on it.")
    return " ".join(said) or None


def all_mechanisms(bench: Workbench) -> dict[str, Any]:
    """Every mechanism: what it does, promises, claims, and the audit's verdict."""
    kinds = [kind(name) for name in names()]
    return {"mechanisms": [_mechanism(kind(**_parts(bench, kind))) for kind in kinds]}


def _mechanism(mechanism: Mechanism) -> dict[str, Any]:
    published = mechanism.published
    return {
        **mechanism.describe(),
        "guarantee": _promise(mechanism.guarantee),
        "published": None if published is None else _promise(published),
        "warning": warning(mechanism),
        "audit": verdict_of(mechanism.name),
    }


def _promise(guarantee: Guarantee) -> dict[str, Any]:
    return {**guarantee.to_dict(), "sentence": guarantee.sentence}


def _parts(bench: Workbench, kind: type[Mechanism]) -> dict[str, Any]:
    """What a mechanism is described with: the service's word space, if there is one."""
    parts = stand_ins(kind)
    if "space" in parts:
        with suppress(SpaceError):
            parts["space"] = bench.space()
    return parts


def plane(bench: Workbench) -> dict[str, Any]:
    """Where each measured setting lies: risk to the right, what is still found upwards."""
    summary = measured.summary_of(bench)
    if summary is None:
        return {"measured": None, "not_measured": measured.not_measured(bench), "points": []}
    return {
        "measured": measured.origin(summary),
        "not_measured": None,
        "baseline": (summary.get("baseline") or {}).get(MAIN),
        "points": [_point(each, summary) for each in summary["settings"]],
    }


def _point(found: Measured, summary: Summary) -> dict[str, Any]:
    said = measured.sentences(found, summary)
    setting = {key: found.get(key) for key in ("mechanism", "spec", "epsilon", "release", "n")}
    title = f"{found['spec'] or found['mechanism']}, {found['release']}, {found['n']} variants"
    if protected := (found.get("texts") or {}).get("protect"):
        title += f", protecting {protected} words"
    return {
        "id": measured.identity(found),
        **setting,
        "title": title,
        "utility": found.get(MAIN),
        "risk": {"query": found.get("lazy"), "words": found.get("words")},
        "tooltip": " ".join(each for each in (f"{title}.", *said.values()) if each),
    }
