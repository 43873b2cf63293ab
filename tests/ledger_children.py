"""What tests of the ledger and the processes that they start have in common."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager

from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry

SECRET = "melanoma"
KEPT = ("winter", "gift")
WORDS = ("3f", "a0")
"""What stands for words in the ledger."""


def entry(variants=KEPT, releases=2, words=(), elsewhere=False):
    promise = Guarantee("metric", 1.0, "euclidean")
    return Entry(
        *(SECRET, variants, "cmp:epsilon=1", "independent", promise, releases, "bm25"),
        words=words,
        elsewhere=elsewhere,
    )


def nats(ledger):
    return sum(each.nats for each in ledger.spent())


@contextmanager
def opened(ledger):
    """The database as any other program would open it."""
    with closing(sqlite3.connect(ledger.folder / "ledger.db")) as connection, connection:
        yield connection


def send(line, sent):
    """Stand in for the network: what is in this file has left."""
    with sent.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
