"""How large a plan is, and how much of it is done: what ``--dry-run`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sottovoce.experiments.description import Experiment
from sottovoce.experiments.folders import holds_experiment
from sottovoce.experiments.jobs import (
    Baseline,
    Deny,
    Draw,
    Job,
    Leak,
    Learn,
    Neighbours,
    Search,
    Source,
)
from sottovoce.experiments.named import collection_name, queries_of
from sottovoce.experiments.plan import plan
from sottovoce.experiments.steps.learning import task_name

KINDS = {
    Draw: "draw",
    Baseline: "search",
    Search: "search",
    Leak: "privacy",
    Deny: "words",
    Neighbours: "words",
    Learn: "tasks",
}
WORDS, UNPROTECTED = "words", ""


@dataclass
class Line:
    """The cells of one mechanism on one collection or task, or on words; by kind.

    ``variants`` are those to be drawn, ``queries`` those sent to engines; they are upper limits:
    a mechanism may find fewer variants, and equal ones are sent once.
    """

    on: str
    mechanism: str
    draw: int = 0
    search: int = 0
    privacy: int = 0
    words: int = 0
    tasks: int = 0
    variants: int = 0
    queries: int = 0
    done: int = 0

    @property
    def cells(self) -> int:
        """Cells of all kinds."""
        return self.draw + self.search + self.privacy + self.words + self.tasks


@dataclass(frozen=True)
class Size:
    """A plan in numbers."""

    name: str
    lines: tuple[Line, ...]

    def total(self, column: str) -> int:
        """The sum of a column."""
        return sum(int(getattr(line, column)) for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        columns = ("cells", "done", "variants", "queries")
        return {
            "name": self.name,
            **{column: self.total(column) for column in columns},
            "lines": [{**asdict(line), "cells": line.cells} for line in self.lines],
        }


def size_of(experiment: Experiment, folder: Path | None = None) -> Size:
    """Count the cells of an experiment, and those that are done in a folder; nothing is written."""
    stages = plan(experiment)
    done = _done(stages, folder) if folder is not None and holds_experiment(folder) else set()
    queries = {collection: queries_of(collection) for collection in experiment.collections}
    lines: dict[tuple[str, str], Line] = {}
    for job in (job for stage in stages for job in stage):
        place = _place(job)
        line = lines.setdefault(place, Line(*place))
        kind = KINDS[type(job)]
        setattr(line, kind, getattr(line, kind) + 1)
        line.done += job in done
        if isinstance(job, Baseline):
            line.queries += queries[job.collection]
        elif isinstance(job, Draw | Search):
            variants = queries[job.source.collection] * job.source.n
            line.queries += variants if isinstance(job, Search) else 0
            line.variants += variants if isinstance(job, Draw) and job.source.file is None else 0
    return Size(experiment.name, tuple(lines.values()))


def _place(job: Job) -> tuple[str, str]:
    source: Source | None = getattr(job, "source", None)
    if source is not None:
        return collection_name(source.collection), source.mechanism
    if isinstance(job, Baseline):
        return collection_name(job.collection), UNPROTECTED
    if isinstance(job, Learn):
        return task_name(job.task), job.mechanism
    return WORDS, job.mechanism if isinstance(job, Deny) else UNPROTECTED


def _done(stages: Sequence[Sequence[Job]], folder: Path) -> set[Job]:
    from sottovoce.experiments.running import staged
    from sottovoce.experiments.store import Store
    from sottovoce.experiments.workshop import Workshop

    store = Store(folder.resolve())
    cells = [cell for stage in staged(Workshop(store.folder), stages) for cell in stage]
    return {cell.job for cell in cells if store.is_done(cell)}
