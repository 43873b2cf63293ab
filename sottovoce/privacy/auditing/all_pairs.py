"""Exponential mechanisms, every two words: the log-ratio follows from the normalizers alone.

With p(y|w) = exp(-epsilon c(|w - y|) / 2) / Z(w), the output that tells w from w' best is w itself:
D(w || w') = epsilon c(|w - w'|) / 2 + log Z(w') - log Z(w). That needs a cost c that is 0 at 0,
never decreases and is subadditive; where w may not be released it is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from sottovoce.mechanisms.exponential import ExponentialMechanism
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
from sottovoce.spaces.distances import WORDS_AT_A_TIME, Distances
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float64Array, IntArray

Result = TypeVar("Result")

CHECKED_ROWS = 5
"""Words whose full rows are compared with the formula."""
CHECKED_PAIRS = 64
"""Pairs looked at row by row, where the formula is only an upper bound and exceeds the claim."""
POINTS_PER_BLOCK = 64
GRID = 65


class Extreme(NamedTuple):
    """The largest value of something, and the pair that has it."""

    value: float
    word: int
    other: int


NOTHING_YET = Extreme(-np.inf, -1, -1)


@dataclass
class Summary:
    """What is kept of a block of pairs."""

    loss: Extreme = NOTHING_YET
    excess: Extreme = NOTHING_YET
    ratio: Extreme = NOTHING_YET
    violating: int = 0
    points: Float64Array | None = None


def all_pairs(
    mechanism: ExponentialMechanism, claim: Claim, step: Step, words: IntArray | None = None
) -> Finding | None:
    """The exact audit over every two words, or every two of some words in ascending order.

    None where the formula does not apply.
    """
    inputs = np.arange(mechanism.space.size) if words is None else words
    if claim.is_metric and claim.guarantee.metric != "euclidean":
        return None
    if claim.guarantee.notion == "group" or not _formula_applies(mechanism):
        return None
    normalizers = log_normalizers(mechanism, inputs, lambda share: step(share * 0.6))
    if not _rows_agree(mechanism, inputs, normalizers):
        return None
    blocks = _compare(mechanism, claim, inputs, normalizers, lambda share: step(0.6 + share * 0.4))
    return _finding(mechanism, claim, len(inputs), blocks)


def log_normalizers(mechanism: ExponentialMechanism, words: IntArray, step: Step) -> Float64Array:
    """The logarithm of Z for each word."""
    if len(words) == len(mechanism.released) == mechanism.space.size:
        return _log_normalizers_of_all(mechanism, step)
    targets = Distances(mechanism.space, mechanism.released)
    half = 0.5 * mechanism.epsilon

    def of_block(block: IntArray) -> Float64Array:
        shift, total = np.zeros(len(block)), np.zeros(len(block))
        if len(mechanism.released) < mechanism.space.size:
            # Relative to the nearest word that may be released, so that no sum vanishes.
            nearest = np.min([tile.min(axis=1) for _, tile in targets.tiles(block)], axis=0)
            shift = half * mechanism.cost(nearest)
        for _, tile in targets.tiles(block):
            scores = mechanism.cost(tile) * -half
            scores += shift[:, None]
            total += np.exp(scores, out=scores).sum(axis=1)
        return np.asarray(np.log(total) - shift)

    return np.concatenate(_in_turns(of_block, _blocks(words), step))


def _log_normalizers_of_all(mechanism: ExponentialMechanism, step: Step) -> Float64Array:
    """The same where every word may be meant and released: each two words are met once."""
    everything, half = np.arange(mechanism.space.size), 0.5 * mechanism.epsilon

    def of_block(block: IntArray) -> Float64Array:
        """What the block's words and all later ones add to each other's sums."""
        sums = np.zeros(len(everything) - block[0])
        for start, tile in Distances(mechanism.space, everything[block[0] :]).tiles(block):
            weights = mechanism.cost(tile) * -half
            np.exp(weights, out=weights)
            sums[: len(block)] += weights.sum(axis=1)
            # Pairs within the block stand in both orders in the rows already.
            inside = max(0, len(block) - start)
            sums[start + inside : start + tile.shape[1]] += weights[:, inside:].sum(axis=0)
        return sums

    total = np.zeros(len(everything))
    for sums in _in_turns(of_block, _early_and_late(_blocks(everything)), step):
        total[-len(sums) :] += sums
    return np.asarray(np.log(total))


def _compare(
    mechanism: ExponentialMechanism,
    claim: Claim,
    inputs: IntArray,
    normalizers: Float64Array,
    step: Step,
) -> list[Summary]:
    """D of every pair in its larger direction, block by block, each pair once."""
    half = 0.5 * mechanism.epsilon

    def of_block(block: IntArray) -> Summary:
        first = int(np.searchsorted(inputs, block[0]))
        rows = normalizers[first : first + len(block), None]
        kept = Summary()
        for start, far in Distances(mechanism.space, inputs[first:]).tiles(block):
            rest = slice(first + start, first + start + far.shape[1])
            loss = mechanism.cost(far) * half
            loss += np.abs(normalizers[rest] - rows)
            if start == 0:
                loss[inputs[rest] <= block[:, None]] = -np.inf
            _keep(kept, claim, far, loss, block, inputs[rest])
            if kept.points is None:
                places = np.linspace(0, far.size - 1, POINTS_PER_BLOCK).astype(np.int64)
                kept.points = np.stack([far.ravel()[places], loss.ravel()[places]], axis=1)
        return kept

    return _in_turns(of_block, _early_and_late(_blocks(inputs)), step)


def _keep(
    kept: Summary,
    claim: Claim,
    far: Float64Array,
    loss: Float64Array,
    words: IntArray,
    others: IntArray,
) -> None:
    """Take a tile of pairs into a block's summary."""

    def larger(before: Extreme, values: Float64Array) -> Extreme:
        row, column = divmod(int(np.argmax(values)), values.shape[1])
        best = Extreme(float(values[row, column]), int(words[row]), int(others[column]))
        return best if best.value > before.value else before

    kept.loss = larger(kept.loss, loss)
    excess = loss - (claim.epsilon * far if claim.is_metric else claim.epsilon)
    kept.excess = larger(kept.excess, excess)
    kept.violating += int(np.count_nonzero(excess > TOLERANCE))
    # Words that share a place must share their law; rounding alone is no ratio.
    ratio = np.divide(loss, far, out=excess, where=far > 0)
    ratio[far == 0] = np.where(loss[far == 0] > TOLERANCE, np.inf, -np.inf)
    kept.ratio = larger(kept.ratio, ratio)


def _finding(
    mechanism: ExponentialMechanism, claim: Claim, size: int, blocks: list[Summary]
) -> Finding:
    def largest(name: str) -> float:
        return float(max(getattr(block, name).value for block in blocks))

    pairs = size * (size - 1)
    exact = len(mechanism.released) == mechanism.space.size
    figures: Figures = {
        "pairs": pairs,
        "violating_share": sum(block.violating for block in blocks) / max(1, pairs // 2),
        "worst_excess": largest("excess"),
        "tight_epsilon": largest("ratio" if claim.is_metric else "loss"),
        "largest_log_ratio": largest("loss"),
    }
    far, losses = np.concatenate([block.points for block in blocks if block.points is not None]).T
    real = np.isfinite(losses)
    bounds = claim.epsilon * (far[real] if claim.is_metric else np.ones(real.sum()))
    points = Points(far[real], losses[real], bounds)
    extent = (
        f"{pairs:,} ordered pairs of {size:,} words, {'exactly' if exact else 'by an upper bound'}:"
    )
    complete = size == mechanism.space.size
    name = f"{'exact' if exact else 'bounded'}, {'all' if complete else 'some'} pairs"
    verdict: Verdict
    witness = None
    if largest("excess") <= TOLERANCE:
        verdict = "CONSISTENT" if complete else "NOT REFUTED"
        sentence = (
            f"{extent} none exceeds its bound; the epsilon really reached is "
            f"{'' if exact else 'at most '}{figures['tight_epsilon']:.4g}"
            f" of {claim.epsilon:g} claimed."
        )
    else:
        worst = sorted(blocks, key=lambda block: -block.excess.value)[:CHECKED_PAIRS]
        witnesses = (_witness(mechanism, claim, block.excess) for block in worst)
        witness = next(filter(None, witnesses), None)
        verdict = "REFUTED" if witness else "NOT REFUTED"
        sentence = f"{extent} {figures['violating_share']:.2%} of the pairs exceed their bound."
        if witness is None:
            sentence = f"{extent} it exceeds the claim, but the {len(worst)} worst pairs looked at "
            sentence += "do not."
    return Finding(name, claim.label, verdict, sentence, witness, figures, points)


def _witness(mechanism: ExponentialMechanism, claim: Claim, pair: Extreme) -> Witness | None:
    """The pair's best output from its full rows, in its larger direction; None if it is within."""
    if pair.value <= TOLERANCE:
        return None
    ids = np.array([pair.word, pair.other])
    law = mechanism.log_probabilities(ids)
    possible = np.isfinite(law).all(axis=0)
    difference = np.where(possible, law[0] - np.where(possible, law[1], 0.0), 0.0)
    output = int(np.argmax(np.abs(difference)))
    one, other = (0, 1) if difference[output] > 0 else (1, 0)
    bound = float(claim.bounds(mechanism, ids[:1], ids[1:])[0])
    log_ratio = float(abs(difference[output]))
    if log_ratio <= bound + TOLERANCE:
        return None
    chances = float(np.exp(law[one, output])), float(np.exp(law[other, output]))
    named = (ids[one], ids[other], output)
    return Witness.of_words(mechanism.space, named, chances, log_ratio, bound)


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
    mechanism: ExponentialMechanism, inputs: IntArray, normalizers: Float64Array
) -> bool:
    """Whether ``log_probabilities`` states the law that the formula is about, for some words."""
    places = np.unique(np.linspace(0, len(inputs) - 1, CHECKED_ROWS).astype(np.int64))
    words = inputs[places]
    law = np.full((len(words), mechanism.space.size), -np.inf)
    far = Distances(mechanism.space, mechanism.released).rows(words)
    law[:, mechanism.released] = (
        -0.5 * mechanism.epsilon * mechanism.cost(far) - normalizers[places][:, None]
    )
    stated = mechanism.log_probabilities(words)
    return np.allclose(law, stated, rtol=TOLERANCE, atol=TOLERANCE)


def _blocks(words: IntArray) -> list[IntArray]:
    return np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))


def _early_and_late(blocks: list[IntArray]) -> list[IntArray]:
    """First and last blocks in turn: early ones meet more words, so turns take about as long."""
    return [blocks[i // 2 if i % 2 == 0 else -1 - i // 2] for i in range(len(blocks))]


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
