"""Checks of mechanisms that move a text's sentence vector and release a string of a pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.comet import Comet
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.auditing.findings import (
    IN_FULL_SPACE,
    RISK_OF_A_CHECK,
    Claim,
    Figures,
    Finding,
    Points,
    Step,
    Subject,
    Verdict,
    Witness,
    structural,
)
from sottovoce.privacy.auditing.noise_checks import ROUNDING, STEPS, fit_of_density
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


def density_ratios(subject: Subject[Comet], _: Step) -> list[Finding]:
    """Compare log f(z - t) with log f(z - t') for texts of the pool, the worst of several z."""
    mechanism, rng = subject.mechanism, subject.rng
    places = rng.integers(len(mechanism.pool), size=(2, subject.texts))
    places = places[:, places[0] != places[1]]
    texts, others = ([mechanism.pool.strings[place] for place in row] for row in places)
    one, two = (mechanism.encode(side).astype(np.float64) for side in (texts, others))
    # Where to look: draws around t, and points beyond t as seen from t'.
    points = [one + mechanism.noise(Draws([(rng, len(one))])) for _ in range(DRAWN)]
    points += [one - step * (two - one) for step in STEPS]
    best = np.max(
        [mechanism.log_density(z - one) - mechanism.log_density(z - two) for z in points], axis=0
    )
    findings = []
    for claim in subject.claims:
        far = _distances(mechanism, claim, texts, others)
        bounds = claim.epsilon * far
        worst = int(np.argmax(best - bounds))
        figures: Figures = {"pairs": len(texts), "points": len(texts) * len(points)}
        figures["worst_excess"] = float((best - bounds)[worst])
        verdict: Verdict = "NOT REFUTED"
        sentence, witness = (
            f"at {figures['points']:,} points for {len(texts)} pairs of strings no log-ratio of "
            "densities exceeds its bound.",
            None,
        )
        if best[worst] > bounds[worst] + ROUNDING * (1 + bounds[worst]):
            verdict = "REFUTED"
            sentence = (
                "the density of the noisy point exceeds the bound for two strings of the pool."
            )
            output = "a noisy point beyond the first, or drawn around it"
            ratio, bound = float(best[worst]), float(bounds[worst])
            witness = Witness(texts[worst], others[worst], output, None, ratio, bound)
        compared = Points(far, best, bounds)
        findings.append(
            Finding("density", claim.label, verdict, sentence, witness, figures, compared)
        )
    return findings


def _distances(mechanism: Comet, claim: Claim, texts: list[str], others: list[str]) -> Float64Array:
    """How far texts are apart in the claim's metric; 1 where it bounds every pair alike."""
    return mechanism.distances(texts, others) if claim.is_metric else np.ones(len(texts))


def draws_follow_density(subject: Subject[Comet], _: Step) -> list[Finding]:
    """Whether what is added to vectors has the density that is stated for it."""
    mechanism = subject.mechanism
    vectors = mechanism.encode(mechanism.pool.strings[:1])
    noise = mechanism.noise(Draws([(subject.rng, subject.draws // IN_FULL_SPACE)]))
    moved = mechanism.perturb(vectors, noise[None]).astype(np.float64) - vectors
    return fit_of_density(mechanism.log_density, moved, subject.rng)


def effect_of_epsilon(subject: Subject[Comet], _: Step) -> list[Finding]:
    """At a small epsilon a text must come out as another string more often than at a large one."""
    name, mechanism, rng = "effect of epsilon", subject.mechanism, subject.rng
    text = _random_text(mechanism, rng)
    low, high = (
        _sample(replace(mechanism, epsilon=epsilon), text, RELEASES, rng)
        for epsilon in LOW_AND_HIGH
    )
    usual = int(np.bincount(high).argmax())
    hits = [int((places == usual).sum()) for places in (low, high)]
    risk = RISK_OF_A_CHECK / 2
    apart = float(at_least(hits[1], RELEASES, risk) - at_most(hits[0], RELEASES, risk))
    figures: Figures = {"total_variation": max(0.0, apart)}
    compared = f"{RELEASES} releases of one text at epsilon {LOW_AND_HIGH[0]:g} and as many at "
    compared += f"{LOW_AND_HIGH[1]:g}"
    if apart > 0:
        sentence = f"{compared} differ by {apart:.2g} in total variation or more."
        return structural(name, "NOT REFUTED", sentence, figures)
    if len(mechanism.pool) < ENOUGH:
        sentence = f"cannot tell: the pool has only {len(mechanism.pool)} strings."
        return structural(name, "NOT REFUTED", sentence, figures)
    sentence = f"{compared} cannot be told apart: what is released does not depend on epsilon."
    return structural(name, "REFUTED", sentence, figures)


def released_strings(subject: Subject[Comet], _: Step) -> list[Finding]:
    """How often one string comes out for two texts: a pilot chooses it, fresh draws judge it."""
    mechanism, rng, draws = subject.mechanism, subject.rng, subject.draws // IN_FULL_SPACE
    if len(mechanism.pool) < 2:
        return []
    places = rng.choice(len(mechanism.pool), size=2, replace=False)
    one, two = (mechanism.pool.strings[int(place)] for place in places)
    usual = int(np.bincount(_sample(mechanism, one, PILOT, rng)).argmax())
    hits = [int((_sample(mechanism, text, draws, rng) == usual).sum()) for text in (one, two)]
    risk = RISK_OF_A_CHECK / (2 * max(1, len(subject.claims)))
    more, less = float(at_least(hits[0], draws, risk)), float(at_most(hits[1], draws, risk))
    ratio = float(np.log(more / less)) if more > 0 else 0.0
    visible = -float(np.log(at_most(0, draws, risk)))
    name, findings = "released strings", []
    for claim in subject.claims:
        bound = claim.epsilon * float(_distances(mechanism, claim, [one], [two])[0])
        figures: Figures = {"draws": draws, "lower_bound": ratio, "bound": bound}
        if ratio > bound:
            output = f"'{mechanism.pool.strings[usual]}'"
            witness = Witness(one, two, output, (more, less), ratio, bound)
            sentence = f"a string is released too often for one text, in {draws:,} draws of each."
            findings.append(Finding(name, claim.label, "REFUTED", sentence, witness, figures))
            continue
        sentence = (
            f"{draws:,} draws of two texts show a log-ratio of {max(0.0, ratio):.3g} nats or more, "
            f"where {bound:.3g} are allowed; no more than {visible:.1f} could be seen."
        )
        findings.append(Finding(name, claim.label, "NOT REFUTED", sentence, None, figures))
    return findings


def _sample(mechanism: Comet, text: str, draws: int, rng: Generator) -> IntArray:
    """Places in the pool of so many fresh releases of one text."""
    return mechanism.sample([text], draws, rng)[:, 0]


def _random_text(mechanism: Comet, rng: Generator) -> str:
    return mechanism.pool.strings[int(rng.integers(len(mechanism.pool)))]


def batch_independence(subject: Subject[Comet], _: Step) -> list[Finding]:
    """Equal texts of one batch must not agree more often than those of separate batches."""
    mechanism, rng = subject.mechanism, subject.rng
    low = replace(mechanism, epsilon=min(mechanism.epsilon, LOW))
    text = _random_text(mechanism, rng)

    def batch(count: int) -> list[str]:
        runs = Obfuscator(low, rng=int(rng.integers(1 << 62))).obfuscate([text] * count)
        return [result.variants[0] for result in runs]

    together = _agreeing(batch(TEXTS))
    apart = _agreeing([batch(1)[0] for _ in range(TEXTS)])
    trials, risk = TEXTS // 2, RISK_OF_A_CHECK / 2
    figures: Figures = {"together": together / trials, "separate": apart / trials}
    sentence = f"equal texts agree in {together / trials:.0%} of the cases in one batch"
    if at_least(together, trials, risk) > at_most(apart, trials, risk):
        sentence += f" and in {apart / trials:.0%} across batches: they share their noise."
        return structural("batch independence", "REFUTED", sentence, figures)
    sentence += f", and in {apart / trials:.0%} across batches: "
    sentence += "no sign of shared noise." if apart < trials else "so this cannot tell."
    return structural("batch independence", "NOT REFUTED", sentence, figures)


def _agreeing(variants: list[str]) -> int:
    """How many of the pairs that stand side by side are equal."""
    return sum(one == two for one, two in zip(variants[::2], variants[1::2], strict=True))
