"""Subjects that wear out: different queries on one subject, one after the other, in company.

Each set hides its own query, and what runs through all of them is the subject. The ledger has a
keyed hash of everything that decided a company, so that it can be asked about the public strings
near to the one that stands for a query: it tells how many of them had company, and knows no text.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sottovoce.mechanisms.base import SetMechanism
from sottovoce.mechanisms.company import Company
from sottovoce.obfuscation.memory import Memory
from sottovoce.pools import Pool
from sottovoce.randomness import as_generator
from sottovoce.search.private_search import PrivateSearch
from sottovoce.types import IntArray

NEAR = 0.995
"""Strings more alike than this share of random pairs of the pool are on one subject."""
RANDOM_PAIRS = 5000
WORN_FROM = 3
"""So many different companies on one subject are too many; measured in docs/cover-measured.md."""
WORN_OUT = (
    "This subject is worn out: by the ledger, queries on it have had {count} different companies. "
    "Whoever sees all of them sees what runs through them, and names the query much oftener than "
    "in one alone. Repeating a query tells nothing new; asking something else on the subject does."
)


def worn_out(search: PrivateSearch, company: Company | None) -> str | None:
    """A sentence if the subject of a query that was counted is worn out; None if it is not.

    It counts queries in the same setting and pool. Without a ledger, or a company, nothing is told.
    """
    mechanism, ledger = search.obfuscator.mechanism, search.ledger
    if company is None or ledger is None:
        return None
    assert isinstance(mechanism, SetMechanism)  # noqa: S101 - nothing else has such company
    memory = Memory(ledger.memory_key(), mechanism, search.obfuscator.n, search.obfuscator.release)
    near = _near(mechanism.pool, company.representative)
    names = {mechanism.decided_by(place) for place in near.tolist()}
    count = ledger.count_released(memory.hashes([*names]))
    return WORN_OUT.format(count=count) if count >= WORN_FROM else None


def _near(pool: Pool, string: str) -> IntArray:
    """The places of the strings of a pool that are on the subject of one of them, itself too."""
    place = pool.place(string)
    cosines = pool.vectors @ pool.vectors[place]
    return np.union1d(np.flatnonzero(cosines > _near_from(pool)), [place])


@lru_cache(maxsize=4)
def _near_from(pool: Pool) -> float:
    """The cosine from which on two strings of a pool are on one subject."""
    first, second = as_generator(0).integers(len(pool), size=(2, RANDOM_PAIRS))
    different = first != second
    cosines = np.einsum("ij,ij->i", pool.vectors[first], pool.vectors[second])[different]
    return float(np.quantile(cosines, NEAR)) if len(cosines) else 1.0
