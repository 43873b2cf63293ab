"""The tables of ``cover.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from cover_bench import KNOWS_SUBJECT


def mean(values: dict[str, float]) -> float:
    """Over queries."""
    return float(np.mean(list(values.values())))


def risk(cell: dict[str, Any]) -> tuple[float, str]:
    """What the strongest attack names that does not know the subject, and which it is."""
    named = {name: mean(hits) for name, hits in cell["named"].items() if name != KNOWS_SUBJECT}
    best = max(named, key=lambda name: named[name], default="not attacked")
    return named.get(best, float("nan")), best


def print_tables(out: Path) -> None:
    """A table for each collection: a row for each cell that is there."""
    for file in sorted(out.glob("*.json")):
        if "--" in file.stem:
            continue
        reference = {name: mean(values) for name, values in json.loads(file.read_text()).items()}
        print(f"\n## {file.stem}\n")
        print("| | sent | risk | by | chance | knows the subject | " + " | ".join(reference) + " |")
        print("|---|--:|--:|---|--:|--:|" + "--:|" * len(reference))
        found = " | ".join(f"{value:.3f}" for value in reference.values())
        print(f"| the query itself | 1 | 1 | | | | {found} |")
        cells = [json.loads(cell.read_text()) for cell in sorted(out.glob(f"{file.stem}--*.json"))]
        for cell in sorted(cells, key=lambda cell: cell["sent"]):
            print_row(cell, reference)


def print_row(cell: dict[str, Any], reference: dict[str, float]) -> None:
    """nDCG@10 of a cell with the share of that without privacy."""
    asked = dict(cell["asked"])
    seeds, queries = len(asked.pop("seeds")), asked.pop("queries")
    named, attack = risk(cell)
    chance = f"{cell['chance']:.3f}" if "chance" in cell else ""
    subject = f"{mean(cell['named'][KNOWS_SUBJECT]):.2f}" if KNOWS_SUBJECT in cell["named"] else ""
    found = " | ".join(
        f"{mean(cell['ndcg'][name]):.3f} ({mean(cell['ndcg'][name]) / plain:.0%})"
        if name in cell["ndcg"]
        else ""
        for name, plain in reference.items()
    )
    setting = " ".join(map(str, asked.values()))
    print(
        f"| {setting}; {queries} queries, {seeds} seeds | {cell['sent']:.0f} | {named:.3f} "
        f"| {attack} | {chance} | {subject} | {found} |"
    )
