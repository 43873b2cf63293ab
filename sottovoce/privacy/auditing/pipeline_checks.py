"""Checks of the way from text to text: seeds, order, memory, accounts, what passes through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.choices import Release
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.auditing.findings import Finding, Step, Subject, structural
from sottovoce.privacy.auditing.word_checks import plain_word
from sottovoce.randomness import Draws
from sottovoce.text import TextPipeline

UNKNOWN_WORD = "xqzzyvwk"
"""No space knows it."""
TEXTS = (
    "treatment for skin cancer",
    "divorce lawyer",
    f"doctor {UNKNOWN_WORD}",
    "Where can I find a shelter for women and children?",
    f"{UNKNOWN_WORD}, 42 ({UNKNOWN_WORD}-{UNKNOWN_WORD})!",
)


def order_and_seed(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """A seed decides everything: neither the batch nor the order changes anybody's result."""
    mechanism, words, rng = subject.mechanism, subject.words, subject.rng
    seed = int(rng.integers(1 << 62))
    runs = [_variants(mechanism, 3, seed, batch_size) for batch_size in (1, 2, 100)]
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
    sentence = "; ".join(wrong) or "neither batch size nor order changes a seeded result"
    return structural("order and seed", "REFUTED" if wrong else "CONSISTENT", sentence + ".")


def no_memory(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """What was obfuscated before must not change what comes later."""
    mechanism, seed = subject.mechanism, int(subject.rng.integers(1 << 62))
    before = mechanism.sample(subject.words, 5, Generator(PCG64(seed)))
    _variants(mechanism, 3, seed)
    after = mechanism.sample(subject.words, 5, Generator(PCG64(seed)))
    if np.array_equal(before, after):
        sentence = "texts obfuscated before change nothing."
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


def pass_through(subject: Subject[Mechanism], _: Step) -> list[Finding]:
    """Unknown words and whole texts never come out as they are; what stays in clear is said."""
    mechanism, name, wrong = subject.mechanism, "pass-through", []
    rewrites_texts = mechanism.cuts_texts and not mechanism.by_word
    for text, variants in zip(TEXTS, _variants(mechanism, 10, None), strict=True):
        if UNKNOWN_WORD in " ".join(variants).casefold():
            wrong.append("an unknown word was released as it is")
        if rewrites_texts and text.casefold() in map(str.casefold, variants):
            wrong.append("a text was released as it is")
    if wrong:
        return structural(name, "REFUTED", "; ".join(dict.fromkeys(wrong)) + ".")
    sentence = "unknown words are not released"
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
    """What comes out for ``TEXTS``."""
    obfuscator = Obfuscator(mechanism, n=n, rng=seed, batch_size=batch_size)
    return [result.variants for result in obfuscator.obfuscate(TEXTS)]
