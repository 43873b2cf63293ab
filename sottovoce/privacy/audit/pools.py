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
from sottovoce.randomness import Draws
from sottovoce.statistics import at_least, at_most
from sottovoce.types import Float64Array, IntArray

DRAWN = 16
"""Noisy points drawn for each pair."""
TEXTS = 64
LOW = 0.5
"""An epsilon at which two draws for one text seldom agree in a large pool."""
LOW_AND_HIGH = (0.5, 50.0)
RELEASES = 200
PILOT = 200
ENOUGH = 20
"""Strings without which a pool is too small to show anything."""


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
    """Whether what is added to vectors has the density that is stated for it."""
    vectors = mechanism.encode(mechanism.pool.strings[:1])
    noise = mechanism.noise(Draws([(rng, draws)]))
    moved = mechanism.perturb(vectors, noise[None]).astype(np.float64) - vectors
    return fit_of_density(mechanism.log_density, moved, rng)


def effect_of_epsilon(mechanism: Comet, rng: Generator) -> Finding:
    """At a small epsilon a text must come out as another string more often than at a large one."""
    name, text = "effect of epsilon", _some_text(mechanism, rng)
    low, high = (
        _sample(replace(mechanism, epsilon=epsilon), text, RELEASES, rng)
        for epsilon in LOW_AND_HIGH
    )
    usual = int(np.bincount(high).argmax())
    hits = [int((each == usual).sum()) for each in (low, high)]
    risk = SHARE / 2
    apart = float(at_least(hits[1], RELEASES, risk) - at_most(hits[0], RELEASES, risk))
    figures: dict[str, float | int | None] = {"total_variation": max(0.0, apart)}
    shown = f"{RELEASES} releases of one text at epsilon {LOW_AND_HIGH[0]:g} and as many at "
    shown += f"{LOW_AND_HIGH[1]:g}"
    if apart <= 0:
        if len(mechanism.pool) < ENOUGH:
            sentence = f"cannot tell: the pool has only {len(mechanism.pool)} strings."
            return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)
        sentence = f"{shown} cannot be told apart: what is released does not depend on epsilon."
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = f"{shown} differ by {apart:.2g} in total variation or more."
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def released_strings(
    mechanism: Comet, claims: list[Claim], draws: int, rng: Generator
) -> list[Finding]:
    """How often one string comes out for two texts: a pilot chooses it, fresh draws judge it."""
    if len(mechanism.pool) < 2:
        return []
    places = rng.choice(len(mechanism.pool), size=2, replace=False)
    one, two = (mechanism.pool.strings[int(at)] for at in places)
    usual = int(np.bincount(_sample(mechanism, one, PILOT, rng)).argmax())
    hits = [int((_sample(mechanism, t, draws, rng) == usual).sum()) for t in (one, two)]
    risk = SHARE / (2 * max(1, len(claims)))
    more, less = float(at_least(hits[0], draws, risk)), float(at_most(hits[1], draws, risk))
    ratio = float(np.log(more / less)) if more > 0 else 0.0
    visible = -float(np.log(at_most(0, draws, risk)))
    found = []
    for claim in claims:
        far = 1.0
        if claim.guarantee.notion == "metric":
            far = float(mechanism.distances([one], [two])[0])
        bound = claim.epsilon * far
        name, figures = "released strings", {"draws": draws, "lower_bound": ratio, "bound": bound}
        if ratio > bound:
            output = f"'{mechanism.pool.strings[usual]}'"
            witness = Witness(one, two, output, (more, less), ratio, bound)
            sentence = f"a string is released too often for one text, in {draws:,} draws of each."
            found.append(Finding(name, claim.label, "REFUTED", sentence, witness, dict(figures)))
            continue
        sentence = (
            f"{draws:,} draws of two texts show a log-ratio of {max(0.0, ratio):.3g} nats or more, "
            f"where {bound:.3g} are allowed; no more than {visible:.1f} could be seen."
        )
        found.append(Finding(name, claim.label, "NOT REFUTED", sentence, None, dict(figures)))
    return found


def _sample(mechanism: Comet, text: str, draws: int, rng: Generator) -> IntArray:
    """Places in the pool of so many fresh releases of one text."""
    return mechanism.sample([text], draws, rng)[:, 0]


def _some_text(mechanism: Comet, rng: Generator) -> str:
    return mechanism.pool.strings[int(rng.integers(len(mechanism.pool)))]


def batch_independence(mechanism: Comet, rng: Generator) -> Finding:
    """Equal texts of one batch must not agree more often than those of separate batches."""
    low = replace(mechanism, epsilon=min(mechanism.epsilon, LOW))
    text = _some_text(mechanism, rng)

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
        f"{apart / trials:.0%} across batches: "
    )
    sentence += "no sign of shared noise." if apart < trials else "so this cannot tell."
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def _agreeing(said: list[str]) -> int:
    """How many of the pairs that stand side by side are equal."""
    return sum(one == two for one, two in zip(said[::2], said[1::2], strict=True))
