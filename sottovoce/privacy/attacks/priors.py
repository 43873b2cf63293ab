"""What an attacker believes of a word before looking: all alike, or frequent ones likelier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.alignment import Reader
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, Float64Array


def by_rank(space: WordSpace) -> Float64Array:
    """Zipf's law, 1 / rank: spaces list frequent words first."""
    return np.asarray(1.0 / np.arange(1, space.size + 1))


def counted(space: WordSpace, texts: Iterable[str]) -> Float64Array:
    """How often each word of the space occurs in texts, such as a query log, and once more."""
    reader, counts = Reader(space), np.ones(space.size)
    for text in texts:
        for each in reader.tokens(text):
            if each.id != UNKNOWN:
                counts[each.id] += 1
    return counts


def log_prior(prior: Any, mechanism: WordMechanism | None) -> Float64Array | None:
    """``uniform`` is None; frequencies become log-shares. Every word keeps some chance."""
    if isinstance(prior, str):
        if prior != "uniform":
            raise UsageError("a prior is 'uniform', or one frequency for each word of the space")
        return None
    frequencies = np.asarray(prior, dtype=np.float64)
    if mechanism is None or frequencies.shape != (mechanism.space.size,):
        raise UsageError("a prior needs a mechanism, and one frequency for each word of its space")
    if not (np.isfinite(frequencies).all() and (frequencies > 0).all()):
        raise UsageError("frequencies must be positive: add one to every count")
    return np.asarray(np.log(frequencies / frequencies.sum()))
