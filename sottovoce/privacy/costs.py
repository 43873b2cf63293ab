"""What a mechanism costs at its epsilon: in nats, in distance, in meaning, in answers found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from sottovoce import defaults
from sottovoce.choices import Release
from sottovoce.collections import Collection, demo_log, load_collection
from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.obfuscation import Obfuscator, release_for
from sottovoce.privacy.plausible_deniability import Deniability
from sottovoce.privacy.word_samples import nearest_others
from sottovoce.randomness import as_generator
from sottovoce.text.comparing import comparable
from sottovoce.text.tokens import tokenize
from sottovoce.types import UNKNOWN, BoolArray, Float64Array, IntArray

SENT, DEPTH = defaults.VARIANTS, defaults.DEMO_DEPTH
"""Queries sent for each true one, and documents taken from each answer, as in the demo."""
VARIANTS = 5
"""Releases of each query whose meaning is compared with its own."""
ENCODER = "light"
KNOWN = 0.5
"""Below this share of known words, the demo queries say nothing about a space."""


@dataclass(frozen=True)
class Answers:
    """Searching the demo collection: nDCG@10, and what was said aloud."""

    private: float
    plain: float
    """Without privacy."""
    unrelated: float
    """With unrelated queries instead: what a small collection gives away for nothing."""
    said_aloud: float
    """Share of a query's words that stand somewhere in what was sent."""
    sent: int
    release: Release


@dataclass(frozen=True)
class Cost:
    """What was measured; None where it could not be, and ``notes`` say why."""

    moved: float
    """Euclidean distance of the released word from the true one, mean over words and draws."""
    nearest: float
    """Distance of a word's nearest neighbour, mean over words."""
    nats_nearest: float
    """What one release may tell of a word against its nearest neighbour: median; perhaps inf."""
    nats_random: float
    """The same against a random word."""
    similarity: float | None
    """Cosine of the demo queries and their releases, by the light encoder."""
    answers: Answers | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: null where nothing bounds the nats."""
        fields = asdict(self)
        for key in ("nats_nearest", "nats_random"):
            fields[key] = fields[key] if math.isfinite(fields[key]) else None
        return {**fields, "encoder": ENCODER, "notes": list(self.notes)}


def measure_cost(measured: Deniability, rng: int | SeedSequence | None = None) -> Cost:
    """Measure the costs of the mechanism that was ``measured``."""
    mechanism, words = measured.mechanism, measured.words
    chance = as_generator(rng)
    ids, distances = nearest_others(mechanism.space, words, [1])
    others = chance.integers(mechanism.space.size - 1, size=len(words))
    others += others >= words
    reachable = np.isfinite(distances[:, 0])
    collection, notes = load_collection("demo"), []
    similarity, answers = None, None
    if _share_known(mechanism, collection) < KNOWN:
        notes.append(
            f"the space {mechanism.space.name} knows less than half of the words of the demo "
            "queries: meaning and answers were not measured"
        )
    else:
        try:
            similarity = _similarity(mechanism, collection, rng)
            answers = _answers(mechanism, collection, rng, chance)
        except SottovoceError as error:
            notes.append(f"not all was measured: {error}")
    return Cost(
        moved=float(measured.moved.mean()),
        nearest=float(distances[reachable, 0].mean()) if reachable.any() else math.inf,
        nats_nearest=float(np.median(nats(mechanism, words, ids[:, 0]))),
        nats_random=float(np.median(nats(mechanism, words, others))),
        similarity=similarity,
        answers=answers,
        notes=tuple(notes),
    )


def nats(mechanism: WordMechanism, words: IntArray, others: IntArray) -> Float64Array:
    """The most that one release may tell words apart from others, one by one, as guaranteed.

    Infinite where nothing is guaranteed, and between groups.
    """
    promise = mechanism.guarantee
    if promise.notion == "metric":
        distances = mechanism.distances(words, others)
    elif promise.notion == "group":
        distances = np.where(_same_group(mechanism, words, others), 1.0, np.inf)
    else:
        distances = np.ones(len(words))
    return np.array([promise.loss(float(distance)) for distance in distances])


def _same_group(mechanism: WordMechanism, words: IntArray, others: IntArray) -> BoolArray:
    """Whether the same words may be released for both."""
    laws = map(mechanism.log_probabilities, np.stack([words, others], axis=1))
    return np.array([law is not None and np.array_equal(*np.isfinite(law)) for law in laws], bool)


def _share_known(mechanism: WordMechanism, collection: Collection) -> float:
    """The share of the words of the demo queries that the space knows."""
    words = {
        comparable(token.surface)
        for text in collection.queries.values()
        for token in tokenize(text)
    }
    return float((mechanism.space.ids(sorted(words)) != UNKNOWN).mean())


def _similarity(
    mechanism: WordMechanism, collection: Collection, rng: int | SeedSequence | None
) -> float:
    from sottovoce.encoders import load_encoder

    encoder = load_encoder(ENCODER)
    obfuscator = Obfuscator(mechanism, n=VARIANTS, rng=rng)
    results = list(obfuscator.obfuscate(collection.queries.values()))
    true = np.repeat(encoder.encode([result.text for result in results]), VARIANTS, axis=0)
    released = encoder.encode([variant for result in results for variant in result.variants])
    return float((true.astype(np.float64) * released).sum(axis=1).mean())


def _answers(
    mechanism: WordMechanism,
    collection: Collection,
    rng: int | SeedSequence | None,
    chance: Generator,
) -> Answers:
    from sottovoce.engines import BM25
    from sottovoce.evaluation import with_privacy, with_unrelated_queries, without_privacy
    from sottovoce.search import PrivateSearch, load_reranker

    release = release_for(mechanism, None)
    engine, reranker = BM25(collection.documents), load_reranker(ENCODER)
    obfuscator = Obfuscator(mechanism, n=SENT, release=release, rng=rng)
    search = PrivateSearch(obfuscator, engine, reranker, depth=DEPTH)
    aloud: list[float] = []
    private = with_privacy(
        collection, search, lambda result: aloud.append(result.said_aloud / max(1, result.words))
    )
    plain = without_privacy(collection, engine, reranker, DEPTH)
    unrelated = with_unrelated_queries(
        collection, engine, reranker, demo_log(), SENT, DEPTH, chance
    )
    return Answers(
        private=private.ndcg.mean,
        plain=plain.ndcg.mean,
        unrelated=unrelated.ndcg.mean,
        said_aloud=float(np.mean(aloud)),
        sent=SENT,
        release=release,
    )
