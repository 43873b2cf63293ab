"""Mechanisms without a law: lower bounds on the log-ratio, from draws (Monte Carlo).

A pilot chooses, for each ordered pair of words, the set of outputs that seems to tell them apart
best; fresh draws alone then bound its two probabilities (Clopper-Pearson, corrected for the
number of tests). What such a test can show is limited by its number of draws.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.audit.chance import SHARE
from sottovoce.privacy.audit.claims import Claim
from sottovoce.privacy.audit.verdicts import Finding, Points, Witness
from sottovoce.statistics import at_least, at_most
from sottovoce.types import BoolArray, Float64Array, IntArray

NAMED = 4
"""Outputs of a witness that are named; the rest is counted."""


def sampled(
    mechanism: WordMechanism,
    claim: Claim,
    pairs: list[tuple[int, int]],
    draws: int,
    rng: Generator,
    *,
    check: str,
    where: str,
) -> Finding:
    """Whether draws refute the claim for any of the pairs, in either direction."""
    ordered = [*pairs, *((other, word) for word, other in pairs)]
    words, others = (np.array(side, dtype=np.int64) for side in zip(*ordered, strict=True))
    risk = SHARE / (2 * len(ordered))
    inputs = np.unique(words)
    place = {int(word): row for row, word in enumerate(inputs)}
    pilot = counts(mechanism, inputs, max(100, draws // 4), rng)
    sets = [
        _most_telling(pilot[place[w]], pilot[place[o]], max(100, draws // 4), risk)
        for w, o in ordered
    ]
    fresh = counts(mechanism, inputs, draws, rng)
    hits = np.array(
        [
            (fresh[place[w]][chosen].sum(), fresh[place[o]][chosen].sum())
            for (w, o), chosen in zip(ordered, sets, strict=True)
        ]
    )
    low, high = at_least(hits[:, 0], draws, risk), at_most(hits[:, 1], draws, risk)
    with np.errstate(divide="ignore"):
        shown = np.log(low) - np.log(high)
    bounds = claim.bounds(mechanism, words, others)
    worst = int(np.argmax(shown - bounds))
    limit = float(-np.log(at_most(0, draws, risk)))
    figures: dict[str, float | int | None] = {
        "draws": draws,
        "pairs": len(ordered),
        "lower_bound": float(max(0.0, shown[worst])),
        "bound": float(bounds[worst]),
        "resolution": limit,
    }
    finite = np.maximum(shown, 0.0)
    points = Points(bounds / claim.epsilon, finite, bounds)
    if shown[worst] > bounds[worst]:
        first, second = mechanism.space.words(np.array([words[worst], others[worst]]))
        witness = Witness(
            first,
            second,
            _named(mechanism, sets[worst]),
            (float(low[worst]), float(high[worst])),
            float(shown[worst]),
            float(bounds[worst]),
        )
        sentence = f"{draws:,} fresh draws a word {where} show a log-ratio above the bound."
        return Finding(check, claim.label, "REFUTED", sentence, witness, figures, points)
    if limit <= bounds.min():
        sentence = (
            f"{where}, {draws:,} draws a word cannot show more than {limit:.3g} nats, and the "
            f"claim allows {bounds.min():.3g} or more: not refutable with so few draws."
        )
    else:
        sentence = (
            f"{where}, {draws:,} draws a word show a log-ratio of at least "
            f"{figures['lower_bound']:.3g} where {figures['bound']:.3g} is allowed "
            f"({len(ordered)} ordered pairs; more than {limit:.3g} could not be seen)."
        )
    return Finding(check, claim.label, "NOT REFUTED", sentence, None, figures, points)


def counts(mechanism: WordMechanism, words: IntArray, draws: int, rng: Generator) -> list[IntArray]:
    """How often each word of the space came out for each input, in so many fresh draws."""
    drawn = mechanism.sample(words, draws, rng)
    return [np.bincount(column, minlength=mechanism.space.size) for column in drawn.T]


def _most_telling(first: IntArray, second: IntArray, draws: int, risk: float) -> BoolArray:
    """The outputs, one or the best few by ratio, whose lower bound was largest in the pilot."""
    seen = np.flatnonzero(first)
    ratios: Float64Array = (first[seen] + 0.5) / (second[seen] + 0.5)
    order = seen[np.argsort(-ratios, kind="stable")]
    hits = np.concatenate([np.cumsum(first[order]), first[order]])
    others = np.concatenate([np.cumsum(second[order]), second[order]])
    score = np.log(at_least(hits, draws, risk)) - np.log(at_most(others, draws, risk))
    best = int(np.argmax(score))
    chosen = np.zeros(len(first), dtype=np.bool_)
    chosen[order[: best + 1] if best < len(order) else order[best - len(order)]] = True
    return chosen


def _named(mechanism: WordMechanism, chosen: BoolArray) -> str:
    ids = np.flatnonzero(chosen)
    words = " or ".join(f"'{word}'" for word in mechanism.space.words(ids[:NAMED]))
    return words if len(ids) <= NAMED else f"{words} or one of {len(ids) - NAMED} others"
