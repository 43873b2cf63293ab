"""Query inference by doing it again: which query of a log leads to these very variants.

For mechanisms that compute what they release (``aea``, ``fea``, ``versatile``, ``incognito``).
Whoever has the same sources lets the mechanism rewrite likely queries, the likeliest first by
what they find and then by their words, and compares what comes out with what was seen:

    score(q) = |S ∩ R(q)| / |S| + cos(words of S, words of R(q)),

S the variants seen, R(q) those made of q. A query that leads to exactly these variants ends the
search: it is named. All that were not looked at come after those that were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import nextafter, sqrt

import numpy as np

from sottovoce.mechanisms.base import TextMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.attacks.cosine import originals_in
from sottovoce.privacy.attacks.queries import Scored
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.randomness import Randomness
from sottovoce.text import TextPipeline
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import words
from sottovoce.types import IntArray, Progress

NAME = "remade"
LIKELY = 100
"""Queries that are looked at, at most, from each list of likely ones."""
EXACTLY = 2.0
"""The score of the very same variants."""


def infer_by_remaking(
    releases: Sequence[Released],
    log: QueryLog,
    mechanism: TextMechanism,
    pipeline: TextPipeline,
    likely: Sequence[Sequence[IntArray]],
    *,
    add_originals: bool = False,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Inference:
    """Attack every release that has variants, all of them seen.

    likely
        For each release lists of queries of the log by number, which are gone through one after
        the other.
    """
    attacked = [release for release in releases if release.variants]
    targets, beside = originals_in(log, [release.text for release in attacked], add_originals)
    queries = [*log.queries, *beside]
    ranked = []
    for number, (release, target) in enumerate(zip(attacked, targets.tolist(), strict=True)):
        seen = Seen(release.variants)
        obfuscator = Obfuscator(mechanism, n=len(release.variants), pipeline=pipeline, rng=rng)
        scores: dict[int, float] = {}
        for candidate in dict.fromkeys(np.concatenate(likely[number]).tolist()):
            (remade,) = obfuscator.obfuscate([queries[candidate]])
            scores[candidate] = seen.score(remade.variants)
            if scores[candidate] >= EXACTLY:
                break
        # Those that were not looked at are all alike.
        scored = Scored(np.array([*scores], dtype=np.int64), np.array([*scores.values()]))
        rank, ties = scored.rank(target, len(queries))
        ranked.append(Attacked(release.id, len(release.variants), rank, ties))
        if progress is not None:
            progress(number + 1, len(attacked))
    return Inference(
        attack=NAME,
        knows=f"a log of {len(queries):,} queries with the true one in it, and the mechanism with "
        "all that it works on: lets it rewrite the likeliest of them",
        log=len(queries),
        added=len(beside),
        unreleased=len(releases) - len(attacked),
        depth=DEPTH,
        queries=tuple(ranked),
    )


class Seen:
    """The variants of a release, and how much others are like them."""

    def __init__(self, variants: Sequence[str]) -> None:
        self._texts = set(map(folded_text, variants))
        self._words = _bag(self._texts)

    def score(self, remade: Sequence[str]) -> float:
        """Between 0 and 2, which only the very same variants have."""
        texts = set(map(folded_text, remade))
        if texts == self._texts:
            return EXACTLY
        if not texts:
            return 0.0
        bag = _bag(texts)
        product = sum(count * bag[word] for word, count in self._words.items())
        lengths = _length(self._words) * _length(bag)
        alike = product / lengths if lengths else 0.0
        return min(len(texts & self._texts) / len(self._texts) + alike, nextafter(EXACTLY, 0))


def _bag(texts: set[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text))


def _length(bag: Counter[str]) -> float:
    return sqrt(sum(count * count for count in bag.values()))
