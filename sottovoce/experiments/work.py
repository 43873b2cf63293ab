"""One cell worked on, here or elsewhere: what goes out, and an answer that never raises.

An unexpected error is told by its kind alone: its message could hold a query.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from sottovoce import errors
from sottovoce.errors import SottovoceError
from sottovoce.experiments.jobs import Job
from sottovoce.experiments.naming import described
from sottovoce.experiments.product import Product


class Cell(NamedTuple):
    """A job, and the hash of all that decides its product."""

    job: Job
    key: str


class Works(Protocol):
    """What a workshop can do."""

    def key(self, job: Job) -> str:
        """The hash of all that decides the job's product."""

    def do(self, job: Job) -> Product:
        """The job's product."""


Maker: TypeAlias = Callable[[Path], Works]
"""Makes the workshop of a folder, in each process; picklable."""


@dataclass(frozen=True)
class Answer:
    """A product and the seconds it took, or the error that came instead."""

    product: Product | None = None
    seconds: float = 0.0
    failed: str = ""
    """The class of the error."""
    message: str = ""


Engine: TypeAlias = Callable[[Iterable[Cell]], Iterator[tuple[Cell, Answer]]]
"""Works on cells, and gives each with its answer when it is there, in any order."""


def attempt(workshop: Works, job: Job) -> Answer:
    """Do a job."""
    begun = time.perf_counter()
    try:
        return Answer(workshop.do(job), time.perf_counter() - begun)
    except SottovoceError as error:
        return Answer(failed=type(error).__name__, message=str(error))
    except Exception as error:
        return Answer(failed="SottovoceError", message=f"it failed ({type(error).__name__})")


def product_of(cell: Cell, answer: Answer) -> Product:
    """The product; or raises what went wrong, and where."""
    if answer.product is None:
        kind = getattr(errors, answer.failed, SottovoceError)
        raise kind(f"{described(cell.job)}: {answer.message}")
    return answer.product
