"""What an experiment measured of each setting, in short: kept on this machine for the local app.

A summary belongs to the documents that were searched: it is found by their hash, so that no figure
of one collection is ever shown for another. What was not measured is None.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from sottovoce.encoders import load_encoder
from sottovoce.experiments.report.spread import estimates
from sottovoce.experiments.report.strongest import measures_like
from sottovoce.experiments.results import Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH
from sottovoce.files import locked, write_whole
from sottovoce.paths import experiments_folder

UTILITY = "nDCG@10"
PLACE = ("fingerprint", "engine", "reranker", "depth")
"""What must be equal for figures to be of the same search."""
LETTERS = 16
"""Letters of a fingerprint in the name of a file."""

Estimates = dict[Setting, dict[str, Any]]


def summarise(results: Results) -> list[dict[str, Any]]:
    """One summary for each collection, engine and re-ranker that was searched."""
    found = []
    for collection in results.distinct("collection", system=NO_PRIVACY):
        for engine in results.distinct("engine", collection=collection, system=NO_PRIVACY):
            where = {"collection": collection, "engine": engine}
            for reranker in results.distinct("reranker", **where, system=NO_PRIVACY):
                found.append(_summary(results, **where, reranker=reranker))
    return found


def remember(summaries: Iterable[dict[str, Any]]) -> None:
    """Keep summaries for the app; one of the same :data:`PLACE` is replaced."""
    folder = experiments_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for summary in summaries:
        fingerprint = summary["fingerprint"]
        file = folder / f"{fingerprint[:LETTERS]}.json"
        with locked(folder / ".lock", wait=True):
            others = [each for each in _kept(fingerprint) if _place(each) != _place(summary)]
            write_whole(file, json.dumps([*others, summary], indent=1).encode(), 0o600)


def last_summary(fingerprint: str, engine: str, reranker: str, depth: int) -> dict[str, Any] | None:
    """The last summary of these documents, engine, re-ranker and depth, if there is one."""
    return among(_kept(fingerprint), fingerprint, engine, reranker, depth)


def among(summaries: Iterable[dict[str, Any]], *place: str | int) -> dict[str, Any] | None:
    """The summary with these values of :data:`PLACE`."""
    return next((each for each in summaries if _place(each) == place), None)


def _kept(fingerprint: str) -> list[dict[str, Any]]:
    try:
        data = (experiments_folder() / f"{fingerprint[:LETTERS]}.json").read_bytes()
        found: list[dict[str, Any]] = json.loads(data)
    except (OSError, ValueError):
        return []
    # Those of earlier versions lack the log's hash, and are not used.
    return [each for each in found if each["fingerprint"] == fingerprint and "log_sha256" in each]


def _place(summary: dict[str, Any]) -> tuple[str | int, ...]:
    return tuple(summary[name] for name in PLACE)


def _summary(results: Results, *, collection: str, engine: str, reranker: str) -> dict[str, Any]:
    where = {"collection": collection, "engine": engine, "reranker": reranker}
    manifest = results.manifest
    log: dict[str, Any] = next(iter(manifest["facts"].get("log", ())), {})
    least = next(iter(manifest["experiment"]["utility"]["thresholds"]), None)
    recall = f"pooled recall(rel={least})"
    columns = {
        UTILITY: _estimates(results, UTILITY, system=PRIVATE, **where),
        "same_depth": _estimates(results, UTILITY, system=SAME_DEPTH, **where),
        "recall": _estimates(results, recall, system=PRIVATE, **where),
        "lazy": _strongest(results, collection, "lazy["),
        "words": _strongest(results, collection, "words["),
    }
    settings = results.grid("pool", system=PRIVATE, **where).settings
    return {
        "collection": collection,
        "engine": _named(engine),
        "reranker": _named(reranker),
        "depth": manifest["experiment"]["searching"]["depth"],
        "fingerprint": _fingerprint(manifest, collection),
        "made": manifest["finished"],
        "queries": len(results.grid("pool", system=NO_PRIVACY, **where).queries),
        "log": log.get("queries"),
        "log_sha256": log.get("sha256"),
        "baseline": {
            name: _only(_estimates(results, measure, system=NO_PRIVACY, **where))
            for name, measure in ((UTILITY, UTILITY), ("recall", recall))
        },
        "settings": [
            {
                **setting._asdict(),
                **_made_by(manifest["experiment"], setting),
                **{name: column.get(setting) for name, column in columns.items()},
            }
            for setting in settings
        ],
    }


def _fingerprint(manifest: dict[str, Any], collection: str) -> str:
    """The hash of the documents, as engines give it."""
    found = {each["name"]: each["documents"] for each in manifest["facts"]["collection"]}
    return str(found[collection])


def _estimates(results: Results, measure: str, **where: str) -> Estimates:
    grid = results.grid(measure, **where)
    queries = dict(zip(grid.settings, (~np.isnan(grid.values)).sum(axis=1).tolist(), strict=True))
    return {
        setting: {
            "value": number.value,
            "low": number.interval[0],
            "high": number.interval[1],
            "queries": queries[setting],
        }
        for setting, number in estimates(grid, measure).items()
        if number.interval is not None
    }


def _strongest(results: Results, collection: str, start: str) -> Estimates:
    """The encoder or attack with the greatest mean, which is named."""
    found: Estimates = {}
    for measure in measures_like(results, collection, start):
        by = measure.removeprefix(start).removesuffix("]")
        for setting, number in _estimates(results, measure, collection=collection).items():
            if setting not in found or number["value"] > found[setting]["value"]:
                found[setting] = {**number, "by": by}
    return found


def _only(found: Estimates) -> float | None:
    return next((number["value"] for number in found.values()), None)


def _named(spec: str) -> str:
    """An engine or re-ranker as it calls itself, where the experiment left the encoder open."""
    if spec in ("auto", "dense", "dense:auto"):
        encoder = load_encoder("auto").name
        return encoder if spec == "auto" else f"dense:{encoder}"
    return spec


def _made_by(experiment: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """The whole spec of a setting and what it works on; None where somebody else drew."""
    for system in experiment["systems"]:
        if system["label"] == setting.mechanism:
            spec: str = system["spec"]
            if setting.epsilon is not None:
                spec += f"{',' if ':' in spec else ':'}epsilon={setting.epsilon!r}"
            return {"spec": spec, "texts": system["texts"]}
    return {"spec": None, "texts": None}
