"""Mechanisms with a stated law: the exact largest log-ratio of pairs of words, from their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.audit.all_pairs import Step
from sottovoce.privacy.audit.claims import TOLERANCE, Claim
from sottovoce.privacy.audit.verdicts import Finding, Points, Verdict, Witness
from sottovoce.spaces.distances import Distances
from sottovoce.types import BoolArray, Float64Array, IntArray

FEW_WORDS = 5000
FEW_STEPS = 4 << 30
"""Every two words are compared where there are no more than this many words, and terms."""
NEAREST = 50
RANDOM = 10
SHARING = 10
SHOWN = 5000
CERTAIN = 1e9
"""Above every finite log-ratio."""


@dataclass(frozen=True, repr=False)
class Losses:
    """Ordered pairs (word, other): D(word || other) and the output that attains it."""

    words: IntArray
    others: IntArray
    losses: Float64Array
    outputs: IntArray
    chances: Float64Array
    """Log-probabilities of that output, (pairs, 2)."""
    together: BoolArray
    """Whether both words have the same possible outputs."""
    deltas: Float64Array
    """What exceeds each claim's epsilon in probability, (pairs, claims)."""
    complete: bool


def pair_losses(
    mechanism: WordMechanism, claims: list[Claim], words: int, rng: Generator, step: Step
) -> Losses:
    """Exact losses of every two words of a small space, or of some words and others.

    Those others are the nearest words, random words, and words near one of its own outputs: they
    are the likeliest to share outputs with it.
    """
    epsilons = [claim.epsilon for claim in claims]
    size = mechanism.space.size
    everything = np.arange(size, dtype=np.int64)
    complete, law = False, None
    if size <= FEW_WORDS:
        law = _law(mechanism, everything)
        sizes = np.isfinite(law).sum(axis=1)
        complete = size * int(sizes.sum()) <= FEW_STEPS
    chosen = everything if complete else some_words(mechanism, words, rng)
    parts = []
    for number, word in enumerate(chosen):
        if complete and law is not None:
            partners, row, rows = everything, law[word], law
        else:
            partners = _partners(mechanism, int(word), rng)
            row, *_ = both = _law(mechanism, np.array([word, *partners]))
            rows = both[1:]
            sizes = np.isfinite(rows).sum(axis=1)
        parts.append(_one(int(word), partners, row, rows, sizes, epsilons))
        if not complete:  # A complete comparison meets the other direction later.
            parts.append(_one(int(word), partners, row, rows, sizes, epsilons, back=True))
        step((number + 1) / len(chosen))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    words_, others, losses, outputs, chances, together, deltas = columns
    return Losses(words_, others, losses, outputs, chances, together, deltas, complete)


def some_words(mechanism: WordMechanism, count: int, rng: Generator) -> IntArray:
    """Words spread evenly over the space's order, which goes by frequency, and jittered."""
    size = mechanism.space.size
    count = min(count, size)
    edges = np.linspace(0, size, count + 1).astype(np.int64)
    return np.asarray(np.unique(rng.integers(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1))))


def neighbours(mechanism: WordMechanism, words: IntArray, count: int) -> IntArray:
    """The nearest other words that may be released, (words, count), nearest first."""
    space = mechanism.space
    count = min(count, len(space.output) - 1)
    points = np.ascontiguousarray(space.vectors[words])
    found = space.output.ids[space.nearest_output.top(points, count + 1)[0]]
    # The word itself is usually among them; words that share its place may push it back.
    is_self = found == words[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return np.asarray(found[~is_self].reshape(len(words), count))


def _partners(mechanism: WordMechanism, word: int, rng: Generator) -> IntArray:
    own = np.array([word])
    chances = np.exp(_law(mechanism, own)[0])
    output = rng.choice(len(chances), size=1, p=chances / chances.sum())
    partners = np.concatenate(
        [
            neighbours(mechanism, own, NEAREST)[0],
            rng.integers(mechanism.space.size, size=RANDOM),
            neighbours(mechanism, output, SHARING)[0],
            output,
        ]
    )
    partners = np.unique(partners)
    return np.asarray(partners[partners != word])


def _law(mechanism: WordMechanism, ids: IntArray) -> Float64Array:
    law = mechanism.log_probabilities(ids)
    assert law is not None  # noqa: S101 - only closed forms come here
    return law


def _one(
    word: int,
    partners: IntArray,
    row: Float64Array,
    rows: Float64Array,
    sizes: IntArray,
    epsilons: list[float],
    back: bool = False,
) -> tuple[IntArray, IntArray, Float64Array, IntArray, Float64Array, BoolArray, Float64Array]:
    """Losses of one word against its partners; ``back``: of the partners against it."""
    own = np.broadcast_to(row, rows.shape)
    mine = np.flatnonzero(np.isfinite(row))
    together = (np.isfinite(rows[:, mine]).sum(axis=1) == len(mine)) & (sizes == len(mine))
    if not back:  # Only outputs that the word can have matter.
        support = mine
        first, second = own[:, support], rows[:, support]
    else:
        support = np.flatnonzero(np.isfinite(rows).any(axis=0))
        first, second = rows[:, support], own[:, support]
    possible = np.isfinite(first)
    difference = np.where(possible, np.where(possible, first, 0.0) - second, -np.inf)
    # Among outputs that the other word cannot have, the likeliest.
    place = np.argmax(np.where(np.isposinf(difference), CERTAIN + first, difference), axis=1)
    at = np.arange(len(rows))
    chances = np.stack([first[at, place], second[at, place]], axis=1)
    deltas = np.empty((len(rows), len(epsilons)))
    for column, epsilon in enumerate(epsilons):
        above = np.exp(first) - np.exp(np.minimum(epsilon + second, 700.0))
        deltas[:, column] = np.minimum(np.maximum(above, 0.0).sum(axis=1), 1.0)
    inputs = np.full(len(rows), word, dtype=np.int64)
    words, others = (partners, inputs) if back else (inputs, partners)
    values = difference[at, place]
    real = words != others
    return (
        words[real],
        others[real],
        values[real],
        support[place][real],
        chances[real],
        together[real],
        deltas[real],
    )


def judge(mechanism: WordMechanism, claims: list[Claim], found: Losses) -> list[Finding]:
    """What the losses say about each claim."""
    return [
        _judge(mechanism, claim, found, found.deltas[:, column])
        for column, claim in enumerate(claims)
    ]


def _judge(mechanism: WordMechanism, claim: Claim, found: Losses, deltas: Float64Array) -> Finding:
    covered = found.together if claim.guarantee.notion == "group" else np.full(len(deltas), True)
    if not covered.any():
        return Finding(
            "exact, some pairs",
            claim.label,
            "NOT REFUTED",
            "none of the pairs looked at is one that the claim speaks of.",
        )
    words, others, losses = found.words[covered], found.others[covered], found.losses[covered]
    far = claim.distances(mechanism, words, others)
    bounds = claim.epsilon * far
    excess = losses - bounds
    worst = int(np.argmax(excess))
    violating = float((excess > TOLERANCE).mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(losses > TOLERANCE, losses / far, 0.0)
    figures: dict[str, float | int | None] = {
        "pairs": len(words),
        "violating_share": violating,
        "infinite_share": float(np.isinf(losses).mean()),
        "worst_excess": float(excess[worst]),
        "tight_epsilon": float(ratios.max()),
        "largest_log_ratio": float(losses.max()),
    }
    if claim.guarantee.notion != "metric":
        figures["delta"] = float(deltas[covered].max())
    name = "exact, all pairs" if found.complete else "exact, some pairs"
    points = _points(far, losses, bounds)
    if violating:
        # Among the worst, the words that are closest: they should be the hardest to tell apart.
        equal = np.flatnonzero(excess == excess[worst])
        apart = Distances(mechanism.space, mechanism.space.output.ids)
        nearest = equal[np.argmin(apart.pairs(words[equal], others[equal]))]
        witness = _witness(mechanism, claim, found, int(np.flatnonzero(covered)[nearest]))
        sentence = f"{violating:.2%} of {len(words):,} ordered pairs exceed their bound"
        if figures["infinite_share"]:
            sentence += f", {figures['infinite_share']:.2%} without limit: an output of the one "
            sentence += "word is impossible for the other"
        if claim.guarantee.notion != "metric":
            sentence += f"; delta at the claimed epsilon is {figures['delta']:.3g}"
        return Finding(name, claim.label, "REFUTED", sentence + ".", witness, figures, points)
    verdict: Verdict = "CONSISTENT" if found.complete else "NOT REFUTED"
    unit = "epsilon really reached is" if found.complete else "largest epsilon reached was"
    sentence = (
        f"{len(words):,} ordered pairs, exactly: none exceeds its bound; the {unit} "
        f"{figures['tight_epsilon']:.4g} of {claim.epsilon:g} claimed."
    )
    return Finding(name, claim.label, verdict, sentence, None, figures, points)


def _witness(mechanism: WordMechanism, claim: Claim, found: Losses, at: int) -> Witness:
    ids = np.array([found.words[at], found.others[at], found.outputs[at]])
    words = mechanism.space.words(ids)
    more, less = np.exp(found.chances[at])
    bound = float(claim.bounds(mechanism, ids[:1], ids[1:2])[0])
    chances = float(more), float(less)
    return Witness(words[0], words[1], f"'{words[2]}'", chances, float(found.losses[at]), bound)


def _points(far: Float64Array, losses: Float64Array, bounds: Float64Array) -> Points:
    finite = np.flatnonzero(np.isfinite(losses))
    some = finite[:: max(1, len(finite) // SHOWN)]
    return Points(far[some], losses[some], bounds[some])
