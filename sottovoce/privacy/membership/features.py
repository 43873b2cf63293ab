"""What an auditor sees of a user: how a text model takes the user's own queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sottovoce.privacy.membership.ngrams import BOUNDARY, NGramModel, windows
from sottovoce.text import tokenize
from sottovoce.text.comparing import comparable
from sottovoce.types import Float64Array, IntArray

RANK_BINS = 17
"""Ranks 1, 2-3, 4-7, ..., from 65,536; one more bin holds the words that the model never saw."""

LOG_BINS = 20
"""Probabilities from 1/e to 1, from 1/e² to 1/e, ..., the last one open."""


class Numbering:
    """Ids for words, in the order in which they come; case does not tell two words apart."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def tokens(self, queries: Iterable[str]) -> IntArray:
        """The ids of the words of queries, with ``BOUNDARY`` before each query and at the end."""
        ids = self._ids
        found = [BOUNDARY]
        for query in queries:
            words = (comparable(token.surface) for token in tokenize(query))
            found.extend(ids.setdefault(word, len(ids) + 1) for word in words)
            found.append(BOUNDARY)
        return np.asarray(found, dtype=np.int64)


def features(model: NGramModel, users: list[IntArray]) -> Float64Array:
    """For each user the shares of true next words by rank and by log-probability, (users, bins).

    Of a user whose queries hold no word, all shares are 0.
    """
    asked = [windows(tokens, model.order) for tokens in users]
    user = np.repeat(np.arange(len(users)), [len(own) for own in asked])
    flat = np.concatenate(asked)
    rank = np.minimum(np.log2(model.ranks(flat)).astype(np.int64), RANK_BINS - 1)
    rank[~model.knows(flat[:, -1])] = RANK_BINS
    surprise = np.minimum((-np.log(model.probabilities(flat))).astype(np.int64), LOG_BINS - 1)
    counted = [
        np.bincount(user * bins + found, minlength=len(users) * bins).reshape(len(users), bins)
        for bins, found in ((RANK_BINS + 1, rank), (LOG_BINS, surprise))
    ]
    sizes = np.maximum(np.bincount(user, minlength=len(users)), 1)
    return np.concatenate(counted, axis=1) / sizes[:, None]
