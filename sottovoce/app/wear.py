"""Subjects that wear out: different queries on one subject, one after the other, in company.

Each set hides its own query, and what runs through all of them is the subject.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from sottovoce.mechanisms.base import SetMechanism
from sottovoce.pools import Pool
from sottovoce.randomness import as_generator
from sottovoce.types import Float32Array

NEAR = 0.995
"""Strings more alike than this share of random pairs of the pool are on one subject."""
RANDOM_PAIRS = 5000
WORN_FROM = 3
"""So many different queries on one subject are too many; measured in docs/cover.md."""
WORN_OUT = (
    "This subject is worn out: {count} different queries on it have left in company since the "
    "service began. Whoever looks at all of them sees what runs through them, and names the query "
    "much oftener than in one set alone. Repeating a query tells nothing new; asking something "
    "else on the subject does."
)


class Wear:
    """What left in company since the service began, by what stood for it. It is in memory alone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sent: dict[str, set[int]] = {}
        self._near_from: dict[str, float] = {}

    def after(self, mechanism: SetMechanism, text: str) -> str | None:
        """Note that a text has left; a sentence if its subject is worn out by now."""
        pool, (place,) = mechanism.pool, mechanism.representatives([text]).tolist()
        with self._lock:
            sent = self._sent.setdefault(pool.sha256, set())
            sent.add(place)
            if pool.sha256 not in self._near_from:
                self._near_from[pool.sha256] = _near_from(pool)
            vectors: Float32Array = pool.vectors[sorted(sent)]
            cosines = vectors @ pool.vectors[place]
            count = int((cosines > self._near_from[pool.sha256]).sum())
        return WORN_OUT.format(count=count) if count >= WORN_FROM else None


def _near_from(pool: Pool) -> float:
    """The cosine from which on two strings of a pool are on one subject."""
    first, second = as_generator(0).integers(len(pool), size=(2, RANDOM_PAIRS))
    different = first != second
    cosines = np.einsum("ij,ij->i", pool.vectors[first], pool.vectors[second])[different]
    return float(np.quantile(cosines, NEAR)) if len(cosines) else 1.0
