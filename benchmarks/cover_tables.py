"""The tables of ``cover.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from cover_bench import ALL_SUBJECTS, KNOWS_SUBJECT

from sottovoce.statistics import randomization_test

KNOW_SUBJECTS = (ALL_SUBJECTS, KNOWS_SUBJECT)
AS_MANY = 1.1
"""Two releases have equally many queries if neither has more than this times the other's."""


def mean(values: dict[str, float]) -> float:
    """Over queries."""
    return float(np.mean(list(values.values())))


def risk(cell: dict[str, Any]) -> tuple[float, str]:
    """What the strongest attack names that knows no subjects, and which it is."""
    named = {name: mean(hits) for name, hits in cell["named"].items() if name not in KNOW_SUBJECTS}
    best = max(named, key=lambda name: named[name], default="not attacked")
    return named.get(best, float("nan")), best


def print_tables(out: Path) -> None:
    """A table for each collection: a row for each cell that is there."""
    for file in sorted(out.glob("*.json")):
        if "--" in file.stem:
            continue
        reference = {name: mean(values) for name, values in json.loads(file.read_text()).items()}
        print(f"\n## {file.stem}\n")
        print(
            "| | sent | risk | by | chance | knows all subjects | knows the subject | "
            + " | ".join(reference)
            + " |"
        )
        print("|---|--:|--:|---|--:|--:|--:|" + "--:|" * len(reference))
        found = " | ".join(f"{value:.3f}" for value in reference.values())
        print(f"| the query itself | 1 | 1 | | | | | {found} |")
        cells = [json.loads(cell.read_text()) for cell in sorted(out.glob(f"{file.stem}--*.json"))]
        for cell in sorted(cells, key=lambda cell: cell["sent"]):
            print_row(cell, reference)
        print_comparison([cell for cell in cells if cell["named"]], list(reference))


def print_row(cell: dict[str, Any], reference: dict[str, float]) -> None:
    """nDCG@10 of a cell with the share of that without privacy."""
    seeds, queries = len(cell["asked"]["seeds"]), cell["asked"]["queries"]
    named, attack = risk(cell)
    chance = f"{cell['chance']:.3f}" if "chance" in cell else ""
    subjects = " | ".join(
        f"{mean(cell['named'][name]):.2f}" if name in cell["named"] else ""
        for name in KNOW_SUBJECTS
    )
    found = " | ".join(
        f"{mean(cell['ndcg'][name]):.3f} ({mean(cell['ndcg'][name]) / plain:.0%})"
        if name in cell["ndcg"]
        else ""
        for name, plain in reference.items()
    )
    print(
        f"| {setting(cell)}; {queries} queries, {seeds} seeds | {cell['sent']:.0f} | {named:.3f} "
        f"| {attack} | {chance} | {subjects} | {found} |"
    )


def setting(cell: dict[str, Any]) -> str:
    """What was asked for, but for seeds and queries, in words and numbers."""
    left_out = ("seeds", "queries", "attacked")
    return " ".join(str(value) for name, value in cell["asked"].items() if name not in left_out)


def print_comparison(cells: list[dict[str, Any]], engines: list[str]) -> None:
    """Each mechanism that replaces words, and the best cover of as many queries and no more risk.

    p is that of a randomization test over queries; it takes the risks for exact.
    """
    covers = [cell for cell in cells if "k" in cell["asked"]]
    print("\n| words | risk | cover | risk | engine, depth | words | cover | difference | p |")
    print("|---|--:|---|--:|---|--:|--:|--:|--:|")
    for words in (cell for cell in cells if "k" not in cell["asked"]):
        allowed = [
            cover
            for cover in covers
            if 1 / AS_MANY <= cover["sent"] / words["sent"] <= AS_MANY
            and risk(cover)[0] <= risk(words)[0]
        ]
        for engine in (name for name in engines if allowed and name in words["ndcg"]):
            cover = max(allowed, key=lambda cell: mean(cell["ndcg"][engine]))
            ours, theirs = cover["ndcg"][engine], words["ndcg"][engine]
            differences = np.array([ours[query] - theirs[query] for query in ours])
            (p,) = randomization_test(differences[None])
            print(
                f"| {setting(words)} | {risk(words)[0]:.3f} | {setting(cover)} "
                f"| {risk(cover)[0]:.3f} | {engine} | {mean(theirs):.3f} | {mean(ours):.3f} "
                f"| {differences.mean():+.3f} | {p:.3f} |"
            )
