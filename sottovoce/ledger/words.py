"""Nats in plain words."""

from __future__ import annotations

import math

from sottovoce.ledger.entries import Spent


def in_words(spent: Spent, *, nearest: float | None = None, random: float | None = None) -> str:
    """What was spent, as a sentence.

    ``nearest`` and ``random`` are typical distances, in the metric of the promise, from a word to
    its nearest neighbour and to a random word; for the default space and Euclidean distance they
    are 4.8 and 9.0.
    """
    return f"{_bound(spent, nearest, random)}{_clear(spent.in_clear)}."


def _bound(spent: Spent, nearest: float | None, random: float | None) -> str:
    if spent.nats is None:
        return "Nothing bounds what these releases say"
    said = f"At most {spent.nats:g} nats {spent.unit}"
    if spent.notion != "metric":
        return f"{said} ({_odds(spent.nats)})"
    alternatives = {"its nearest neighbour": nearest, "a random word": random}
    typical = [
        f"{spent.nats * distance:.0f} between a word and {other} ({_odds(spent.nats * distance)})"
        for other, distance in alternatives.items()
        if distance is not None
    ]
    return f"{said}: {', '.join(typical)}" if typical else said


def _odds(nats: float) -> str:
    """How far that many nats can move an observer's odds between two words."""
    powers = nats / math.log(10)
    factor = f"{math.exp(nats):.2g}" if powers < 4 else f"10^{powers:.0f}"
    return f"odds change by a factor of {factor} at most"


def _clear(count: int) -> str:
    if not count:
        return ""
    words = "1 word was" if count == 1 else f"{count} words were"
    return f"; {words} sent in clear, which no number of nats covers"
