"""Structural checks of the way from text to text: seeds, order, memory, accounts, pass-through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.mechanisms.base import Mechanism, PoolMechanism, TextMechanism, WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.audit.structure import plain_word
from sottovoce.privacy.audit.verdicts import STRUCTURE, Finding, Verdict
from sottovoce.randomness import Draws
from sottovoce.text import TextPipeline
from sottovoce.types import IntArray

UNKNOWN_WORD = "xqzzyvwk"
"""No space knows it."""
TEXTS = (
    "treatment for skin cancer",
    "divorce lawyer",
    f"doctor {UNKNOWN_WORD}",
    "Where can I find a shelter for women and children?",
    f"{UNKNOWN_WORD}, 42 ({UNKNOWN_WORD}-{UNKNOWN_WORD})!",
)


def order_and_seed(mechanism: Mechanism, words: IntArray | None, rng: Generator) -> Finding:
    """A seed decides everything: neither the batch nor the order changes anybody's result."""
    seed = int(rng.integers(1 << 62))
    runs = [
        [r.variants for r in Obfuscator(mechanism, n=3, rng=seed, batch_size=size).obfuscate(TEXTS)]
        for size in (1, 2, 100)
    ]
    wrong = [] if runs[0] == runs[1] == runs[2] else ["the batch size changes what is released"]
    if isinstance(mechanism, WordMechanism) and words is not None:
        low = replace(mechanism, epsilon=min(mechanism.epsilon, 1.0))
        order = rng.permutation(len(words))
        straight, mixed = (
            low.draw(words[rows], Draws([(_own(seed, row), 1) for row in rows]))
            for rows in (np.arange(len(words)), order)
        )
        if not np.array_equal(straight[order], mixed):
            wrong.append("the order of the words changes what is released")
    verdict: Verdict = "REFUTED" if wrong else "CONSISTENT"
    sentence = "; ".join(wrong) or "neither batch size nor order changes a seeded result"
    return Finding("order and seed", STRUCTURE, verdict, sentence + ".")


def _own(seed: int, row: int) -> Generator:
    return Generator(PCG64([seed, row]))


def no_memory(mechanism: WordMechanism, words: IntArray, rng: Generator) -> Finding:
    """What was obfuscated before must not change what comes later."""
    seed = int(rng.integers(1 << 62))
    before = mechanism.sample(words, 5, Generator(PCG64(seed)))
    list(Obfuscator(mechanism, n=3, rng=seed).obfuscate(TEXTS))
    same = np.array_equal(before, mechanism.sample(words, 5, Generator(PCG64(seed))))
    verdict: Verdict = "CONSISTENT" if same else "REFUTED"
    sentence = "texts obfuscated before change nothing."
    if not same:
        sentence = "texts obfuscated before change what is drawn: the law depends on private data."
    return Finding("data dependence", STRUCTURE, verdict, sentence)


def composition(mechanism: Mechanism) -> Finding:
    """N releases cost N times epsilon, N readings of one point once; no claim costs no number."""
    stated, wrong = mechanism.guarantee, []
    epsilon = stated.epsilon
    ways = [("independent", 3)]
    if isinstance(mechanism, NoiseMechanism) and len(mechanism.space.output) >= 3:
        ways.append(("once", 1))
    if epsilon is not None and abs(stated.loss(1.7, 3) - 3 * 1.7 * epsilon) > 1e-9 * epsilon:
        wrong.append("three releases are not stated to cost three times epsilon")
    text = None
    if isinstance(mechanism, WordMechanism):
        text = plain_word(mechanism, np.arange(min(50, mechanism.space.size)))
    for release, times in ways if text is not None else ():
        obfuscator = Obfuscator(mechanism, n=3, release=release, pipeline=TextPipeline())  # type: ignore[arg-type]
        (result,) = obfuscator.obfuscate([text or ""])
        due = None if epsilon is None else times * epsilon
        if result.spent is None or due is None:
            matches = result.spent == due
        else:
            matches = abs(result.spent - due) <= 1e-9 * due
        if not matches:
            wrong.append(f"three variants, {release}, are charged {result.spent}, not {due}")
    verdict: Verdict = "REFUTED" if wrong else "CONSISTENT"
    sentence = "; ".join(wrong)
    if not wrong:
        sentence = "no epsilon is charged, as none is promised"
        if epsilon is not None:
            sentence = f"three independent variants are charged {3 * epsilon:g} nats"
            sentence += f", three readings of one point {epsilon:g}" if len(ways) > 1 else ""
    return Finding("composition", STRUCTURE, verdict, sentence + ".")


def pass_through(mechanism: Mechanism) -> Finding:
    """Unknown words and whole texts never come out as they are; what stays in clear is said."""
    name, wrong = "pass-through", []
    for result in Obfuscator(mechanism, n=10).obfuscate(TEXTS):
        said = " ".join(result.variants).casefold()
        if UNKNOWN_WORD in said:
            wrong.append("an unknown word was released as it is")
        if isinstance(mechanism, TextMechanism) and result.text.casefold() in map(
            str.casefold, result.variants
        ):
            wrong.append("a text was released as it is")
    if wrong:
        return Finding(name, STRUCTURE, "REFUTED", "; ".join(dict.fromkeys(wrong)) + ".")
    sentence = "unknown words are not released"
    if isinstance(mechanism, PoolMechanism):
        sentence = "only strings of the pool are released; a text that stands in it may come back"
    if mechanism.protects != "all":
        sentence += f"; as published it protects {mechanism.protects} only: the rest stays in clear"
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence + ".")


def determinism(mechanism: TextMechanism, rng: Generator) -> Finding:
    """Whether chance plays any part in what a text mechanism gives."""
    runs = []
    for seed in rng.integers(1 << 62, size=3):
        obfuscator = Obfuscator(mechanism, n=5, rng=int(seed))
        runs.append([result.variants for result in obfuscator.obfuscate(TEXTS)])
    sentence = "chance plays a part in what comes out."
    if runs[0] == runs[1] == runs[2]:
        sentence = (
            "the same text gives the same variants whatever the seed: without chance, whoever "
            "has the same sources can compute which texts lead to them."
        )
    return Finding("chance", STRUCTURE, "NO CLAIM", sentence)
