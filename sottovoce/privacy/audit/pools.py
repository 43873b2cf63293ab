"""Checks of mechanisms that move a text's sentence vector and release a string of a pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.comet import Comet
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.audit.chance import SHARE
from sottovoce.privacy.audit.claims import Claim
from sottovoce.privacy.audit.density import ROUNDING, STEPS, fit_of_density
from sottovoce.privacy.audit.verdicts import STRUCTURE, Finding, Points, Witness
from sottovoce.privacy.intervals import at_least, at_most
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array

DRAWN = 16
"""Noisy points drawn for each pair."""
TEXTS = 64
LOW = 0.5
"""An epsilon at which two draws for one text seldom agree in a large pool."""


def density_ratios(
    mechanism: Comet, claims: list[Claim], pairs: int, rng: Generator
) -> list[Finding]:
    """Compare log f(z - t) with log f(z - t') for texts of the pool, the worst of several z."""
    places = rng.integers(len(mechanism.pool), size=(2, pairs))
    places = places[:, places[0] != places[1]]
    texts, others = ([mechanism.pool.strings[at] for at in row] for row in places)
    one, two = (mechanism.encode(each).astype(np.float64) for each in (texts, others))
    best = np.full(len(texts), -np.inf)
    for points in _points(mechanism, one, two, rng):
        best = np.maximum(
            best, mechanism.log_density(points - one) - mechanism.log_density(points - two)
        )
    found = []
    for claim in claims:
        far = np.ones(len(texts))
        if claim.guarantee.notion == "metric":
            far = mechanism.distances(texts, others)
        found.append(_finding(claim, texts, others, best, far))
    return found


def _points(
    mechanism: Comet, one: Float64Array, two: Float64Array, rng: Generator
) -> list[Float64Array]:
    """Where to look: draws around t, and points beyond t as seen from t'."""
    drawn = [one + mechanism.noise(Draws([(rng, len(one))])) for _ in range(DRAWN)]
    return drawn + [one - step * (two - one) for step in STEPS]


def _finding(
    claim: Claim, texts: list[str], others: list[str], best: Float64Array, far: Float64Array
) -> Finding:
    bounds = claim.epsilon * far
    worst = int(np.argmax(best - bounds))
    figures: dict[str, float | int | None] = {
        "pairs": len(texts),
        "points": len(texts) * (DRAWN + len(STEPS)),
        "worst_excess": float((best - bounds)[worst]),
    }
    points = Points(far, best, bounds)
    if best[worst] > bounds[worst] + ROUNDING * (1 + bounds[worst]):
        witness = Witness(
            texts[worst],
            others[worst],
            "a noisy point beyond the first, or drawn around it",
            None,
            float(best[worst]),
            float(bounds[worst]),
        )
        sentence = "the density of the noisy point exceeds the bound for two strings of the pool."
        return Finding("density", claim.label, "REFUTED", sentence, witness, figures, points)
    sentence = (
        f"at {figures['points']:,} points for {len(texts)} pairs of strings no log-ratio of "
        "densities exceeds its bound."
    )
    return Finding("density", claim.label, "NOT REFUTED", sentence, None, figures, points)


def draws_follow_density(mechanism: Comet, draws: int, rng: Generator) -> Finding:
    """Whether the noise has the density that is stated for it."""
    return fit_of_density(mechanism.log_density, mechanism.noise(Draws([(rng, draws)])), rng)


def batch_independence(mechanism: Comet, rng: Generator) -> Finding:
    """Equal texts of one batch must not agree more often than those of separate batches."""
    low = replace(mechanism, epsilon=min(mechanism.epsilon, LOW))
    text = mechanism.pool.strings[int(rng.integers(len(mechanism.pool)))]

    def batch(count: int) -> list[str]:
        runs = Obfuscator(low, rng=int(rng.integers(1 << 62))).obfuscate([text] * count)
        return [result.variants[0] for result in runs]

    together = _agreeing(batch(TEXTS))
    apart = _agreeing([batch(1)[0] for _ in range(TEXTS)])
    trials = TEXTS // 2
    figures: dict[str, float | int | None] = {
        "together": together / trials,
        "separate": apart / trials,
    }
    name = "batch independence"
    if at_least(together, trials, SHARE / 2) > at_most(apart, trials, SHARE / 2):
        sentence = (
            f"equal texts agree in {together / trials:.0%} of the cases in one batch and in "
            f"{apart / trials:.0%} across batches: they share their noise."
        )
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = (
        f"equal texts agree in {together / trials:.0%} of the cases in one batch, and in "
        f"{apart / trials:.0%} across batches: no sign of shared noise."
    )
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def _agreeing(said: list[str]) -> int:
    """How many of the pairs that stand side by side are equal."""
    return sum(one == two for one, two in zip(said[::2], said[1::2], strict=True))
