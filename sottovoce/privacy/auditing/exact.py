"""Mechanisms with a stated law: the exact largest log-ratio of pairs of words.

From the words' rows of probabilities in general (:func:`pair_losses`, :func:`judge`); for claims
about groups of words, within every group (:func:`within_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.auditing.findings import (
    TOLERANCE,
    Claim,
    Figures,
    Finding,
    Points,
    Step,
    Verdict,
    Witness,
)
from sottovoce.privacy.word_samples import euclidean, nearest_others, sample_words
from sottovoce.spaces.space import WordSpace
from sottovoce.types import BoolArray, Float64Array, IntArray

FEW_WORDS = 5000
FEW_STEPS = 4 << 30
"""Every two words are compared where there are no more than this many words, and terms."""
NEAREST, RANDOM, SHARING = 50, 10, 10
"""Partners of a word: near it, anywhere, and near one of its outputs."""
SHOWN = 5000
"""Pairs that a figure shows, about."""
CERTAIN = 1e9
"""Above every finite log-ratio."""
WORDS_AT_A_TIME = 4096
GROUPS_SHOWN = 20
"""Groups whose pairs a figure shows."""
WITHIN_GROUPS = "exact, within groups"

Laws = list[tuple[IntArray, Float64Array]]
"""For each word its possible outputs, ascending, and their log-probabilities."""


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
    complete: bool = False
    """Whether these are all pairs of the space."""

    @classmethod
    def joined(cls, parts: list[Losses], complete: bool) -> Losses:
        columns = {
            array.name: np.concatenate([getattr(part, array.name) for part in parts])
            for array in fields(cls)
            if array.name != "complete"
        }
        return cls(**columns, complete=complete)


def pair_losses(
    mechanism: WordMechanism, claims: list[Claim], words: int, rng: Generator, step: Step
) -> Losses:
    """Exact losses of every two words of a small space, or of some words and their partners."""
    epsilons = [claim.epsilon for claim in claims]
    parts = []
    law = _complete_law(mechanism)
    if law is not None:
        everything, sizes = np.arange(len(law)), np.isfinite(law).sum(axis=1)
        for word, row in enumerate(law):
            parts.append(_losses(word, everything, row, law, sizes, epsilons))
            step((word + 1) / len(law))
        return Losses.joined(parts, complete=True)
    inputs = sample_words(mechanism.space, words, rng)
    for number, (word, partners) in enumerate(
        zip(inputs.tolist(), _partners(mechanism, inputs, rng), strict=True)
    ):
        row, *_ = both = law_of(mechanism, np.array([word, *partners]))
        rows, sizes = both[1:], np.isfinite(both[1:]).sum(axis=1)
        for backwards in (False, True):
            parts.append(_losses(word, partners, row, rows, sizes, epsilons, backwards))
        step((number + 1) / len(inputs))
    return Losses.joined(parts, complete=False)


def close_words(space: WordSpace, words: IntArray, count: int) -> IntArray:
    """The ``count`` nearest other words, nearest first; fewer where there are not as many."""
    return nearest_others(space, words, range(1, min(count, len(space.output) - 1) + 1))[0]


def _complete_law(mechanism: WordMechanism) -> Float64Array | None:
    """The rows of all words, if it does not take too long to compare every two of them."""
    size = mechanism.space.size
    if size > FEW_WORDS:
        return None
    law = law_of(mechanism, np.arange(size, dtype=np.int64))
    return law if size * int(np.isfinite(law).sum()) <= FEW_STEPS else None


def law_of(mechanism: WordMechanism, ids: IntArray) -> Float64Array:
    """The exact log-probabilities, of a mechanism that has them."""
    law = mechanism.log_probabilities(ids)
    assert law is not None  # noqa: S101 - only mechanisms with a law come here
    return law


def _partners(mechanism: WordMechanism, words: IntArray, rng: Generator) -> Iterator[IntArray]:
    """For each word the nearest words, random words, and words near one of its own outputs.

    The last ones are the likeliest to share outputs with it.
    """
    outputs, random = np.empty_like(words), np.empty((len(words), RANDOM), dtype=np.int64)
    for row, word in enumerate(words):
        chances = np.exp(law_of(mechanism, np.array([word]))[0])
        outputs[row] = rng.choice(len(chances), size=1, p=chances / chances.sum())[0]
        random[row] = rng.integers(mechanism.space.size, size=RANDOM)
    near = close_words(mechanism.space, words, NEAREST)
    sharing = close_words(mechanism.space, outputs, SHARING)
    for row, word in enumerate(words):
        partners = np.unique([*near[row], *random[row], *sharing[row], outputs[row]])
        yield partners[partners != word]


def _losses(
    word: int,
    partners: IntArray,
    row: Float64Array,
    rows: Float64Array,
    sizes: IntArray,
    epsilons: list[float],
    backwards: bool = False,
) -> Losses:
    """Losses of one word against its partners; ``backwards``: of the partners against it."""
    own_row = np.broadcast_to(row, rows.shape)
    own_outputs = np.flatnonzero(np.isfinite(row))
    shared = np.isfinite(rows[:, own_outputs]).sum(axis=1)
    together = (shared == len(own_outputs)) & (sizes == len(own_outputs))
    # Only outputs that the first word of a pair can have matter.
    if backwards:
        support = np.flatnonzero(np.isfinite(rows).any(axis=0))
        first, second = rows[:, support], own_row[:, support]
    else:
        support = own_outputs
        first, second = own_row[:, support], rows[:, support]
    possible = np.isfinite(first)
    difference = np.where(possible, np.where(possible, first, 0.0) - second, -np.inf)
    # Among outputs that the other word cannot have, the likeliest.
    place = np.argmax(np.where(np.isposinf(difference), CERTAIN + first, difference), axis=1)
    at = np.arange(len(rows))
    # Delta: by how much the first word's probabilities exceed e^epsilon times the second's.
    deltas = np.empty((len(rows), len(epsilons)))
    for column, epsilon in enumerate(epsilons):
        above = np.exp(first) - np.exp(np.minimum(epsilon + second, 700.0))
        deltas[:, column] = np.minimum(np.maximum(above, 0.0).sum(axis=1), 1.0)
    inputs = np.full(len(rows), word, dtype=np.int64)
    words, others = (partners, inputs) if backwards else (inputs, partners)
    real = words != others
    return Losses(
        words[real],
        others[real],
        difference[at, place][real],
        support[place][real],
        np.stack([first[at, place], second[at, place]], axis=1)[real],
        together[real],
        deltas[real],
    )


def judge(mechanism: WordMechanism, claims: list[Claim], pairs: Losses) -> list[Finding]:
    """What the losses say about each claim."""
    return [
        _judge(mechanism, claim, pairs, pairs.deltas[:, column])
        for column, claim in enumerate(claims)
    ]


def _judge(mechanism: WordMechanism, claim: Claim, pairs: Losses, deltas: Float64Array) -> Finding:
    covered = pairs.together if claim.guarantee.notion == "group" else np.full(len(deltas), True)
    if not covered.any():
        sentence = "none of the pairs looked at is one that the claim speaks of."
        return Finding("exact, some pairs", claim.label, "NOT REFUTED", sentence)
    words, others, losses = pairs.words[covered], pairs.others[covered], pairs.losses[covered]
    far = claim.distances(mechanism, words, others)
    bounds = claim.epsilon * far
    excess = losses - bounds
    worst = int(np.argmax(excess))
    violating = float((excess > TOLERANCE).mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(losses > TOLERANCE, losses / far, 0.0)
    figures: Figures = {
        "pairs": len(words),
        "violating_share": violating,
        "infinite_share": float(np.isinf(losses).mean()),
        "worst_excess": float(excess[worst]),
        "tight_epsilon": float(ratios.max()),
        "largest_log_ratio": float(losses.max()),
    }
    if not claim.is_metric:
        figures["delta"] = float(deltas[covered].max())
    name = "exact, all pairs" if pairs.complete else "exact, some pairs"
    finite = np.flatnonzero(np.isfinite(losses))
    shown = finite[:: max(1, len(finite) // SHOWN)]
    points = Points(far[shown], losses[shown], bounds[shown])
    if violating:
        # Among the worst, the words that are closest: they should be the hardest to tell apart.
        equal = np.flatnonzero(excess == excess[worst])
        nearest = equal[np.argmin(euclidean(mechanism.space, words[equal], others[equal]))]
        witness = _witness(mechanism, claim, pairs, int(np.flatnonzero(covered)[nearest]))
        sentence = f"{violating:.2%} of {len(words):,} ordered pairs exceed their bound"
        if figures["infinite_share"]:
            sentence += f", {figures['infinite_share']:.2%} without limit: an output of the one "
            sentence += "word is impossible for the other"
        if not claim.is_metric:
            sentence += f"; delta at the claimed epsilon is {figures['delta']:.3g}"
        return Finding(name, claim.label, "REFUTED", sentence + ".", witness, figures, points)
    verdict: Verdict = "CONSISTENT" if pairs.complete else "NOT REFUTED"
    unit = "epsilon really reached is" if pairs.complete else "largest epsilon reached was"
    sentence = (
        f"{len(words):,} ordered pairs, exactly: none exceeds its bound; the {unit} "
        f"{figures['tight_epsilon']:.4g} of {claim.epsilon:g} claimed."
    )
    return Finding(name, claim.label, verdict, sentence, None, figures, points)


def _witness(mechanism: WordMechanism, claim: Claim, pairs: Losses, at: int) -> Witness:
    ids = np.array([pairs.words[at], pairs.others[at], pairs.outputs[at]])
    more, less = np.exp(pairs.chances[at]).tolist()
    bound = float(claim.bounds(mechanism, ids[:1], ids[1:2])[0])
    return Witness.of_words(mechanism.space, ids, (more, less), float(pairs.losses[at]), bound)


def within_groups(mechanism: BoxMechanism, claim: Claim, step: Step) -> Finding:
    """The largest log-ratio inside any group; across groups nothing is claimed."""
    laws = _sorted_laws(mechanism, step)
    # Words with the same possible outputs are a group.
    members: dict[bytes, list[int]] = {}
    for word, (outputs, _) in enumerate(laws):
        members.setdefault(outputs.tobytes(), []).append(word)
    groups = [np.array(group) for group in members.values()]
    overlap = _overlap(mechanism, claim, laws, groups)
    if overlap is not None:
        return overlap
    pairs = sum(len(group) * (len(group) - 1) for group in groups)
    largest, witness = 0.0, None
    for group in groups:
        rows = np.array([laws[word][1] for word in group])
        spread = rows.max(axis=0) - rows.min(axis=0)
        place = int(np.argmax(spread))
        if (value := float(spread[place])) > largest:
            column, largest = rows[:, place], value
            ids = group[np.argmax(column)], group[np.argmin(column)], laws[group[0]][0][place]
            chances = float(np.exp(column.max())), float(np.exp(column.min()))
            witness = Witness.of_words(mechanism.space, ids, chances, largest, claim.epsilon)
    figures: Figures = {
        "groups": len(groups),
        "pairs": pairs,
        "tight_epsilon": largest,
        "worst_excess": largest - claim.epsilon,
    }
    points = _group_points(mechanism, claim, laws, groups[:GROUPS_SHOWN])
    extent = f"{pairs:,} ordered pairs inside {len(groups):,} groups, exactly:"
    if largest > claim.epsilon + TOLERANCE:
        sentence = f"{extent} the largest log-ratio exceeds the claim."
        return Finding(WITHIN_GROUPS, claim.label, "REFUTED", sentence, witness, figures, points)
    sentence = (
        f"{extent} none exceeds its bound; the epsilon really reached is {largest:.4g} of "
        f"{claim.epsilon:g} claimed. Across groups nothing is claimed, and nothing holds: the "
        "group is released."
    )
    return Finding(WITHIN_GROUPS, claim.label, "CONSISTENT", sentence, None, figures, points)


def _sorted_laws(mechanism: BoxMechanism, step: Step) -> Laws:
    size, laws = mechanism.space.size, []
    for start in range(0, size, WORDS_AT_A_TIME):
        for ids, law in mechanism.laws(np.arange(start, min(start + WORDS_AT_A_TIME, size))):
            order = np.argsort(ids)
            laws.append((ids[order], law[order]))
        step(len(laws) / size)
    return laws


def _group_points(
    mechanism: BoxMechanism, claim: Claim, laws: Laws, groups: list[IntArray]
) -> Points:
    """Every two words of some groups: how far apart, the largest log-ratio, the bound."""
    far, losses = [np.empty(0)], [np.empty(0)]
    for group in groups:
        rows = np.array([laws[word][1] for word in group])
        one, two = np.nonzero(~np.eye(len(group), dtype=bool))
        far.append(mechanism.distances(group[one], group[two]))
        losses.append((rows[one] - rows[two]).max(axis=1))
    distances = np.concatenate(far)
    return Points(distances, np.concatenate(losses), np.full(len(distances), claim.epsilon))


def _overlap(
    mechanism: BoxMechanism, claim: Claim, laws: Laws, groups: list[IntArray]
) -> Finding | None:
    """Two sets that share an output without being equal are no groups: no bound can hold."""
    owner = np.full(mechanism.space.size, -1)
    for group in groups:
        one, outputs = int(group[0]), laws[group[0]][0]
        taken = outputs[owner[outputs] >= 0]
        if len(taken):
            # An output of the one word that the other cannot have, or the other way round.
            other = int(owner[taken[0]])
            if not len(np.setdiff1d(outputs, laws[other][0])):
                one, other = other, one
            outputs, law = laws[one]
            missing = np.setdiff1d(outputs, laws[other][0])[0]
            chances = float(np.exp(law[np.searchsorted(outputs, missing)])), 0.0
            ids = (one, other, missing)
            witness = Witness.of_words(mechanism.space, ids, chances, np.inf, claim.epsilon)
            sentence = "the sets of outputs overlap without being equal: they are no groups."
            return Finding(WITHIN_GROUPS, claim.label, "REFUTED", sentence, witness)
        owner[outputs] = group[0]
    return None
