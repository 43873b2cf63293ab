"""What a finished experiment was made of: versions, hashes, seeds, times. No machine's paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sottovoce.experiments.description import Experiment
from sottovoce.experiments.naming import without_paths
from sottovoce.experiments.store import About

SEEDED = (
    "All of this was drawn from fixed seeds, so that it can be repeated: nothing here protects "
    "anybody. For real texts leave the seed out."
)


def manifest(
    experiment: Experiment,
    cells: Sequence[About],
    *,
    done_before: int,
    started: datetime,
    finished: datetime,
) -> dict[str, Any]:
    """All that the report says of where its numbers come from.

    ``seconds`` are those that the cells took, whichever run did them; ``wall_seconds`` are those of
    the run that did the last of them.
    """
    by_kind: dict[str, float] = {}
    for cell in cells:
        by_kind[cell.job] = by_kind.get(cell.job, 0.0) + cell.seconds
    prose = {"description": experiment.description, "notes": list(experiment.notes)}
    said = {
        "name": experiment.name,
        **prose,
        "seeds": experiment.seeds,
        "seeded": True,
        "warning": SEEDED,
        "versions": _versions(cells),
        "facts": gathered(cell.facts for cell in cells),
        "cells": len(cells),
        "done_before": done_before,
        "seconds": round(sum(by_kind.values()), 3),
        "seconds_by_kind": {kind: round(seconds, 3) for kind, seconds in by_kind.items()},
        "wall_seconds": round((finished - started).total_seconds(), 3),
        "started": started.isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "runs": [cell.run for cell in cells if cell.run is not None],
        "experiment": {**without_paths(asdict(experiment)), **prose},
    }
    return {**said, "facts": without_paths(said["facts"])}


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def _versions(cells: Iterable[About]) -> dict[str, str]:
    """The versions of what computed the cells: several, where some were done before an upgrade."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, version in cell.versions.items():
            found.setdefault(name, {})[version] = None
    return {name: ", ".join(each) for name, each in found.items()}


def gathered(facts: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """The distinct values of each fact, in the order in which cells gave them."""
    found: dict[str, dict[str, Any]] = {}
    encoders: dict[str, str] = {}
    for each in facts:
        encoders |= each.get("encoders", {})
        for name, value in each.items():
            found.setdefault(name, {}).setdefault(json.dumps(value, sort_keys=True), value)
    said = {name: list(values.values()) for name, values in found.items()}
    return {**said, "encoders": [encoders]} if encoders else said
