"""Checks of whole texts: the way from text to text, and texts that a string of a pool replaces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.choices import Release
from sottovoce.mechanisms.base import Mechanism, SetMechanism, TextMechanism, WordMechanism
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
from sottovoce.privacy.auditing.word_checks import plain_word
from sottovoce.randomness import Draws
from sottovoce.statistics import at_least, at_most
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray

UNKNOWN_WORD = "xqzzyvwk"
"""No space knows it."""
TEXTS = (
    "treatment for skin cancer",
    "divorce lawyer",
    f"doctor {UNKNOWN_WORD}",
    "Where can I find a shelter for women and children?",
    f"{UNKNOWN_WORD}, 42 ({UNKNOWN_WORD}-{UNKNOWN_WORD})!",
)
EQUAL_TEXTS = 64
DRAWN = 16
"""Noisy points drawn for each pair."""
LOW = 0.5
"""An epsilon at which two draws for one text seldom agree in a large pool."""
LOW_AND_HIGH = (0.5, 50.0)
RELEASES = 200
PILOT = 200
ENOUGH = 20
"""Strings without which a pool is too small to show anything."""


# The way from text to text: seeds, order, memory, accounts, what passes through.


def order_and_seed(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """A seed decides everything: neither the batch nor the order changes anybody's result."""
    mechanism, words, rng = subject.mechanism, subject.words, subject.rng
    seed = int(rng.integers(1 << 62))
    runs = [_variants(subject.narrow, 3, seed, batch_size) for batch_size in (1, 2, 100)]
    wrong = [] if runs[0] == runs[1] == runs[2] else ["the batch size changes what is released"]
    if isinstance(mechanism, WordMechanism):
        low = replace(mechanism, epsilon=min(mechanism.epsilon, 1.0))
        order = rng.permutation(len(words))
        straight, mixed = (
            low.draw(words[rows], Draws([(Generator(PCG64([seed, row])), 1) for row in rows]))
            for rows in (np.arange(len(words)), order)
        )
        if not np.array_equal(straight[order], mixed):
            wrong.append("the order of the words changes what is released")
    right = f"neither batch size{subject.narrowly} nor order changes a seeded result"
    sentence = "; ".join(wrong) or right
    return structural("order and seed", "REFUTED" if wrong else "CONSISTENT", sentence + ".")


def no_memory(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """What was obfuscated before must not change what comes later."""
    mechanism, seed = subject.narrow, int(subject.rng.integers(1 << 62))
    before = mechanism.sample(subject.words, 5, Generator(PCG64(seed)))
    _variants(mechanism, 3, seed)
    after = mechanism.sample(subject.words, 5, Generator(PCG64(seed)))
    if np.array_equal(before, after):
        sentence = f"texts obfuscated before change nothing{subject.narrowly}."
        return structural("data dependence", "CONSISTENT", sentence)
    sentence = "texts obfuscated before change what is drawn: the law depends on private data."
    return structural("data dependence", "REFUTED", sentence)


def composition(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """N releases cost N times epsilon, N readings of one point once; no claim costs no number."""
    mechanism, wrong = subject.mechanism, []
    stated = mechanism.guarantee
    epsilon = stated.epsilon
    if epsilon is not None and abs(stated.loss(1.7, 3) - 3 * 1.7 * epsilon) > 1e-9 * epsilon:
        wrong.append("three releases are not stated to cost three times epsilon")
    text: str | None = None
    times: dict[Release, int] = {"independent": 3}
    if isinstance(mechanism, SetMechanism):
        return _set_composition(mechanism)
    if isinstance(mechanism, WordMechanism):
        text = plain_word(mechanism, np.arange(min(50, mechanism.space.size)))
        if mechanism.supports_once and len(mechanism.space.output) >= 3:
            times["once"] = 1
    for release, releases in times.items() if text is not None else ():
        obfuscator = Obfuscator(mechanism, n=3, release=release, pipeline=TextPipeline())
        (result,) = obfuscator.obfuscate([text or ""])
        due = None if epsilon is None else releases * epsilon
        if result.spent is None or due is None:
            matches = result.spent == due
        else:
            matches = abs(result.spent - due) <= 1e-9 * due
        if not matches:
            wrong.append(f"three variants, {release}, are charged {result.spent}, not {due}")
    if wrong:
        return structural("composition", "REFUTED", "; ".join(wrong) + ".")
    sentence = "no epsilon is charged, as none is promised"
    if epsilon is not None:
        sentence = f"three independent variants are charged {3 * epsilon:g} nats"
        sentence += f", three readings of one point {epsilon:g}" if "once" in times else ""
    return structural("composition", "CONSISTENT", sentence + ".")


def _set_composition(mechanism: SetMechanism) -> list[Finding]:
    """All strings of a set together cost one epsilon."""
    (result,) = Obfuscator(mechanism).obfuscate(TEXTS[:1])
    epsilon = mechanism.guarantee.epsilon
    if result.spent != epsilon:
        sentence = f"a set is charged {result.spent}, not {epsilon}."
        return structural("composition", "REFUTED", sentence)
    sentence = "no epsilon is charged, as none is promised."
    if epsilon is not None:
        sentence = f"all strings of a set together are charged {epsilon:g} nats."
    return structural("composition", "CONSISTENT", sentence)


def pass_through(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """Unknown words and whole texts never come out as they are; what stays in clear is said."""
    mechanism, name, wrong = subject.narrow, "pass-through", []
    rewrites_texts = isinstance(mechanism, TextMechanism) and not mechanism.may_repeat
    for text, variants in zip(TEXTS, _variants(mechanism, 10, None), strict=True):
        if UNKNOWN_WORD in " ".join(variants).casefold():
            wrong.append("an unknown word was released as it is")
        if rewrites_texts and text.casefold() in map(str.casefold, variants):
            wrong.append("a text was released as it is")
    if wrong:
        return structural(name, "REFUTED", "; ".join(dict.fromkeys(wrong)) + ".")
    sentence = f"unknown words are not released{subject.narrowly}"
    if not mechanism.cuts_texts:
        sentence = "only strings of the pool are released; a text that stands in it may come back"
    if mechanism.protects != "all":
        sentence += f"; as published it protects {mechanism.protects} only: the rest stays in clear"
    return structural(name, "NOT REFUTED", sentence + ".")


def determinism(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """Whether chance plays any part in what a mechanism makes of texts."""
    seeds = subject.rng.integers(1 << 62, size=3).tolist()
    runs = [_variants(subject.mechanism, 5, seed) for seed in seeds]
    sentence = "chance plays a part in what comes out."
    if runs[0] == runs[1] == runs[2]:
        sentence = (
            "the same text gives the same variants whatever the seed: without chance, whoever "
            "has the same sources can compute which texts lead to them."
        )
    return structural("chance", "NO CLAIM", sentence)


def _variants(
    mechanism: Mechanism, n: int, seed: int | None, batch_size: int = 100
) -> list[tuple[str, ...]]:
    """What comes out for ``TEXTS``; a mechanism of sets decides the number of variants."""
    n = 1 if isinstance(mechanism, SetMechanism) else n
    obfuscator = Obfuscator(mechanism, n=n, rng=seed, batch_size=batch_size)
    return [result.variants for result in obfuscator.obfuscate(TEXTS)]


# Mechanisms that move a text's sentence vector and release a string of a pool.


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
        witness = None
        sentence = (
            f"at {figures['points']:,} points for {len(texts)} pairs of strings no log-ratio of "
            "densities exceeds its bound."
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
        finding = Finding("density", claim.label, verdict, sentence, witness, figures, compared)
        findings.append(finding)
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

    together = _agreeing(batch(EQUAL_TEXTS))
    apart = _agreeing([batch(1)[0] for _ in range(EQUAL_TEXTS)])
    trials, risk = EQUAL_TEXTS // 2, RISK_OF_A_CHECK / 2
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
