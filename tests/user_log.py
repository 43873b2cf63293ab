"""A small query log with user ids, made up: every user has interests of their own.

With the default space, 200 users and 60 queries of each:

    python tests/user_log.py 200 60 > log.csv
"""

from __future__ import annotations

import csv
import sys

import numpy as np

from sottovoce.privacy.membership_audit import UserLog
from sottovoce.resources.local import load_space
from sottovoce.spaces.space import WordSpace

COMMON_WORDS = 40
INTERESTS = 8
WORDS_OF_AN_INTEREST = 6


def made_up_log(space: WordSpace, users: int, queries: int, seed: int = 0) -> UserLog:
    """Queries of two to four words: one that everybody uses, the rest of one of the interests."""
    rng = np.random.default_rng(seed)
    common = rng.choice(space.size, COMMON_WORDS, replace=False)
    weights = 1 / np.arange(1, COMMON_WORDS + 1)
    log = []
    for _ in range(users):
        interests = rng.choice(space.size, (INTERESTS, WORDS_OF_AN_INTEREST))
        own = []
        for _ in range(queries):
            words = rng.choice(interests[rng.integers(INTERESTS)], rng.integers(1, 4))
            first = rng.choice(common, p=weights / weights.sum())
            own.append(" ".join(space.words(np.r_[first, words])))
        log.append(tuple(own))
    return UserLog(tuple(log))


if __name__ == "__main__":
    users, queries = map(int, sys.argv[1:])
    rows = csv.writer(sys.stdout)
    rows.writerow(["user", "query"])
    for user, own in enumerate(made_up_log(load_space(None), users, queries).queries):
        rows.writerows((user, query) for query in own)
