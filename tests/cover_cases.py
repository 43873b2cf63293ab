"""What tests of pools and of cover share: a table of vectors, an engine that listens."""

from __future__ import annotations

import hashlib

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry
from sottovoce.pools import Pool

LEVEL = 1e-4
QUERY = "treatment for skin cancer"
MEMBER = "melanoma skin cancer treatment options"
"""A query of the demo's log, and the nearest one there to ``QUERY``."""


class Table:
    """An encoder that looks vectors up: texts are numbers of rows; any other is the first axis."""

    name = "table"

    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float32)
        self.dimension = self.rows.shape[1]

    @property
    def fingerprint(self):
        return hashlib.sha256(self.rows.tobytes()).hexdigest()

    def encode(self, texts):
        axis = np.eye(self.dimension, dtype=np.float32)[0]
        return np.array([self.rows[int(t)] if t.isdigit() else axis for t in texts])


def circle(degrees):
    angles = np.radians(degrees)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Pool([str(row) for row in range(len(rows))], Table(rows))


def in_company(text):
    """A release of a text in company, for an engine elsewhere."""
    promise = Guarantee("local", 1.0, scope="text")
    company = {"company": {"mechanism": "cover:k=5"}, "representative": MEMBER}
    return Entry(text, (MEMBER,), "cover:k=5", "once", promise, 1, "", elsewhere=True, **company)


class Stranger:
    """A remote engine that keeps what it hears."""

    name, remote, pause, most_queries = "a stranger", True, 0.0, None

    def __init__(self):
        self.heard = []

    def search(self, queries, depth):
        self.heard += queries
        return [[] for _ in queries]
