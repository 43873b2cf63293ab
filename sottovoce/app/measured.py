"""Figures that were measured on this very collection, engine, re-ranker and depth; else none.

They come from the last experiment on the collection, or for the demo collection from those that the
package brings along. Nothing is interpolated, and no figure of another collection stands in.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from sottovoce.app.state import Choice, Workbench
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.registry import parse

PACKAGED = Path(__file__).with_name("measured.json")
Summary: TypeAlias = dict[str, Any]
Measured: TypeAlias = dict[str, Any]
MAIN = "nDCG@10"
DEFAULT = "default"


def summary_of(bench: Workbench) -> Summary | None:
    """The summary of the last experiment with what this service searches with."""
    engine, reranker = bench.engine(), bench.reranker()
    fingerprint = getattr(engine, "fingerprint", None)
    if fingerprint is None:
        return None  # A server's own documents: nobody here knows them.
    from sottovoce.experiments.summary import among, last_summary

    place = (fingerprint, engine.name, reranker.name, bench.settings.documents)
    found = last_summary(*place) or among(packaged(), *place)
    return None if found is None else _for_log(found, bench.log_sha256())


def _for_log(summary: Summary, sha256: str) -> Summary:
    """The summary without figures of another query log than the attacker is taken to have."""
    if summary["log_sha256"] == sha256:
        return summary
    settings = [{**each, "lazy": None} for each in summary["settings"]]
    return {**summary, "log": None, "settings": settings}


@cache
def packaged() -> tuple[Summary, ...]:
    """Summaries that come with the package."""
    if not PACKAGED.exists():
        return ()
    found = json.loads(PACKAGED.read_text("utf-8"))
    return tuple(found) if isinstance(found, list) else (found,)


def measured(bench: Workbench, summary: Summary | None, choice: Choice) -> Measured | None:
    """What was measured of exactly this setting, if it was."""
    obfuscator = choice.obfuscator
    wanted = parse(obfuscator.mechanism.spec)
    for each in (summary or {}).get("settings", ()):
        same = (each["release"], each["n"]) == (obfuscator.release, obfuscator.n)
        if (
            same
            and each["spec"] is not None
            and parse(each["spec"]) == wanted
            and _same_texts(each.get("texts") or {}, bench, obfuscator.mechanism)
        ):
            found: Measured = each
            return found
    return None


def _same_texts(texts: dict[str, Any], bench: Workbench, mechanism: Mechanism) -> bool:
    """Whether words were cut, protected and replaced as this service does it."""
    spaces = {(texts.get("space") or DEFAULT), (bench.settings.space or DEFAULT)}
    return (
        len(spaces) == 1
        and texts.get("output_vocabulary", "all") == "all"
        and texts.get("unknown", "uniform") == "uniform"
        and (texts.get("protect") or mechanism.protects) == mechanism.protects
    )


def identity(found: Measured) -> str:
    """What a measured setting is known by: its point in the plane, and whoever sits there."""
    names = ("mechanism", "spec", "epsilon", "release", "n", "texts")
    data = json.dumps([found.get(name) for name in names], sort_keys=True)
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def origin(summary: Summary) -> dict[str, Any]:
    """Where figures come from, as data and in words."""
    said = (
        f"Measured on {summary['made'][:10]} with {summary['queries']} queries of the collection "
        f"{summary['collection']} ({summary['engine']}, re-ranked by {summary['reranker']})."
    )
    names = ("collection", "made", "queries", "log", "engine", "reranker", "baseline")
    return {**{name: summary.get(name) for name in names}, "sentence": said}


def not_measured(bench: Workbench) -> str:
    """What to do where there are no figures."""
    return (
        "Not measured on this collection: run 'sottovoce experiment run FILE.toml' with this "
        f"collection, the engine {bench.engine().name}, the re-ranker {bench.reranker().name} and "
        f"depth {bench.settings.documents}."
    )


def missing(bench: Workbench, found: Measured | None) -> str | None:
    """What to do where a setting was not measured, or not all of it; None where it was."""
    if found is None:
        return not_measured(bench)
    if found.get("lazy") is None:
        return (
            "How often an attacker names your query was not measured with this query log: run "
            "'sottovoce experiment run FILE.toml' with it."
        )
    return None


def sentences(found: Measured | None, summary: Summary | None) -> dict[str, str | None]:
    """The figures in plain words: for whole queries, for words, for what is found."""
    if found is None or summary is None:
        return {"query": None, "words": None, "utility": None}
    return {
        "query": _query(found.get("lazy"), summary.get("log")),
        "words": _words(found.get("words")),
        "utility": _utility(found.get(MAIN), (summary.get("baseline") or {}).get(MAIN)),
    }


def _query(lazy: Measured | None, log: int | None) -> str | None:
    if not lazy or log is None:
        return None
    return (
        f"An attacker with this log of {log:,} queries would name your query at the first guess in "
        f"{100 * lazy['value']:.0f} of 100 cases ({_range(lazy)}; {lazy['queries']} queries tried)."
    )


def _words(words: Measured | None) -> str | None:
    if not words:
        return None
    return (
        f"The strongest of the attacks tried ({words['by']}) recovers {100 * words['value']:.0f} "
        f"of 100 words ({_range(words)}; {words['queries']} queries tried)."
    )


def _utility(value: Measured | None, baseline: float | None) -> str | None:
    if not value or not baseline:
        return None
    share = value["value"] / baseline
    tried = f"{MAIN}, {value['queries']} queries tried"
    return f"You find {share:.0%} of what you would find without privacy ({tried})."


def _range(measured: Measured) -> str:
    return f"{100 * measured['low']:.0f}–{100 * measured['high']:.0f}"
