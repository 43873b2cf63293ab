"""The tables of ``spaces.py``: what each setting finds and gives away, and what it finds at a risk.

The risk of a setting at an epsilon is a mean over queries and seeds. Between two epsilons, nDCG@10
is interpolated linearly in the risk, query by query. p values are those of a randomization test of
the differences over queries; it takes the risks for exact. Intervals are bootstraps over queries
that draw risks and nDCG together.

Queries tie where they differ only in words that are left out or unknown. *Named* counts a query
that ties with others as not named, as the package does; *shared* as named with the chance of a
blind guess among those that tie; *tied* as named.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.statistics import LEVEL, randomization_test, resamples
from sottovoce.types import Float64Array

RISKS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
SAMPLES = 2000
ENOUGH = 0.9
"""An interval needs that share of the resamples: in the others a curve does not reach the risk."""
BEFORE, AFTER = "old", "new"


def above(rank: float, ties: int) -> float:
    """How many queries scored higher than the true one."""
    return rank - 1 - ties / 2


AXES: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "named": ("named", lambda rank, _: float(rank == 1)),
    "shared": ("named", lambda rank, ties: float(above(rank, ties) == 0) / (1 + ties)),
    "tied": ("named", lambda rank, ties: float(above(rank, ties) == 0)),
    "point": ("point", lambda rank, _: float(rank == 1)),
    "point, tied": ("point", lambda rank, ties: float(above(rank, ties) == 0)),
}


@dataclass(frozen=True)
class Curve:
    """One setting on one collection: arrays (epsilons, queries), means over seeds."""

    epsilons: tuple[float, ...]
    seeds: int
    cells: dict[float, list[dict[str, Any]]]

    @classmethod
    def read(cls, out: Path, collection: str, setting: str) -> Curve | None:
        """From the cells in a folder: seeds that all epsilons have."""
        by_epsilon: dict[float, dict[int, Path]] = {}
        for file in out.glob(f"{collection}--{setting}--*.json"):
            epsilon, seed = file.stem.split("--")[2:]
            by_epsilon.setdefault(float(epsilon), {})[int(seed)] = file
        if not by_epsilon:
            return None
        seeds = sorted(set.intersection(*map(set, by_epsilon.values())))
        if not seeds:
            return None
        cells = {
            epsilon: [json.loads(by_epsilon[epsilon][seed].read_text("utf-8")) for seed in seeds]
            for epsilon in sorted(by_epsilon)
        }
        return cls(tuple(cells), len(seeds), cells)

    @cached_property
    def queries(self) -> list[str]:
        """The queries, in the order of the columns."""
        return sorted(self.cells[self.epsilons[0]][0]["ndcg"])

    def values(self, measure: str) -> Float64Array:
        """A measure of every query."""
        return self._means(lambda cell, query: cell[measure][query])

    def risk(self, axis: str) -> Float64Array:
        """How often every query is named."""
        attack, right = AXES[axis]
        return self._means(lambda cell, query: right(*cell[attack][query]))

    def _means(self, value: Callable[[dict[str, Any], str], float]) -> Float64Array:
        return np.array(
            [
                np.mean([[value(cell, query) for query in self.queries] for cell in cells], axis=0)
                for cells in self.cells.values()
            ]
        )


def at_risk(risks: Float64Array, values: Float64Array, wanted: float) -> Float64Array | None:
    """Values (epsilons, …) interpolated at a risk; None if it is not reached from both sides.

    Where chance makes the risk fall as epsilon grows, the greatest so far counts.
    """
    rising = np.maximum.accumulate(risks)
    if not rising[0] <= wanted <= rising[-1]:
        return None
    place = np.interp(wanted, rising, np.arange(len(rising)))
    low = min(int(place), len(rising) - 2)
    share = place - low
    return np.asarray((1 - share) * values[low] + share * values[low + 1])


@dataclass(frozen=True)
class Comparison:
    """Two settings at one risk: means, their difference, an interval, and p."""

    before: float
    after: float
    low: float
    high: float
    p: float

    @property
    def difference(self) -> float:
        """How much more the second finds."""
        return self.after - self.before


def compare(before: Curve, after: Curve, axis: str, wanted: float, less: str) -> Comparison | None:
    """At a risk, nDCG@10 less another measure (or ``""``: less nothing); None if not reached."""
    risks = [curve.risk(axis) for curve in (before, after)]
    values = [
        curve.values("ndcg") - (curve.values(less) if less else 0.0) for curve in (before, after)
    ]
    pair = [at_risk(r.mean(axis=1), v, wanted) for r, v in zip(risks, values, strict=True)]
    if pair[0] is None or pair[1] is None:
        return None
    (p,) = randomization_test((pair[1] - pair[0])[None])
    queries, differences = len(before.queries), []
    (counts,) = resamples(queries, SAMPLES, seed=0, at_a_time=SAMPLES)
    for weights in counts / queries:
        ends = [
            at_risk(r @ weights, v @ weights, wanted) for r, v in zip(risks, values, strict=True)
        ]
        if ends[0] is not None and ends[1] is not None:
            differences.append(float(ends[1] - ends[0]))
    low = high = float("nan")
    if len(differences) >= ENOUGH * SAMPLES:
        low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Comparison(float(pair[0].mean()), float(pair[1].mean()), low, high, float(p))


def print_tables(out: Path, settings: list[str]) -> None:
    """Print every table for which there are cells."""
    for collection in sorted({file.stem.split("--")[0] for file in out.glob("*--*.json")}):
        curves = {name: Curve.read(out, collection, name) for name in settings}
        present = {name: curve for name, curve in curves.items() if curve is not None}
        reference = out / f"{collection}.json"
        print(f"\n## {collection}")
        if reference.exists():
            for name, value in json.loads(reference.read_text("utf-8")).items():
                print(f"{name}: {value:.3f}")
        print_settings(present)
        for name in present:
            if name != BEFORE and BEFORE in present:
                print_comparison(present, BEFORE, name)
            if name not in (BEFORE, AFTER) and AFTER in present:
                print_comparison(present, name, AFTER)


def print_settings(curves: dict[str, Curve]) -> None:
    """A row for each setting and epsilon."""
    print(
        f"\n| | epsilon | nDCG@10 | chance | pool | words | {' | '.join(AXES)} | queries, seeds |"
    )
    print("|---|" + "--:|" * (6 + len(AXES)))
    for name, curve in curves.items():
        measures = [curve.values(measure).mean(axis=1) for measure in ("ndcg", "chance", "pool")]
        risks = [curve.risk(axis).mean(axis=1) for axis in AXES]
        for row, (epsilon, cells) in enumerate(curve.cells.items()):
            ndcg, chance, pool = (values[row] for values in measures)
            words = np.mean([cell["words"] for cell in cells])
            shares = " | ".join(f"{risk[row]:.2f}" for risk in risks)
            print(
                f"| {name} | {epsilon:g} | {ndcg:.3f} | {chance:.3f} | {pool:,.0f} | {words:.2f} "
                f"| {shares} | {len(curve.queries)}, {curve.seeds} |"
            )


def print_comparison(curves: dict[str, Curve], before: str, after: str) -> None:
    """What both find at each risk that both reach."""
    print(
        f"\n| at equal | risk | {before} | {after} | difference | 95 % | p "
        "| less chance | 95 % | p |"
    )
    print("|---|" + "--:|" * 9)
    for axis in AXES:
        for wanted in RISKS:
            raw = compare(curves[before], curves[after], axis, wanted, "")
            net = compare(curves[before], curves[after], axis, wanted, "chance")
            if raw is None or net is None:
                continue
            print(
                f"| {axis} | {wanted:g} | {raw.before:.3f} | {raw.after:.3f} | {figures(raw)} "
                f"| {figures(net)} |"
            )


def figures(compared: Comparison) -> str:
    """The difference, its interval, and p, as cells of a table."""
    interval = f"{compared.low:+.3f} to {compared.high:+.3f}"
    if np.isnan(compared.low):
        interval = "–"
    return f"{compared.difference:+.3f} | {interval} | {compared.p:.4f}"
