"""Mechanisms without a law: lower bounds on the log-ratio, from draws (Monte Carlo).

A pilot chooses, for each ordered pair of words, the set of outputs that seems to tell them apart
best; fresh draws alone then bound its two probabilities (Clopper-Pearson, corrected for the
number of tests). What such a test can show is limited by its number of draws.

So noise is sampled on small spaces on which a wrong one shows: a line where the bound is tight,
and a plane. A mechanism is rebuilt on them as it is, epsilon included; the words are closer by as
much as epsilon is larger, so that the claim always allows one nat between neighbours of the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.auditing.exact import close_words
from sottovoce.privacy.auditing.findings import (
    RISK_OF_A_CHECK,
    Claim,
    Figures,
    Finding,
    Points,
    Step,
    Subject,
    Verdict,
    Witness,
    claims,
)
from sottovoce.privacy.auditing.noise_checks import in_the_plane
from sottovoce.spaces.space import WordSpace
from sottovoce.statistics import at_least, at_most
from sottovoce.types import BoolArray, Float64Array, IntArray

Kind = TypeVar("Kind", bound=WordMechanism)
Pairs: TypeAlias = list[tuple[int, int]]
"""Ids of two words each, to be told apart."""

LINE = 33
STRETCH = np.diag([10.0, 0.1])
"""In place of the plane's covariance."""
PLANE_WORDS = "abcLRT"
PLANE = ((0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (-0.1, 0.2), (0.1, 0.2), (0.0, 0.3))
CLOSE_PAIRS = 3
NAMED = 4
"""Outputs of a witness that are named; the rest is counted."""


def on_line(mechanism: Kind, nats: float = 1.0) -> Kind:
    """The mechanism on words of one dimension, neighbours ``nats`` / epsilon apart."""
    places = np.arange(LINE)[:, None] * (nats / mechanism.epsilon)
    names = [f"word {number}" for number in range(LINE)]
    return replace(mechanism, space=WordSpace.from_arrays(names, places, name="line"))


def on_plane(mechanism: Kind) -> Kind:
    """The mechanism on six words of the plane; noise that follows a shape follows the stretch."""
    places = np.array(PLANE) / mechanism.epsilon
    space = WordSpace.from_arrays(list(PLANE_WORDS), places, name="plane")
    space.covariance = STRETCH
    shaped = {"lambda_": 1.0} if "lambda_" in {field.name for field in fields(mechanism)} else {}
    return replace(mechanism, space=space, **shaped)


def on_line_and_plane(subject: Subject[NoiseMechanism], _: Step) -> list[Finding]:
    """The claims of a noise rebuilt on the line and the plane: exactly in the plane, and by draws.

    They are the claims that it makes there.
    """
    try:
        line, plane = on_line(subject.mechanism), on_plane(subject.mechanism)
    except UsageError:
        sentence = (
            "not looked at: with these parameters it needs more words than the fixtures have."
        )
        return [
            Finding("fixtures", claim.label, "NOT REFUTED", sentence) for claim in subject.claims
        ]
    middle = LINE // 2
    along = [(middle, middle - 1), (middle, middle + 2)]
    across = [(one, two) for one in range(plane.space.size) for two in range(one)]
    findings = in_the_plane(plane)
    for rebuilt, pairs, check, where in (
        (line, along, "line, sampled", "on a line of words"),
        (plane, across, "plane, sampled", "on six words of the plane"),
    ):
        compared = [(claim, pairs) for claim in claims(rebuilt)]
        draws, rng = subject.draws, subject.rng
        findings += sampled(rebuilt, compared, draws, rng, check=check, where=where)
    return findings


def on_close_pairs(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """Draws in the mechanism's own space, where two words are close enough to see something.

    One pair is of words with equal vectors, if there are such: they must not be told apart at all.
    Of a large space fewer words are released, so that draws are cheap.
    """
    mechanism, words, draws, rng = subject.narrow, subject.words, subject.few_draws, subject.rng
    near = close_words(mechanism.space, words, 1)[:, 0]
    check = "close pairs, sampled"
    where = f"for close pairs of space {mechanism.space.name}{subject.narrowly}"
    compared: list[tuple[Claim, Pairs]] = []
    for claim in claims(mechanism):
        distances = claim.distances(mechanism, words, near)
        order = np.argsort(distances, kind="stable")
        equal = int((distances == 0).sum())
        chosen = [*order[:equal][:1], *order[equal:]][:CLOSE_PAIRS]
        pairs = [(int(words[place]), int(near[place])) for place in chosen]
        compared.append((claim, pairs))
    return sampled(mechanism, compared, draws, rng, check=check, where=where)


def sampled(
    mechanism: WordMechanism,
    compared: Sequence[tuple[Claim, Pairs]],
    draws: int,
    rng: Generator,
    *,
    check: str,
    where: str,
) -> list[Finding]:
    """Whether draws refute claims for any of their pairs, in either direction.

    All claims are judged by the same draws; each has its own share of the risk. Words are drawn
    only where so many draws could show more than a claim allows.
    """
    questions = [_Question.of(mechanism, claim, pairs, draws) for claim, pairs in compared]
    inputs = np.unique(np.concatenate([question.words for question in questions]))
    counted = _Counted.of(mechanism, inputs, draws, rng) if len(inputs) else None
    return [question.judged(counted, draws, check, where) for question in questions]


@dataclass(frozen=True)
class _Counted:
    """How often each output came for some inputs: in a pilot, and in fresh draws."""

    inputs: IntArray
    few: int
    pilot: list[IntArray]
    draws: int
    fresh: list[IntArray]

    @classmethod
    def of(cls, mechanism: WordMechanism, inputs: IntArray, draws: int, rng: Generator) -> _Counted:
        few = max(100, draws // 4)
        pilot, fresh = (_counts(mechanism, inputs, count, rng) for count in (few, draws))
        return cls(inputs, few, pilot, draws, fresh)


@dataclass(frozen=True)
class _Question:
    """A claim, and the ordered pairs of words for which draws can show more than it allows."""

    mechanism: WordMechanism
    claim: Claim
    words: IntArray
    others: IntArray
    bounds: Float64Array
    least: float
    """The smallest bound of all pairs, whether draws can reach it or not."""
    risk: float
    limit: float
    """Nats that could be shown at most."""

    @classmethod
    def of(cls, mechanism: WordMechanism, claim: Claim, pairs: Pairs, draws: int) -> _Question:
        ordered = [*pairs, *((other, word) for word, other in pairs)]
        words, others = (np.array(side, dtype=np.int64) for side in zip(*ordered, strict=True))
        risk = RISK_OF_A_CHECK / (2 * len(ordered))
        limit = float(-np.log(at_most(0, draws, risk)))
        bounds = claim.bounds(mechanism, words, others)
        kept, least = bounds < limit, float(bounds.min())
        return cls(mechanism, claim, words[kept], others[kept], bounds[kept], least, risk, limit)

    def judged(self, counted: _Counted | None, draws: int, check: str, where: str) -> Finding:
        """The pair that exceeds its bound most, or comes nearest to it; or why none was drawn."""
        if counted is not None and len(self.words):
            return self._judged(counted, check, where)
        figures: Figures = {"draws": 0, "pairs": 0, "bound": self.least, "resolution": self.limit}
        sentence = (
            f"{where}, {draws:,} draws a word cannot show more than {self.limit:.3g} nats, and the "
            f"claim allows {self.least:.3g} or more: not refutable with so few draws, and none "
            "were made."
        )
        return Finding(check, self.claim.label, "NOT REFUTED", sentence, None, figures)

    def _judged(self, counted: _Counted, check: str, where: str) -> Finding:
        draws, fresh, bounds = counted.draws, counted.fresh, self.bounds
        one, two = (np.searchsorted(counted.inputs, side) for side in (self.words, self.others))
        # The pilot chooses a set of outputs for each pair ...
        sets = [
            _most_telling(counted.pilot[i], counted.pilot[j], counted.few, self.risk)
            for i, j in zip(one, two, strict=True)
        ]
        # ... and fresh draws bound its probabilities.
        tests = list(zip(one, two, sets, strict=True))
        low = at_least([fresh[i][outputs].sum() for i, _, outputs in tests], draws, self.risk)
        high = at_most([fresh[j][outputs].sum() for _, j, outputs in tests], draws, self.risk)
        with np.errstate(divide="ignore"):
            shown = np.log(low) - np.log(high)
        worst = int(np.argmax(shown - bounds))
        figures: Figures = {
            "draws": draws,
            "pairs": len(self.words),
            "lower_bound": float(max(0.0, shown[worst])),
            "bound": float(bounds[worst]),
            "resolution": self.limit,
        }
        points = Points(bounds / self.claim.epsilon, np.maximum(shown, 0.0), bounds)
        verdict: Verdict = "REFUTED" if shown[worst] > bounds[worst] else "NOT REFUTED"
        witness = None
        if verdict == "REFUTED":
            ids = np.array([self.words[worst], self.others[worst]])
            first, second = self.mechanism.space.words(ids)
            chances = float(low[worst]), float(high[worst])
            ratio, bound = float(shown[worst]), float(bounds[worst])
            output = _named(self.mechanism, sets[worst])
            witness = Witness(first, second, output, chances, ratio, bound)
            sentence = f"{draws:,} fresh draws a word {where} show a log-ratio above the bound."
        else:
            sentence = (
                f"{where}, {draws:,} draws a word show a log-ratio of at least "
                f"{figures['lower_bound']:.3g} where {figures['bound']:.3g} is allowed "
                f"({len(self.words)} ordered pairs; more than {self.limit:.3g} could not be seen)."
            )
        return Finding(check, self.claim.label, verdict, sentence, witness, figures, points)


def _counts(
    mechanism: WordMechanism, words: IntArray, draws: int, rng: Generator
) -> list[IntArray]:
    """How often each word of the space came out for each input, in so many fresh draws."""
    drawn = mechanism.sample(words, draws, rng)
    return [np.bincount(column, minlength=mechanism.space.size) for column in drawn.T]


def _most_telling(first: IntArray, second: IntArray, draws: int, risk: float) -> BoolArray:
    """The outputs, one or the best few by ratio, whose lower bound was largest in the pilot."""
    seen = np.flatnonzero(first)
    ratios: Float64Array = (first[seen] + 0.5) / (second[seen] + 0.5)
    order = seen[np.argsort(-ratios, kind="stable")]
    # Candidates: the best output, the best two, ...; then each output by itself.
    hits = np.concatenate([np.cumsum(first[order]), first[order]])
    rivals = np.concatenate([np.cumsum(second[order]), second[order]])
    score = np.log(at_least(hits, draws, risk)) - np.log(at_most(rivals, draws, risk))
    best = int(np.argmax(score))
    outputs = np.zeros(len(first), dtype=np.bool_)
    outputs[order[: best + 1] if best < len(order) else order[best - len(order)]] = True
    return outputs


def _named(mechanism: WordMechanism, outputs: BoolArray) -> str:
    ids = np.flatnonzero(outputs)
    words = " or ".join(f"'{word}'" for word in mechanism.space.words(ids[:NAMED]))
    return words if len(ids) <= NAMED else f"{words} or one of {len(ids) - NAMED} others"
