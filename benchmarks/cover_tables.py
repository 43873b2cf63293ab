"""The tables of ``cover.py``: cells of one setting, seeds together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from cover_bench import (
    ALL_ALIKE,
    ALL_SUBJECTS,
    DEPTHS,
    KNOWS_KIND,
    KNOWS_SUBJECT,
    QUARTER,
    SHORT_LIST,
)
from cover_page import ENGINES, Measured, Row, Section

from sottovoce.statistics import randomization_test

ATTACKERS: dict[str, Callable[[str], bool]] = {
    "log": lambda attack: attack in ALL_ALIKE,
    "kind": lambda attack: not attack.startswith((SHORT_LIST, *ALL_SUBJECTS, KNOWS_SUBJECT)),
    SHORT_LIST: lambda attack: attack.startswith(SHORT_LIST),
}
"""Which attacks are theirs who have a log, know the kind as well, or have a short list."""
POOLS = {
    "msmarco-dl19-pool": (
        ("log", "popular"),
        (QUARTER, "popular"),
        ("own", "uniform"),
        ("own and log", "uniform"),
    ),
}
"""The pools and decoys that are compared on a collection; on all others their own strings, popular
decoys. On DL'19 what people of the kind ask is mostly not what the collection has."""
AS_MANY = 1.1
"""Two releases have equally many queries if neither has more than this times the other's."""
TITLES = {
    "msmarco-dl19-pool": "DL'19",
    "cranfield": "Cranfield",
    "nfcorpus": "NFCorpus",
    "npl": "NPL",
}
NAMES = {"santext": "SanText", "tem": "TEM", "custext": "CusText", "wbb": "WBB"}
RELEASED_ONCE = ("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis")
"""Mechanisms that are compared as released once, too: labels say which it is."""


@dataclass(frozen=True)
class Setting:
    """One setting at one number of queries: a mechanism of words is searched by one engine."""

    job: str
    cells: tuple[dict[str, Any], ...]

    @property
    def label(self) -> str:
        """As tables have it: without engine and number of queries."""
        parts = self.job.split()
        if parts[0] == "cover":
            source = " ".join(parts[1:-3])
            of_what = {QUARTER: ", quarter", "log": ""}.get(source, f", {source}")
            return f"cover {parts[-3].replace('x', ' × ')}{of_what}"
        if parts[0] == "words":
            fresh = " afresh" if parts[1] in RELEASED_ONCE and parts[3] == "independent" else ""
            return f"{NAMES.get(parts[1], parts[1])}{fresh}, ε {parts[2]}"
        if parts[0] == "texts":
            return parts[1] if parts[2] == "-" else f"{parts[1]}, ε {parts[2]}"
        if parts[0] == "chorus":
            return f"chorus of {parts[1]} ({parts[2]}), ε {parts[3]}"
        of_whom = "of its own" if parts[1] == "own" else "of the log"
        return f"random strings {of_whom}"

    @property
    def is_cover(self) -> bool:
        return self.job.startswith("cover")

    @property
    def seeds(self) -> int:
        return len(self.cells)

    @cached_property
    def sent(self) -> float:
        return float(np.mean([cell["sent"] for cell in self.cells]))

    def ndcg(self, engine: str, depth: int) -> dict[str, float] | None:
        """Of each query, over seeds; None where the engine was not asked."""
        return self._means("ndcg", f"{engine} {depth}")

    def risk(self, attacker: str) -> float | None:
        """What the strongest attack of an attacker names."""
        names = {name for cell in self.cells for name in cell["named"]}
        theirs = filter(ATTACKERS[attacker], names)
        return max((mean(self.named(name)) for name in theirs), default=None)

    def named(self, attack: str) -> dict[str, float] | None:
        """What an attack names of each query, over seeds; None where it was not tried."""
        return self._means("named", attack)

    def _means(self, part: str, name: str) -> dict[str, float] | None:
        values = [cell[part][name] for cell in self.cells if name in cell[part]]
        if not values:
            return None
        return {key: float(np.mean([value[key] for value in values])) for key in values[0]}


def mean(values: dict[str, float] | None) -> float:
    """Over queries."""
    return float(np.mean(list((values or {}).values())))


def settings(out: Path, collection: str) -> list[Setting]:
    """What is compared on a collection, by number of queries.

    Of cover that is some pools (``POOLS``), with the usual p: other settings have tables of their
    own in docs/cover-measured.md.
    """
    pools = POOLS.get(collection, (("own", "popular"),))
    compared = [one for one in all_settings(out, collection) if is_compared(one.job, pools)]
    return sorted(compared, key=lambda one: (round(one.sent, -1), not one.is_cover, one.job))


def all_settings(out: Path, collection: str) -> list[Setting]:
    """Everything that was measured on a collection."""
    by_job: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(out.glob(f"{collection}--*.json")):
        cell = json.loads(file.read_text("utf-8"))
        by_job.setdefault(cell["asked"]["job"], []).append(cell)
    return [Setting(job, tuple(cells)) for job, cells in by_job.items()]


def is_compared(job: str, compared: Sequence[tuple[str, str]]) -> bool:
    """Whether a setting of cover, or random strings of a pool, stand beside other mechanisms."""
    if job.startswith("unrelated"):
        return job.split()[1:-1] in (["own"], ["log"])
    if not job.startswith("cover"):
        return True
    _, *source, _, inclusion, decoys = job.split()
    return (" ".join(source), decoys) in compared and inclusion == "0.97"


def collections(out: Path) -> list[str]:
    """Those with what the queries themselves find, in the order of ``TITLES``."""
    names = [file.stem for file in sorted(out.glob("*.json")) if "--" not in file.stem]
    return sorted(names, key=lambda name: (*TITLES, name).index(name))


def print_tables(out: Path) -> None:
    """For each collection what is found and named, and what is ahead of what."""
    for name in collections(out):
        print("\n" + section(out, name).text)
        print_comparison(settings(out, name))


def print_attacks(out: Path) -> None:
    """What each attack names of each setting of cover: tables of docs/cover-measured.md."""
    for name in collections(out):
        print(f"\n## {TITLES.get(name, name.title())}")
        for setting in all_settings(out, name):
            if setting.is_cover:
                print(f"\n{setting.job}: {setting.seeds} seeds, {setting.sent:.0f} queries")
                for attack in dict.fromkeys(a for cell in setting.cells for a in cell["named"]):
                    print(f"  {attack:45} {mean(setting.named(attack)):.2f}")


def sections(out: Path) -> list[Section]:
    """What was measured, for a page."""
    return [section(out, name) for name in collections(out)]


def section(out: Path, collection: str) -> Section:
    """The table of a collection, with what the queries themselves find."""
    whole = json.loads((out / f"{collection}.json").read_text("utf-8"))
    by_engine = [
        ", ".join(short(mean(whole[f"{engine} {depth}"]), 3) for depth in DEPTHS)
        for engine in ENGINES
    ]
    queries = len(next(iter(whole.values())))
    plain = (
        f"{queries} queries. The queries themselves find {by_engine[0]} by BM25 and "
        f"{by_engine[1]} by dense search."
    )
    return Section(
        TITLES.get(collection, collection.title()), plain, tuple(rows(settings(out, collection)))
    )


def rows(made: list[Setting]) -> Iterator[Row]:
    """One for each setting and number of queries, both engines beside each other."""
    by_row: dict[tuple[int, str], dict[str, Measured]] = {}
    for setting in made:
        row = by_row.setdefault((nearest_count(setting.sent), setting.label), {})
        for engine in ENGINES:
            if setting.ndcg(engine, DEPTHS[0]) is not None:
                row[engine] = measured(setting, engine)
    for (sent, label), by_engine in by_row.items():
        yield Row(sent, label, by_engine)


def measured(setting: Setting, engine: str) -> Measured:
    """Seeds, risks and what is found at each depth."""
    return Measured(
        str(setting.seeds),
        short(setting.risk("log")),
        short(setting.risk("kind") if knows_kind(setting) else None),
        short(setting.risk(SHORT_LIST)),
        ", ".join(short(mean(setting.ndcg(engine, depth)), 3) for depth in DEPTHS),
    )


def knows_kind(setting: Setting) -> bool:
    """Whether somebody who knows the kind was tried."""
    names = {name for cell in setting.cells for name in cell["named"]}
    return bool(names & {KNOWS_KIND, "classifier"})


def nearest_count(sent: float) -> int:
    """20, 50 or 100."""
    return min((20, 50, 100), key=lambda count: abs(count - sent))


def short(value: float | None, digits: int = 2) -> str:
    """Without the zero before the point."""
    return "" if value is None else f"{value:.{digits}f}".removeprefix("0")


def print_comparison(made: list[Setting]) -> None:
    """Each mechanism beside cover, and the best cover of as many queries and no more risk.

    p is that of a randomization test over queries; it takes the risks for exact.
    """
    print("\n| beside cover | attacker | risk | cover | risk | engine | difference | p |")
    print("|---|---|--:|---|--:|---|--:|--:|")
    covers = [one for one in made if one.is_cover]
    for other in (one for one in made if not one.is_cover and one.risk("log") is not None):
        for engine in ENGINES:
            theirs = other.ndcg(engine, DEPTHS[0])
            for attack in ATTACKERS:
                if attack == "kind" and not knows_kind(other):
                    continue
                cover = best_cover(covers, other, engine, attack)
                if theirs is None or cover is None:
                    continue
                ours = cover.ndcg(engine, DEPTHS[0]) or {}
                differences = np.array([ours[query] - theirs[query] for query in ours])
                (p,) = randomization_test(differences[None])
                print(
                    f"| {nearest_count(other.sent)}: {other.label} | {attack} "
                    f"| {short(other.risk(attack))} | {cover.label} | {short(cover.risk(attack))} "
                    f"| {engine} | {differences.mean():+.3f} | {p:.3f} |"
                )


def best_cover(covers: list[Setting], other: Setting, engine: str, attack: str) -> Setting | None:
    """What finds most, with as many queries and no more risk."""
    allowed = [
        one
        for one in covers
        if 1 / AS_MANY <= one.sent / other.sent <= AS_MANY
        and (one.risk(attack) or 0.0) <= (other.risk(attack) or 0.0)
    ]
    return max(allowed, key=lambda one: mean(one.ndcg(engine, DEPTHS[0])), default=None)
