"""The workshop: gives every job its key, and does it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from sottovoce.experiments.contents import Contents
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
from sottovoce.experiments.keys import Keys
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf
from sottovoce.experiments.steps.denying import deny
from sottovoce.experiments.steps.drawing import Variants, draw, read_variants
from sottovoce.experiments.steps.leaking import leak
from sottovoce.experiments.steps.learning import Lessons
from sottovoce.experiments.steps.neighbours import neighbour
from sottovoce.experiments.steps.searching import Searches
from sottovoce.threads import single_threaded_blas

SOURCES_KEPT = 4


class Workshop:
    """What the jobs of an experiment share in one process: each thing they name is loaded once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shelf = Shelf()
        self._shelf, self._keys = shelf, Keys(Contents(shelf))
        self._searches, self._lessons = Searches(shelf), Lessons(shelf)
        self._variants = lru_cache(SOURCES_KEPT)(self._read)

    def key(self, job: Job) -> str:
        """The hash of all that decides the job's product: the same on every machine."""
        return self._keys.key(job)

    def do(self, job: Job) -> Product:
        """The job's product; what it was made of is among its facts."""
        with single_threaded_blas():  # Its own threads would round differently.
            product = self._done(job)
        named = {name: facts for name, facts in self._keys.named(job).items() if facts}
        return replace(product, facts={**named, **product.facts})

    def _done(self, job: Job) -> Product:
        match job:
            case Draw(source):
                return draw(source, self._shelf)
            case Search(source):
                return self._searches.private(job, self._variants(source))
            case Baseline():
                return self._searches.baseline(job)
            case Leak(source):
                return leak(job, self._shelf, self._variants(source))
            case Deny():
                return deny(job, self._shelf)
            case Neighbours():
                return neighbour(job, self._shelf)
            case Learn():
                return self._lessons.learn(job)

    def _read(self, source: Source) -> Variants:
        file = self.folder / "variants" / f"{self.key(Draw(source))}.parquet"
        return read_variants(file, self._shelf.queries(source.collection))
