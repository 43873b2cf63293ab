"""Whether the best guess has the subject of the truth, and what the answers together show.

Two texts have the same subject if an encoder finds them more alike than 95 % of random pairs. A
blind guess has the same subject in 5 % of the cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.encoders.base import Encoder, kept_vectors
from sottovoce.engines.base import Hit
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.words import Share
from sottovoce.randomness import Randomness, as_generator
from sottovoce.search.pooling import pool
from sottovoce.text.words import FUNCTION_WORDS
from sottovoce.types import BoolArray, Float32Array, Float64Array, IntArray

ALIKE = 0.95
"""Pairs more alike than this share of random pairs have the same subject."""
RANDOM_PAIRS = 5000
DEPTH = 10
"""How many documents of a list count."""


@dataclass(frozen=True)
class Subjects:
    """How many guesses have the subject of the truth, and from which cosine on they do."""

    encoder: str
    threshold: float
    cosines: tuple[float, ...]

    @property
    def same(self) -> Share:
        """The share of the texts; a blind guess reaches 1 - ``ALIKE``."""
        return Share.of_texts([cosine > self.threshold for cosine in self.cosines])


def same_subjects(
    truths: Sequence[str],
    guesses: Sequence[str],
    encoder: Encoder,
    background: Sequence[str],
    rng: Randomness = 0,
) -> Subjects:
    """Compare guesses with truths; blank guesses are never right.

    guesses
        The log query named first, or the content words that were guessed (:func:`as_query`).
    background
        Texts of the same kind, such as the log, of which random pairs are made.
    rng
        Chooses the pairs; the same by default, as no privacy depends on it.
    """
    return Subjects(
        encoder=encoder.name,
        threshold=alike_from(encoder, background, rng),
        cosines=tuple(cosines(truths, guesses, encoder).tolist()),
    )


def alike_from(encoder: Encoder, background: Sequence[str], rng: Randomness = 0) -> float:
    """The cosine from which on two texts have the same subject."""
    if len(set(background)) < 2:
        raise UsageError("random pairs need at least two different texts: give a larger log")
    generator = as_generator(rng)
    first = generator.integers(len(background), size=RANDOM_PAIRS)
    # Another text than the first: a step of at least one and less than all.
    second = (first + generator.integers(1, len(background), size=RANDOM_PAIRS)) % len(background)
    drawn, places = np.unique(np.stack([first, second]), return_inverse=True)
    kept = kept_vectors(encoder, background)
    texts = [background[at] for at in drawn.tolist()]
    vectors = encoder.encode(texts) if kept is None else kept[drawn]
    blank = np.array([not text.strip() for text in texts])
    random_pairs = _products(vectors, blank, *places.reshape(2, -1))
    return float(np.quantile(random_pairs, ALIKE))


def as_query(words: Sequence[str]) -> str:
    """The content words among guessed ones, as a query."""
    return " ".join(word for word in words if word not in FUNCTION_WORDS)


def cosines(first: Sequence[str], second: Sequence[str], encoder: Encoder) -> Float64Array:
    """Cosines of pairs of texts; -1 where one of them is blank."""
    texts = [*first, *second]
    blank = np.array([not text.strip() for text in texts], dtype=bool)
    places = np.arange(len(texts)).reshape(2, -1)
    return _products(encoder.encode(texts), blank, *places)


def _products(
    vectors: Float32Array, blank: BoolArray, first: IntArray, second: IntArray
) -> Float64Array:
    """Inner products of pairs of rows; -1 where one of them stands for a blank text."""
    exact = vectors.astype(np.float64)
    products = (exact[first] * exact[second]).sum(axis=1)
    return np.where(blank[first] | blank[second], -1.0, products)


def fused_top(answers: Sequence[Sequence[str]], depth: int = DEPTH) -> list[str]:
    """The first documents of all variants' answers, fused by reciprocal ranks: what engines see."""
    hits = [[Hit(doc_id, 0.0) for doc_id in answer] for answer in answers]
    return [document.doc_id for document in pool(hits, "rrf")[:depth]]


def shown_by_answers(
    true_answer: Sequence[str], answers: Sequence[Sequence[str]], depth: int = DEPTH
) -> float | None:
    """The share of the true query's first documents that are among the first of the fused list.

    None where the true query finds nothing.
    """
    wanted = set(true_answer[:depth])
    return len(wanted & set(fused_top(answers, depth))) / len(wanted) if wanted else None
