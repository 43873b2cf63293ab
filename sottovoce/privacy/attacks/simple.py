"""Attacks that know nothing of the mechanism: the mode of a position, and its centroid."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sottovoce.privacy.attacks.target import Target
from sottovoce.types import UNKNOWN, IntArray


def mode(target: Target, n: int) -> list[str | None]:
    """The token seen most often at each position, the first seen of several; strings, not ids."""
    found: list[str | None] = []
    for seen in target.positions:
        counted = Counter(each.word for each in seen[:n])
        found.append(counted.most_common(1)[0][0] if counted else None)
    return found


def centroid(target: Target, n: int) -> IntArray:
    """The word nearest to the mean vector of the words seen."""
    guesses = np.full(len(target.ids), UNKNOWN)
    vectors = target.space.vectors
    seen = target.seen(n)
    known = [place for place, ids in enumerate(seen) if len(ids)]
    if known:
        means = np.stack([vectors[seen[place]].mean(axis=0) for place in known])
        guesses[known] = target.search.top(means, 1)[0][:, 0]
    return target.settled(guesses, n)
