"""What an experiment measured of each setting, in short: kept on this machine for the local app.

A summary belongs to the documents that were searched: it is found by their hash, so that no figure
of one collection is ever shown for another. What was not measured is None.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sottovoce.encoders import load_encoder
from sottovoce.experiments.estimates import estimates, not_attacked_as_sets
from sottovoce.experiments.measures import MAIN_MEASURE, POOL, Measure, MeasureKind
from sottovoce.experiments.results import SETTING, Place, Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH
from sottovoce.files import locked, parse_json, write_whole
from sottovoce.mechanisms.base import write_value
from sottovoce.paths import experiments_folder
from sottovoce.privacy.attacks.headline import strongest

PLACE = ("fingerprint", "engine", "reranker", "depth")
"""What must be equal for figures to be of the same search."""
LAYOUT = 2
"""Summaries of another layout are not used: those of layout 1 had figures of weaker attacks, and
lack what attackers knew."""
LETTERS = 16
"""Letters of a fingerprint in the name of a file."""

Estimates = dict[Setting, dict[str, Any]]


def summarize(results: Results) -> list[dict[str, Any]]:
    """One summary for each collection, engine and re-ranker that was searched."""
    return [_summary(results, place) for place in results.places]


def remember(summaries: Iterable[dict[str, Any]]) -> None:
    """Keep summaries for the app; one of the same :data:`PLACE` is replaced."""
    folder = experiments_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for summary in summaries:
        fingerprint = summary["fingerprint"]
        file = folder / f"{fingerprint[:LETTERS]}.json"
        with locked(folder / ".lock", wait=True):
            of_others = [kept for kept in _kept(fingerprint) if _place(kept) != _place(summary)]
            write_whole(file, json.dumps([*of_others, summary], indent=1).encode(), 0o600)


def last_summary(fingerprint: str, engine: str, reranker: str, depth: int) -> dict[str, Any] | None:
    """The last summary of these documents, engine, re-ranker and depth, if there is one."""
    return among(_kept(fingerprint), fingerprint, engine, reranker, depth)


def among(summaries: Iterable[dict[str, Any]], *place: str | int) -> dict[str, Any] | None:
    """The summary with these values of :data:`PLACE`, and of this :data:`LAYOUT`."""
    return next(
        (
            summary
            for summary in summaries
            if summary.get("layout") == LAYOUT and _place(summary) == place
        ),
        None,
    )


def _kept(fingerprint: str) -> list[dict[str, Any]]:
    try:
        data = (experiments_folder() / f"{fingerprint[:LETTERS]}.json").read_bytes()
        summaries: list[dict[str, Any]] = parse_json(data)
    except (OSError, ValueError):
        return []
    return [summary for summary in summaries if summary["fingerprint"] == fingerprint]


def _place(summary: dict[str, Any]) -> tuple[str | int, ...]:
    return tuple(summary[name] for name in PLACE)


def _summary(results: Results, place: Place) -> dict[str, Any]:
    manifest = results.manifest
    log: dict[str, Any] = next(iter(manifest["facts"].get("log", ())), {})
    least = next(iter(manifest["experiment"]["utility"]["thresholds"]), None)
    recall = Measure("pooled recall", str(least))
    columns = {
        MAIN_MEASURE.label: _estimates(results, MAIN_MEASURE, place, PRIVATE),
        "same_depth": _estimates(results, MAIN_MEASURE, place, SAME_DEPTH),
        "recall": _estimates(results, recall, place, PRIVATE),
        "lazy": _strongest(results, place.collection, "lazy"),
        "words": _strongest(results, place.collection, "words"),
    }
    baseline = {MAIN_MEASURE.label: MAIN_MEASURE, "recall": recall}
    return {
        "layout": LAYOUT,
        "collection": place.collection,
        "engine": _named(place.engine),
        "reranker": _named(place.reranker),
        "depth": manifest["experiment"]["searching"]["depth"],
        "fingerprint": _fingerprint(manifest, place.collection),
        "made": manifest["finished"],
        "queries": len(results.grid(POOL, place, NO_PRIVACY).queries),
        "log": log.get("queries"),
        "log_sha256": log.get("sha256"),
        "baseline": {
            name: _only(_estimates(results, measure, place, NO_PRIVACY))
            for name, measure in baseline.items()
        },
        "settings": [
            {
                **{name: getattr(setting, name) for name in SETTING},
                **_made_by(manifest, setting),
                **{name: column.get(setting) for name, column in columns.items()},
            }
            for setting in results.grid(POOL, place, PRIVATE).settings
        ],
    }


def _fingerprint(manifest: dict[str, Any], collection: str) -> str:
    """The hash of the documents, as engines give it."""
    by_name = {facts["name"]: facts["documents"] for facts in manifest["facts"]["collection"]}
    return str(by_name[collection])


def _estimates(results: Results, measure: Measure, place: Place, system: str) -> Estimates:
    grid = results.grid(measure, place, system)
    queries = dict(zip(grid.settings, grid.counts, strict=True))
    return {
        setting: {"value": value, "low": low, "high": high, "queries": queries[setting]}
        for setting, (value, (low, high)) in estimates(grid, measure).items()
    }


class _Attack(NamedTuple):
    mean: float
    number: dict[str, Any]


def _strongest(results: Results, collection: str, kind: MeasureKind) -> Estimates:
    """The strongest attack on each setting, which is named with what the attacker knew."""
    attacks: dict[Setting, list[_Attack]] = {}
    for measure in results.measures(Place(collection), kind):
        for setting, number in _estimates(results, measure, Place(collection), PRIVATE).items():
            knows = results.knowledge(measure.detail, collection, setting.mechanism)
            by = {"by": measure.detail, "knows": knows}
            attacks.setdefault(setting, []).append(_Attack(number["value"], {**number, **by}))
    unattacked = not_attacked_as_sets(results, collection)
    return {
        setting: best.number
        for setting, tried in attacks.items()
        if setting not in unattacked and (best := strongest(tried))
    }


def _only(by_setting: Estimates) -> float | None:
    return next((number["value"] for number in by_setting.values()), None)


def _named(spec: str) -> str:
    """An engine or re-ranker as it calls itself, where the experiment left the encoder open."""
    if spec in ("auto", "dense", "dense:auto"):
        encoder = load_encoder("auto").name
        return encoder if spec == "auto" else f"dense:{encoder}"
    return spec


def _made_by(manifest: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """The whole spec of a setting and what it works on; None where somebody else drew."""
    for system in manifest["experiment"]["systems"]:
        if system["label"] == setting.mechanism:
            spec: str = system["spec"]
            if setting.epsilon is not None:
                given = write_value(setting.epsilon)
                spec += f"{',' if ':' in spec else ':'}{setting.axis.parameter.name}={given}"
            texts = system["texts"]
            return {"spec": spec, "texts": texts, "pool_sha256": _pool_sha256(manifest, texts)}
    return {"spec": None, "texts": None, "pool_sha256": None}


def _pool_sha256(manifest: dict[str, Any], texts: dict[str, Any]) -> str | None:
    """The hash of the pool that a setting drew from; None without one, or if it may be another.

    Manifests name pools without their folders: several may have the same name.
    """
    hashes = [
        facts["sha256"]
        for facts in manifest["facts"].get("pool", ())
        if (facts["name"], facts["settings"]["encoder"]) == (texts["pool"], texts["encoder"])
    ]
    return hashes[0] if len(hashes) == 1 else None
