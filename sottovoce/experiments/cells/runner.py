"""Runs the cells of an experiment: gives every job its key, and computes its result."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from sottovoce.devices import device
from sottovoce.experiments.cells.audit import audit
from sottovoce.experiments.cells.draw import Variants, draw, from_table
from sottovoce.experiments.cells.leak import leak
from sottovoce.experiments.cells.learn import Lessons
from sottovoce.experiments.cells.search import Searches
from sottovoce.experiments.cells.words import deny, neighbours, samples
from sottovoce.experiments.fingerprints import Fingerprints
from sottovoce.experiments.grid import (
    Audit,
    Baseline,
    Deny,
    Draw,
    Job,
    Leak,
    Learn,
    Neighbours,
    Samples,
    Search,
)
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.store import Cell, CellResult, Store
from sottovoce.threads import single_threaded_blas

SOURCES_KEPT = 4


class CellRunner:
    """Runs cells one after the other in one process; what they name is loaded once."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._cache = cache = ResourceCache()
        self._fingerprints = Fingerprints(cache)
        self._searches, self._lessons = Searches(cache), Lessons(cache)
        self._variants = lru_cache(SOURCES_KEPT)(self._read_variants)

    def key(self, job: Job) -> str:
        """The hash of all that decides the job's result: the same on every machine."""
        return self._fingerprints.key(job)

    def run(self, job: Job) -> CellResult:
        """The job's result; what it was made of, and on which device, is among its facts."""
        with single_threaded_blas():  # Its own threads would round differently.
            result = self._computed(job)
        facts = {name: value for name, value in self._fingerprints.facts(job).items() if value}
        return replace(result, facts={**facts, **result.facts, "device": device()})

    def _computed(self, job: Job) -> CellResult:
        match job:
            case Draw(source):
                return draw(source, self._cache)
            case Search(source):
                return self._searches.private(job, self._variants(Draw(source)))
            case Baseline():
                return self._searches.baseline(job)
            case Leak(source):
                return leak(job, self._cache, self._variants(Draw(source)))
            case Deny():
                return deny(job, self._cache)
            case Neighbours():
                return neighbours(job, self._cache)
            case Samples():
                return samples(job, self._cache)
            case Learn():
                return self._lessons.learn(job)
            case Audit():
                return audit(job, self._cache)

    def _read_variants(self, drawn: Draw) -> Variants:
        table = self._store.table(Cell(drawn, self.key(drawn)))
        return from_table(table, self._cache.queries(drawn.source.collection))
