"""Pooling: one list of all documents that several queries found, each document once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sottovoce.choices import POOLINGS
from sottovoce.engines.base import Hit
from sottovoce.errors import UsageError, did_you_mean

RRF_K = 60


class Pooled(NamedTuple):
    """A document of the pool; ``found_by`` are the numbers of the answers that hold it."""

    doc_id: str
    title: str
    snippet: str
    score: float
    found_by: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Pooled(score={self.score:g}, found by {len(self.found_by)})"


class _Place(NamedTuple):
    """Where a document stands in one answer; the least place is the best."""

    rank: int
    answer: int
    gain: float
    hit: Hit


def pool(answers: Sequence[Sequence[Hit]], method: str = "union") -> list[Pooled]:
    """Pool ranked answers; a document that is twice in one answer counts once, where it is first.

    ``union``: the score is 1 / best rank. ``rrf``: the sum of 1 / (60 + rank). ``combsum``: the sum
    of the engine's scores, those of each answer stretched to 0 ... 1. Ties: the better best rank,
    then the earlier answer with that rank. Title and snippet are those of this best place.
    """
    if method not in POOLINGS:
        hint = did_you_mean(method, POOLINGS)
        raise UsageError(
            f"no pooling method '{method}'{hint and f' ({hint})'}: use {', '.join(POOLINGS)}"
        )
    places: dict[str, list[_Place]] = {}
    for number, answer in enumerate(answers):
        distinct: dict[str, Hit] = {}
        for hit in answer:
            distinct.setdefault(hit.doc_id, hit)
        hits = list(distinct.values())
        for rank, (hit, gain) in enumerate(zip(hits, _gains(hits, method), strict=True), start=1):
            places.setdefault(hit.doc_id, []).append(_Place(rank, number, gain, hit))
    total = max if method == "union" else math.fsum
    scored = [
        (total([place.gain for place in document_places]), document_places)
        for document_places in places.values()
    ]
    scored.sort(key=lambda pair: (-pair[0], min(pair[1])[:2]))
    return [_pooled(score, document_places) for score, document_places in scored]


def _pooled(score: float, places: list[_Place]) -> Pooled:
    best = min(places).hit
    numbers = tuple(place.answer for place in places)
    return Pooled(best.doc_id, best.title, best.snippet, score, numbers)


def _gains(hits: Sequence[Hit], method: str) -> list[float]:
    """What each hit of an answer, best first, adds to the score of its document."""
    if method == "union":
        return [1 / rank for rank in range(1, len(hits) + 1)]
    if method == "rrf":
        return [1 / (RRF_K + rank) for rank in range(1, len(hits) + 1)]
    scores = [hit.score for hit in hits]
    if not all(map(math.isfinite, scores)):
        raise UsageError("combsum needs scores that are finite numbers: use rrf or union")
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    # An answer whose scores are all equal, or a single hit, has only best documents.
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
