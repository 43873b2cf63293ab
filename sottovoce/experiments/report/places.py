"""Where an experiment measured: its collections, engines, re-rankers and measures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sottovoce.experiments.report.naming import counted
from sottovoce.experiments.results import Grid, Results
from sottovoce.experiments.tables import PRIVATE

MAIN_MEASURE = "nDCG@10"
SIMILARITY = "semantic"
"""The similarity that figures show beside risks."""
POOL = "pool"
POOLED_RECALL = "pooled recall"


class Place(NamedTuple):
    """Where searches were run."""

    collection: str
    engine: str
    reranker: str


def places(results: Results) -> list[Place]:
    """All of them, in order of appearance."""
    groups = (each for each in results.groups if each.engine)
    return list(dict.fromkeys(Place(*each[:3]) for each in groups))


def collections(results: Results) -> list[str]:
    """Those that searches or attacks were run on."""
    return list(dict.fromkeys(each.collection for each in results.groups))


def measures(results: Results, place: Place, system: str = PRIVATE) -> list[str]:
    """What was measured there."""
    return [
        each.measure
        for each in results.groups
        if Place(*each[:3]) == place and each.system == system
    ]


def main_measure(results: Results, place: Place) -> str | None:
    """nDCG@10, or what stands first where that was not measured."""
    found = [each for each in measures(results, place) if not counts_pool(each)]
    return MAIN_MEASURE if MAIN_MEASURE in found else next(iter(found), None)


def counts_pool(measure: str) -> bool:
    """Whether it is a fact of the pool, which no re-ranker changes."""
    return measure == POOL or measure.startswith(POOLED_RECALL)


def sized(*grids: Grid) -> str:
    """How many queries and seeds, as every table says; some attacks are run on fewer queries."""
    counts = [int(each) for grid in grids for each in (~np.isnan(grid.values)).sum(axis=1)]
    return sizes(counts, max((each.seeds for each in grids), default=0))


def sizes(queries: Iterable[int], seeds: int) -> str:
    """The same of numbers of queries that may differ from row to row."""
    counts = sorted(set(queries)) or [0]
    few = f"{counts[0]:,} to " if len(counts) > 1 else ""
    return f"{few}{counted(counts[-1], 'query', 'queries')}, {counted(seeds, 'seed')}"
