"""Exponential mechanisms, every two words: the log-ratio follows from the normalisers alone.

With p(y|w) = exp(-epsilon c(|w - y|) / 2) / Z(w), the output that tells w from w' best is w itself:
D(w || w') = epsilon c(|w - w'|) / 2 + log Z(w') - log Z(w). That needs a cost c that is 0 at 0,
never decreases and is subadditive; where w may not be released it is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.privacy.audit.claims import TOLERANCE, Claim
from sottovoce.privacy.audit.verdicts import Finding, Points, Verdict, Witness
from sottovoce.spaces.distances import WORDS_AT_A_TIME, Distances
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float64Array, IntArray

Result = TypeVar("Result")
Step = Callable[[float], None]
"""Told the share of the work that is done."""

CHECKED_ROWS = 5
"""Words whose full rows are compared with the formula."""
CHECKED_PAIRS = 64
"""Pairs looked at row by row, where the formula is only an upper bound and exceeds the claim."""
POINTS_PER_BLOCK = 64
GRID = 65


@dataclass(frozen=True)
class Extreme:
    """The largest value of something, and the pair that has it: (value, w, w')."""

    value: float = -np.inf
    word: int = -1
    other: int = -1


@dataclass
class Summary:
    """What is kept of a block of pairs."""

    excess: Extreme
    ratio: Extreme
    loss: Extreme
    violating: int
    points: Float64Array


def all_pairs(
    mechanism: ExponentialMechanism, claim: Claim, step: Step, words: IntArray | None = None
) -> Finding | None:
    """The exact audit over every two words, or every two of some words in ascending order.

    None where the formula does not apply.
    """
    inputs = np.arange(mechanism.space.size) if words is None else words
    if claim.guarantee.notion == "metric" and claim.guarantee.metric != "euclidean":
        return None
    if claim.guarantee.notion == "group" or not _formula_applies(mechanism):
        return None
    normalisers = log_normalisers(mechanism, inputs, lambda share: step(share * 0.6))
    if not _rows_agree(mechanism, inputs, normalisers):
        return None
    found = _compare(mechanism, claim, inputs, normalisers, lambda share: step(0.6 + share * 0.4))
    return _finding(mechanism, claim, len(inputs), found)


def log_normalisers(mechanism: ExponentialMechanism, words: IntArray, step: Step) -> Float64Array:
    """The logarithm of Z for each word."""
    targets = Distances(mechanism.space, mechanism.released)
    half = 0.5 * mechanism.epsilon
    inside = len(mechanism.released) == mechanism.space.size

    def one(words: IntArray) -> Float64Array:
        shift = np.zeros(len(words))
        if not inside:
            # A word that may be released costs 0 itself; others need their nearest one's cost.
            nearest = np.min([tile.min(axis=1) for _, tile in targets.tiles(words)], axis=0)
            shift = half * mechanism.cost(nearest)
        total = np.zeros(len(words))
        for _, tile in targets.tiles(words):
            scores = mechanism.cost(tile) * -half
            scores += shift[:, None]
            total += np.exp(scores, out=scores).sum(axis=1)
        return np.asarray(np.log(total) - shift)

    return np.concatenate(_in_turns(one, _blocks(words), step))


def _compare(
    mechanism: ExponentialMechanism,
    claim: Claim,
    inputs: IntArray,
    normalisers: Float64Array,
    step: Step,
) -> list[Summary]:
    """D of every pair in its larger direction, block by block, each pair once."""
    half, metric = 0.5 * mechanism.epsilon, claim.guarantee.notion == "metric"

    def one(words: IntArray) -> Summary:
        first = int(np.searchsorted(inputs, words[0]))
        own = normalisers[first : first + len(words), None]
        kept = Summary(Extreme(), Extreme(), Extreme(), 0, np.empty((0, 2)))
        for start, far in Distances(mechanism.space, inputs[first:]).tiles(words):
            rest = slice(first + start, first + start + far.shape[1])
            loss = mechanism.cost(far) * half
            loss += np.abs(normalisers[rest] - own)
            if start == 0:
                loss[inputs[rest] <= words[:, None]] = -np.inf
            bound = claim.epsilon * far if metric else claim.epsilon
            _keep(kept, far, loss, bound, words, inputs[rest])
            if not len(kept.points):
                flat = np.linspace(0, far.size - 1, POINTS_PER_BLOCK).astype(np.int64)
                kept.points = np.stack([far.ravel()[flat], loss.ravel()[flat]], axis=1)
        return kept

    # Early blocks meet more words than late ones: alternate, so that all turns take about as long.
    blocks = _blocks(inputs)
    mixed = [blocks[i // 2 if i % 2 == 0 else -1 - i // 2] for i in range(len(blocks))]
    return _in_turns(one, mixed, step)


def _keep(
    kept: Summary,
    far: Float64Array,
    loss: Float64Array,
    bound: Float64Array | float,
    words: IntArray,
    others: IntArray,
) -> None:
    def larger(values: Float64Array, than: Extreme) -> Extreme:
        place = int(np.argmax(values))
        value = float(values.ravel()[place])
        if value <= than.value:
            return than
        row, column = divmod(place, values.shape[1])
        return Extreme(value, int(words[row]), int(others[column]))

    kept.loss = larger(loss, kept.loss)
    excess = loss - bound
    kept.excess = larger(excess, kept.excess)
    kept.violating += int(np.count_nonzero(excess > TOLERANCE))
    # Words that share a place must share their law; rounding alone is no ratio.
    np.divide(loss, far, out=excess, where=far > 0)
    excess[far == 0] = np.where(loss[far == 0] > TOLERANCE, np.inf, -np.inf)
    kept.ratio = larger(excess, kept.ratio)


def _finding(
    mechanism: ExponentialMechanism, claim: Claim, size: int, found: list[Summary]
) -> Finding:
    pairs = size * (size - 1)
    excess = max((each.excess for each in found), key=lambda extreme: extreme.value)
    ratio = max((each.ratio for each in found), key=lambda extreme: extreme.value)
    loss = max((each.loss for each in found), key=lambda extreme: extreme.value)
    violating = sum(each.violating for each in found)
    exact = len(mechanism.released) == mechanism.space.size
    figures: dict[str, float | int | None] = {
        "pairs": pairs,
        "violating_share": violating / max(1, pairs // 2),
        "worst_excess": excess.value,
        "tight_epsilon": ratio.value if claim.guarantee.notion == "metric" else loss.value,
        "largest_log_ratio": loss.value,
    }
    shown = _points(claim, np.concatenate([each.points for each in found]))
    said = (
        f"{pairs:,} ordered pairs of {size:,} words, {'exactly' if exact else 'by an upper bound'}:"
    )
    tight = figures["tight_epsilon"]
    complete = size == mechanism.space.size
    name = f"{'exact' if exact else 'bounded'}, {'all' if complete else 'some'} pairs"
    consistent: Verdict = "CONSISTENT" if complete else "NOT REFUTED"
    if excess.value <= TOLERANCE:
        sentence = f"{said} none exceeds its bound; the epsilon really reached is "
        sentence += f"{'' if exact else 'at most '}{tight:.4g}"
        sentence += f" of {claim.epsilon:g} claimed."
        return Finding(name, claim.label, consistent, sentence, figures=figures, points=shown)
    worst = sorted(found, key=lambda each: -each.excess.value)[:CHECKED_PAIRS]
    witness = next(filter(None, (_witness(mechanism, claim, each.excess) for each in worst)), None)
    if witness is None:
        sentence = (
            f"{said} it exceeds the claim, but the {len(worst)} worst pairs looked at do not."
        )
        return Finding(name, claim.label, "NOT REFUTED", sentence, figures=figures, points=shown)
    sentence = f"{said} {figures['violating_share']:.2%} of the pairs exceed their bound."
    return Finding(name, claim.label, "REFUTED", sentence, witness, figures, shown)


def _witness(mechanism: ExponentialMechanism, claim: Claim, pair: Extreme) -> Witness | None:
    """The pair's best output from its full rows, in its larger direction; None if it is within."""
    if pair.value <= TOLERANCE:
        return None
    law = mechanism.log_probabilities(np.array([pair.word, pair.other]))
    possible = np.isfinite(law).all(axis=0)
    difference = np.where(possible, law[0] - np.where(possible, law[1], 0.0), 0.0)
    output = int(np.argmax(np.abs(difference)))
    one, other = (0, 1) if difference[output] > 0 else (1, 0)
    ids = np.array([pair.word, pair.other])
    bound = float(claim.bounds(mechanism, ids[:1], ids[1:])[0])
    if abs(difference[output]) <= bound + TOLERANCE:
        return None
    words = mechanism.space.words(np.array([ids[one], ids[other], output]))
    chances = float(np.exp(law[one, output])), float(np.exp(law[other, output]))
    return Witness(
        words[0], words[1], f"'{words[2]}'", chances, float(abs(difference[output])), bound
    )


def _points(claim: Claim, points: Float64Array) -> Points:
    points = points[np.isfinite(points).all(axis=1)]
    metric = claim.guarantee.notion == "metric"
    bounds = claim.epsilon * points[:, 0] if metric else np.full(len(points), claim.epsilon)
    return Points(points[:, 0], points[:, 1], bounds)


def _formula_applies(mechanism: ExponentialMechanism) -> bool:
    """Whether the cost is 0 at 0, never decreases and is subadditive, on a grid of distances."""
    norms = np.sqrt(np.einsum("ij,ij->i", mechanism.space.vectors, mechanism.space.vectors))
    grid = np.linspace(0.0, 2.0 * float(norms.max()) + 1.0, GRID)
    costs = mechanism.cost(grid.copy())
    sums = mechanism.cost(np.add.outer(grid, grid))
    slack = TOLERANCE * (1 + np.abs(costs).max())
    return bool(
        abs(costs[0]) <= slack
        and (np.diff(costs) >= -slack).all()
        and (sums <= np.add.outer(costs, costs) + slack).all()
    )


def _rows_agree(
    mechanism: ExponentialMechanism, inputs: IntArray, normalisers: Float64Array
) -> bool:
    """Whether ``log_probabilities`` states the law that the formula is about, for some words."""
    places = np.unique(np.linspace(0, len(inputs) - 1, CHECKED_ROWS).astype(np.int64))
    words = inputs[places]
    law = np.full((len(words), mechanism.space.size), -np.inf)
    far = Distances(mechanism.space, mechanism.released).rows(words)
    law[:, mechanism.released] = (
        -0.5 * mechanism.epsilon * mechanism.cost(far) - normalisers[places][:, None]
    )
    stated = mechanism.log_probabilities(words)
    return np.allclose(law, stated, rtol=TOLERANCE, atol=TOLERANCE)


def _blocks(words: IntArray) -> list[IntArray]:
    return np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))


def _in_turns(
    work: Callable[[IntArray], Result], blocks: list[IntArray], step: Step
) -> list[Result]:
    """``parallel_map`` a few blocks at a time, so that progress can be told."""
    done: list[Result] = []
    width = 4 * threads()
    for start in range(0, len(blocks), width):
        done += parallel_map(work, blocks[start : start + width])
        step(len(done) / len(blocks))
    return done
