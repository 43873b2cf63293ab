"""Stores that are asked with a vector: what all of them have in common.

A store gets one noisy vector a search. It answers documents with the vectors that it has of them,
so that they can be put in order here, by the true vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np

from sottovoce.arrays import row_norms
from sottovoce.engines.base import EngineError, Hit
from sottovoce.errors import UsageError
from sottovoce.types import Float32Array, Float64Array

Metric: TypeAlias = Literal["inner", "cosine", "l2"]
METRICS: tuple[Metric, ...] = get_args(Metric)
DEEPEST = 10_000
"""Documents that a store is asked for at most: more than that, OpenSearch does not answer."""
MOST_BYTES = 200_000_000
"""Of an answer: 10,000 documents with vectors of a thousand numbers."""


class VectorHit(NamedTuple):
    """A document that a store found, with the vector that it has of it."""

    hit: Hit
    vector: Float32Array

    def __repr__(self) -> str:
        return f"VectorHit({self.hit!r}, {len(self.vector)} dimensions)"


class VectorEngine(Protocol):
    """Anything that ranks documents for a vector.

    name
        For people; it holds no secrets.
    remote
        Whether what is asked leaves this machine, or comes to a server here that passes it on.
    made_by
        The encoder that made its vectors, as :func:`sottovoce.encoders.load_encoder` takes it.
    metric
        By what it ranks: the inner product, the cosine, or the Euclidean distance.
    """

    name: str
    remote: bool
    metric: Metric

    @property
    def made_by(self) -> str: ...

    def nearest(self, vector: Float32Array, depth: int) -> list[VectorHit]:
        """The best ``depth`` documents, best first."""
        ...


def likeness(query: Float32Array, vectors: Float32Array, metric: Metric) -> Float64Array:
    """How well documents answer a query by a store's metric: the greater the better."""
    exact, point = vectors.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return -row_norms(exact - point)
    products = np.asarray((exact * point).sum(axis=1))
    if metric == "inner":
        return products
    lengths = row_norms(exact) * float(np.sqrt((point * point).sum()))
    return np.asarray(products / np.where(lengths > 0, lengths, 1.0))


def check_depth(depth: int) -> None:
    """Refuse depths that stores do not answer."""
    if not 1 <= depth <= DEEPEST:
        raise UsageError(f"ask a store for 1 to {DEEPEST:,} documents, not {depth}")


def check_metric(metric: str) -> None:
    """Refuse metrics that nobody ranks by."""
    if metric not in METRICS:
        raise UsageError(f"'metric' is one of {', '.join(METRICS)}")


def stored_vector(name: str, numbers: object, dimension: int) -> Float32Array:
    """The vector of a document, as a store answered it."""
    try:
        vector = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.zeros(0, dtype=np.float32)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise EngineError(
            f"{name}: a document has no vector of {dimension} numbers: check 'vector' and "
            "'encoder' in the store's file"
        )
    return vector


def best_first(hits: Sequence[VectorHit], metric: Metric, query: Float32Array) -> list[Hit]:
    """Documents in the order of a vector; ties keep the order they have."""
    if not hits:
        return []
    scores = likeness(query, np.stack([near.vector for near in hits]), metric)
    order = np.argsort(-scores, kind="stable").tolist()
    return [hits[at].hit._replace(score=float(scores[at])) for at in order]
