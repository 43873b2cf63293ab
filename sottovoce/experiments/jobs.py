"""The cells of an experiment: each is computed by itself, from what its fields name.

A job is small, immutable and picklable. Its key, a hash of its fields and of the content of all
that they name, is what its product is kept under; :mod:`sottovoce.experiments.workshop` computes
both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sottovoce.experiments.description import (
    Deniability,
    Downstream,
    Privacy,
    Searching,
    Texts,
    Utility,
)


@dataclass(frozen=True)
class Source:
    """Where the variants of a collection's judged queries come from.

    A mechanism (``spec``, with its epsilon) draws them, or ``file`` holds them.
    """

    collection: str
    mechanism: str
    """As tables name it."""
    epsilon: float | None
    release: str
    n: int
    seed: int
    spec: str | None
    file: str | None
    texts: Texts


@dataclass(frozen=True)
class Draw:
    """Draw (or read) the variants of all queries: ``variants/KEY.parquet``."""

    source: Source


@dataclass(frozen=True)
class Search:
    """Search, pool, re-rank and measure: private, and the original query as deep as the pools."""

    source: Source
    engine: str
    reranker: str
    searching: Searching
    utility: Utility


@dataclass(frozen=True)
class Baseline:
    """The original queries themselves, at the depth of one answer."""

    collection: str
    engine: str
    reranker: str
    searching: Searching
    utility: Utility


@dataclass(frozen=True)
class Leak:
    """What the variants give away: similarity, query inference, mechanism-aware recovery."""

    source: Source
    privacy: Privacy


@dataclass(frozen=True)
class Deny:
    """N_w and S_w of a mechanism, word by word."""

    mechanism: str
    spec: str
    epsilon: float | None
    seed: int
    texts: Texts
    deniability: Deniability


@dataclass(frozen=True)
class Neighbours:
    """How far words are from their neighbours, and where the plotted words' relatives lie."""

    texts: Texts
    words: int
    plotted: tuple[str, ...]


@dataclass(frozen=True)
class Learn:
    """What models score on one task; without a mechanism on clean texts."""

    task: str
    mechanism: str
    spec: str | None
    epsilon: float | None
    seed: int
    texts: Texts
    downstream: Downstream


Job: TypeAlias = Draw | Search | Baseline | Leak | Deny | Neighbours | Learn
