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

from typing_extensions import TypedDict

from sottovoce.app.loaded import LoadedParts, Protection
from sottovoce.mechanisms.base import SetMechanism, WordMechanism
from sottovoce.mechanisms.build import parse
from sottovoce.obfuscation import Obfuscator

PACKAGED = Path(__file__).with_name("measured.json")
Summary: TypeAlias = dict[str, Any]
"""What an experiment measured on one collection, engine, re-ranker and depth."""
Measured: TypeAlias = dict[str, Any]
"""What it measured of one setting: the setting, and its figures by name."""
MAIN = "nDCG@10"
DEFAULT = "default"


class Figure(TypedDict):
    """A measured share, its interval, of how many queries, and the attack or encoder it is of."""

    value: float
    low: float
    high: float
    queries: int


def summary_of(parts: LoadedParts) -> Summary | None:
    """The summary of the last experiment with what this service searches with."""
    engine, reranker = parts.engine(), parts.reranker()
    fingerprint = getattr(engine, "fingerprint", None)
    if fingerprint is None:
        return None  # A server's own documents: nobody here knows them.
    from sottovoce.experiments.summary import among, last_summary

    place = (fingerprint, engine.name, reranker.name, parts.depth)
    summary = last_summary(*place) or among(packaged(), *place)
    return None if summary is None else _for_log(summary, parts.log_sha256())


def _for_log(summary: Summary, sha256: str) -> Summary:
    """The summary without figures of another query log than the attacker is taken to have."""
    if summary["log_sha256"] == sha256:
        return summary
    settings = [{**figures, "lazy": None} for figures in summary["settings"]]
    return {**summary, "log": None, "settings": settings}


@cache
def packaged() -> tuple[Summary, ...]:
    """Summaries that come with the package; ``tools/measured_figures.py`` writes them."""
    return tuple(json.loads(PACKAGED.read_text("utf-8")))


def figures_of(
    parts: LoadedParts, summary: Summary | None, protection: Protection
) -> Measured | None:
    """What was measured of exactly this setting, if it was."""
    obfuscator = protection.obfuscator
    asked = parse(obfuscator.mechanism.spec)
    for figures in (summary or {}).get("settings", ()):
        if (
            (figures["release"], figures["n"]) == (obfuscator.release, obfuscator.n)
            and figures["spec"] is not None
            and parse(figures["spec"]) == asked
            and _same_texts(figures, parts, obfuscator)
        ):
            measured: Measured = figures
            return measured
    return None


def _same_texts(figures: Measured, parts: LoadedParts, obfuscator: Obfuscator) -> bool:
    """Whether words were cut, protected and replaced as this service does it."""
    mechanism, pipeline = obfuscator.mechanism, obfuscator.pipeline
    if isinstance(mechanism, SetMechanism):  # Whole public strings leave: only these decide.
        return bool(figures.get("pool_sha256") == mechanism.pool.sha256_with_popularity)
    texts: dict[str, Any] = figures.get("texts") or {}
    vocabulary = mechanism.space.output.name if isinstance(mechanism, WordMechanism) else "all"
    measured = (
        texts.get("space") or DEFAULT,
        texts.get("output_vocabulary", "all"),
        texts.get("unknown", "encode"),
        texts.get("protect") or mechanism.protects,
        texts.get("unprotected", "keep"),
        texts.get("phrases", False),
    )
    asked = (parts.settings.space or DEFAULT, vocabulary, pipeline.unknown, pipeline.protect)
    layout = (texts.get("order") == "shuffled", texts.get("pad_to", 0))
    return measured == (*asked, pipeline.unprotected, pipeline.phrases) and (
        not mechanism.by_word or layout == (parts.shuffles, parts.settings.pad_to)
    )


def identity(figures: Measured) -> str:
    """A stable id that links a measured setting to its point in the plane."""
    names = ("mechanism", "spec", "epsilon", "release", "n", "texts")
    data = json.dumps([figures.get(name) for name in names], sort_keys=True)
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def origin(summary: Summary) -> dict[str, Any]:
    """Where figures come from, as data and in words."""
    names = ("collection", "made", "queries", "log", "engine", "reranker", "baseline")
    sentence = (
        f"Measured on {summary['made'][:10]} with {summary['queries']} queries of the collection "
        f"{summary['collection']} ({summary['engine']}, re-ranked by {summary['reranker']})."
    )
    return {**{name: summary.get(name) for name in names}, "sentence": sentence}


def not_measured(parts: LoadedParts) -> str:
    """What to do where there are no figures."""
    return (
        "Not measured on this collection: run 'sottovoce experiment run FILE.toml' with this "
        f"collection, the engine {parts.engine().name}, the re-ranker {parts.reranker().name} and "
        f"depth {parts.depth}."
    )


def missing(parts: LoadedParts, figures: Measured | None) -> str | None:
    """What to do where a setting was not measured, or not all of it; None where it was."""
    if figures is None:
        return not_measured(parts)
    if figures.get("lazy") is None:
        return (
            "How often an attacker names your query was not measured with this query log: run "
            "'sottovoce experiment run FILE.toml' with it."
        )
    return None


def sentences(figures: Measured | None, summary: Summary | None) -> dict[str, str | None]:
    """The figures in plain words: for whole queries, for words, for what is found."""
    if figures is None or summary is None:
        return {"query": None, "words": None, "utility": None}
    return {
        "query": _query(figures.get("lazy"), summary.get("log")),
        "words": _words(figures.get("words")),
        "utility": _utility(figures.get(MAIN), (summary.get("baseline") or {}).get(MAIN)),
    }


def _query(lazy: Measured | None, log: int | None) -> str | None:
    if not lazy or log is None:
        return None
    return (
        f"The strongest of the attacks tried ({lazy['by']}) names your query at the first guess in "
        f"{100 * lazy['value']:.0f} of 100 cases ({_range(lazy)}; {lazy['queries']} queries "
        f"tried). The attacker knows {lazy['knows']}."
    )


def _words(words: Measured | None) -> str | None:
    if not words:
        return None
    return (
        f"The strongest of the attacks tried ({words['by']}) recovers {100 * words['value']:.0f} "
        f"of 100 words ({_range(words)}; {words['queries']} queries tried). The attacker knows "
        f"{words['knows']}."
    )


def _utility(utility: Measured | None, baseline: float | None) -> str | None:
    if not utility or not baseline:
        return None
    share = utility["value"] / baseline
    tried = f"{MAIN}, {utility['queries']} queries tried"
    return f"You find {share:.0%} of what you would find without privacy ({tried})."


def _range(figure: Measured) -> str:
    return f"{100 * figure['low']:.0f}–{100 * figure['high']:.0f}"
