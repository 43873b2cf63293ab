"""What an attacker believes beforehand: which strings of a set look like something a person asks.

Beliefs are log-odds, to which the law of the sets is added: ln prior(x) + ln P(S | x), the exact
posterior of each member up to a constant. Here are those that need no list of texts; the others
are in ``nearness.py`` and ``lists.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.likeness import HeldOutLikeness
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.sensitive import sensitivity
from sottovoce.types import Float64Array

Belief: TypeAlias = Callable[[SeenSet], Float64Array]
"""The log-odds of each string of a set."""


def nothing(seen: SeenSet) -> Float64Array:
    """All strings are alike."""
    return np.zeros(len(seen.strings))


def looks_like(likeness: HeldOutLikeness) -> Belief:
    """The learned log-ratio of texts of the person's kind against the pool."""

    def belief(seen: SeenSet) -> Float64Array:
        return likeness.log_ratio(seen.strings, seen.vectors)

    return belief


def is_popular(pool: Pool) -> Belief:
    """As often as the pool says that a string is asked; strings that it lacks as its rarest."""
    assert pool.popularity is not None  # noqa: S101 - only asked for with a popularity
    logs = np.log(pool.popularity)

    def belief(seen: SeenSet) -> Float64Array:
        places = [pool.place(string) for string in seen.strings]
        return np.array([logs.min() if place is None else logs[place] for place in places])

    return belief


def is_sensitive(encoder: Encoder) -> Belief:
    """Strings on subjects that people hide are what a person hides."""

    def belief(seen: SeenSet) -> Float64Array:
        return sensitivity(seen.strings, seen.vectors, encoder)

    return belief
