"""Structural checks by drawing: returned originals, an epsilon without effect, shared noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.audit.chance import SHARE
from sottovoce.privacy.audit.fixtures import on_line
from sottovoce.privacy.audit.verdicts import STRUCTURE, Finding, Verdict
from sottovoce.randomness import Draws
from sottovoce.spaces.distances import Distances
from sottovoce.statistics import at_least, at_most
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray

LOW_AND_HIGH = (1.0, 50.0)
"""Epsilons between which the law must change."""
BATCHES = 8
ROWS = 64
TEXTS = 64


def returned_originals(
    mechanism: WordMechanism, words: IntArray, draws: int, rng: Generator
) -> Finding | None:
    """Whether words come back as they are more often than noise, or the stated law, explains."""
    name = "returned originals"
    excess: list[str] = []
    figures: dict[str, float | int | None] = {"draws": draws}
    for label, factor in (("", 1.0), (" at a tenth of epsilon", 0.1)):
        tried = replace(mechanism, epsilon=mechanism.epsilon * factor)
        ids = words[np.arange(draws) % len(words)]
        hits = int((tried.draw(ids, Draws([(rng, draws)])) == ids).sum())
        law = tried.log_probabilities(words)
        if law is not None:
            own = law[np.arange(len(words)), words]
            expected = float(np.exp(own)[np.arange(draws) % len(words)].mean())
            above = bool(at_least(hits, draws, SHARE / 4) > expected + 1e-9)
        elif isinstance(tried, NoiseMechanism):
            again = Draws([(rng, draws)])
            settled = int((tried.settle(tried.perturb(ids, again), again) == ids).sum())
            expected = settled / draws
            limit = at_most(settled, draws, SHARE / 4)
            above = bool(at_least(hits, draws, SHARE / 4) > limit)
        else:
            return None
        figures["returned" if not label else "returned_low"] = hits / draws
        figures["expected" if not label else "expected_low"] = expected
        if above:
            excess.append(f"{hits / draws:.1%} of the words came back{label}, {expected:.1%} would")
    if excess:
        sentence = "; ".join(excess) + ": the mechanism returns originals."
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = (
        f"{figures['returned']:.1%} of {draws:,} words came back as they were, as many as the "
        f"{'law' if law is not None else 'noise'} explains."
    )
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def effect_of_epsilon(
    mechanism: WordMechanism, words: IntArray, draws: int, rng: Generator
) -> Finding:
    """The law at epsilon 1 and at 50 must differ, or epsilon means nothing."""
    name = "effect of epsilon"
    low, high = (replace(mechanism, epsilon=epsilon) for epsilon in LOW_AND_HIGH)
    laws = low.log_probabilities(words), high.log_probabilities(words)
    verdict: Verdict
    if laws[0] is not None and laws[1] is not None:
        apart = float(np.abs(np.exp(laws[0]) - np.exp(laws[1])).sum(axis=1).max() / 2)
        verdict, how = "CONSISTENT", "by the stated law"
    else:
        # Neighbours a fifth apart: at epsilon 1 a word gets lost among them, at 50 it does not.
        try:
            near = on_line(replace(mechanism, epsilon=5.0)).space
        except UsageError:
            sentence = "not looked at: it needs more words than the line of words has."
            return Finding(name, STRUCTURE, "NOT REFUTED", sentence)
        middle = np.full(draws, near.size // 2)
        hits = [
            int((replace(each, space=near).draw(middle, Draws([(rng, draws)])) == middle).sum())
            for each in (low, high)
        ]
        risk = SHARE / 4
        down, up = at_least(hits, draws, risk), at_most(hits, draws, risk)
        apart = float(max(0.0, down[1] - up[0], down[0] - up[1]))
        verdict, how = "NOT REFUTED", f"by {draws:,} draws on a line of words"
    figures: dict[str, float | int | None] = {"total_variation": apart}
    if apart <= 1e-9:
        sentence = f"epsilon is ignored: {how}, 1 and 50 cannot be told apart."
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = f"{how}, epsilon 1 and 50 differ by {apart:.2g} in total variation or more."
    return Finding(name, STRUCTURE, verdict, sentence, None, figures)


def batch_independence(mechanism: WordMechanism, words: IntArray, rng: Generator) -> Finding:
    """Equal inputs in one batch must not agree more often than inputs of separate batches."""
    name = "batch independence"
    low = replace(mechanism, epsilon=min(mechanism.epsilon, 1 / typical_distance(mechanism, rng)))
    word = int(words[0])
    total = BATCHES * ROWS
    batches = [_batch(low, word, rng) for _ in range(2 * BATCHES)]
    apart = sum(int((a == b).sum()) for a, b in zip(batches[::2], batches[1::2], strict=True))
    together = {"draw": sum(int((each[::2] == each[1::2]).sum()) for each in batches)}
    sampled = low.sample(np.array([word, word]), total, rng)
    together["sample"] = int((sampled[:, 0] == sampled[:, 1]).sum())
    trials = {"draw": total, "sample": total}
    if isinstance(low, NoiseMechanism):
        points = low.perturb(np.full(ROWS, word), Draws([(rng, ROWS)]))
        if len(np.unique(points, axis=0)) < ROWS:
            sentence = "one noise vector serves several words of a batch."
            return Finding(name, STRUCTURE, "REFUTED", sentence)
    text = plain_word(low, words)
    if text is not None:
        seed = int(rng.integers(1 << 62))
        runs = Obfuscator(low, n=2, pipeline=TextPipeline(), rng=seed).obfuscate([text] * TEXTS)
        said = [result.variants for result in runs]
        together["variants of a text"] = sum(one == two for one, two in said)
        pairs = zip(said[::2], said[1::2], strict=True)
        together["texts of a batch"] = sum(one[0] == two[0] for one, two in pairs)
        trials |= {"variants of a text": TEXTS, "texts of a batch": TEXTS // 2}
    risk = SHARE / (2 * len(trials))
    limit = at_most(apart, total, risk)
    shared = [way for way, hits in together.items() if at_least(hits, trials[way], risk) > limit]
    figures: dict[str, float | int | None] = {"separate": apart / total}
    figures |= {way: hits / trials[way] for way, hits in together.items()}
    if shared:
        sentence = (
            f"equal words agree more often in one batch than across batches ({', '.join(shared)}): "
            "they share their noise."
        )
        return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = (
        f"equal words agree in {together['draw'] / total:.1%} of the cases in one batch, and in "
        f"{apart / total:.1%} across batches: no sign of shared noise in {', '.join(trials)}."
    )
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def _batch(mechanism: WordMechanism, word: int, rng: Generator) -> IntArray:
    """One batch of the same word, its rows from two generators."""
    seeds = rng.integers(1 << 62, size=2)
    units = [(Generator(PCG64(int(seed))), ROWS // 2) for seed in seeds]
    return mechanism.draw(np.full(ROWS, word), Draws(units))


def typical_distance(mechanism: WordMechanism, rng: Generator) -> float:
    """The median Euclidean distance of random pairs."""
    one, other = rng.integers(mechanism.space.size, size=(2, 64))
    far: Float64Array = Distances(mechanism.space, mechanism.space.output.ids).pairs(one, other)
    positive = far[far > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def plain_word(mechanism: WordMechanism, words: IntArray) -> str | None:
    """A word that survives as one known token when it is a text."""
    pipeline = TextPipeline()
    for word in mechanism.space.words(words):
        if len(pipeline.prepare(word, mechanism.space).ids) == 1:
            return word
    return None
