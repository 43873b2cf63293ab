"""Checks of a mechanism's words, whatever it claims: its stated law, and its draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.auditing.exact import close_words, law_of
from sottovoce.privacy.auditing.findings import (
    RISK_OF_A_CHECK,
    Figures,
    Finding,
    Step,
    Subject,
    Verdict,
    Witness,
    structural,
)
from sottovoce.privacy.auditing.sampled_bounds import on_line
from sottovoce.privacy.word_samples import euclidean
from sottovoce.randomness import Draws, is_secure
from sottovoce.statistics import at_least, at_most
from sottovoce.text import TextPipeline
from sottovoce.types import IntArray

NEAR = 60
SHARES = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
"""Shares of a law's mass at which draws are compared with it."""
SMALLEST_DRAW = 2.0**-53
SMALLEST_EXPONENT = -745.0
ROUNDING = 1e-9
LOW = " at a tenth of epsilon"
LOW_AND_HIGH = (1.0, 50.0)
"""Epsilons between which the law must change."""
BATCHES = 8
ROWS = 64
TEXTS = 64


# The stated law.


def never_itself(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """A word that others can come out as, but itself cannot, excludes every finite epsilon."""
    name, space, words = "never itself", subject.mechanism.space, subject.few_words
    unchanged = law_of(subject.mechanism, words)[np.arange(len(words)), words]
    silent = words[np.isneginf(unchanged) & np.isin(words, space.output.ids)]
    figures: Figures = {"words": len(words), "never": len(silent)}
    for word in silent:
        others = close_words(space, np.array([word]), NEAR)[0]
        chances = np.exp(law_of(subject.mechanism, others)[:, word])
        best = int(np.argmax(chances))
        if chances[best] > 0:
            sentence = (
                f"{len(silent)} of {len(words)} words come out for others, never for themselves."
            )
            ids = np.array([others[best], word, word])
            return _ruled_out(subject, name, sentence, ids, float(chances[best]), figures)
    sentence = f"each of {len(words)} words can come out as itself."
    if len(silent):
        sentence = (
            f"{len(silent)} of {len(words)} words never come out as themselves; nor do others."
        )
    return structural(name, "NOT REFUTED", sentence, figures)


def support(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """An output that one word can have and another cannot excludes every finite epsilon."""
    name, words = "support", subject.few_words
    law = law_of(subject.mechanism, words)
    possible = np.isfinite(law)
    of_some, of_all = possible.any(axis=0), possible.all(axis=0)
    figures: Figures = {
        "words": len(words),
        "outputs_of_some": int(of_some.sum()),
        "outputs_of_all": int(of_all.sum()),
    }
    torn = np.flatnonzero(of_some & ~of_all)
    if not len(torn):
        sentence = f"{len(words)} words all have the same {int(of_all.sum()):,} possible outputs."
        return structural(name, "NOT REFUTED", sentence, figures)
    sentence = "which outputs are possible depends on the input: an output rules inputs out."
    if subject.claims and all(claim.guarantee.notion == "group" for claim in subject.claims):
        sentence += " The claim says so: the group is released."
        return structural(name, "CONSISTENT", sentence, figures)
    # The likeliest output that not every word has, and a word that lacks it.
    row, column = np.unravel_index(np.argmax(law[:, torn]), (len(words), len(torn)))
    output = torn[column]
    lacking = np.flatnonzero(~possible[:, output])[0]
    ids = np.array([words[row], words[lacking], output])
    return _ruled_out(subject, name, sentence, ids, float(np.exp(law[row, output])), figures)


def _ruled_out(
    subject: Subject[WordMechanism],
    check: str,
    sentence: str,
    ids: IntArray,
    chance: float,
    figures: Figures,
) -> list[Finding]:
    """Two inputs and an output that the second cannot have refute all claims but group claims."""
    findings = []
    for claim in subject.claims:
        if claim.guarantee.notion != "group":
            bound = float(claim.bounds(subject.mechanism, ids[:1], ids[1:2])[0])
            space = subject.mechanism.space
            witness = Witness.of_words(space, ids, (chance, 0.0), np.inf, bound)
            findings.append(Finding(check, claim.label, "REFUTED", sentence, witness, figures))
    return findings or structural(check, "NO CLAIM", sentence, figures)


def draws_follow_law(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """Whether what is drawn has the stated law.

    For each word, outputs are put in the order of their probability; how many draws fall among
    the likeliest, up to several shares of the mass, must fit (exact binomial intervals).
    """
    name, mechanism, words = "draws follow the law", subject.mechanism, subject.few_words
    draws = subject.draws
    drawn = mechanism.sample(words, draws, subject.rng)
    risk = RISK_OF_A_CHECK / (2 * len(words) * len(SHARES))
    figures: Figures = {"draws": draws, "words": len(words)}
    for word, column, row in zip(words, drawn.T, law_of(mechanism, words), strict=True):
        counts = np.bincount(column, minlength=len(row))
        if counts[np.isneginf(row)].any():
            sentence = "an output was drawn that the stated law excludes."
            return structural(name, "REFUTED", sentence, figures)
        order = np.argsort(-row, kind="stable")
        mass = np.minimum(np.cumsum(np.exp(row[order])), 1.0)
        ends = np.minimum(np.searchsorted(mass, SHARES), len(row) - 1)
        hits, chances = np.cumsum(counts[order])[ends], mass[ends]
        low, high = at_least(hits, draws, risk), at_most(hits, draws, risk)
        # Rounding of the cumulated mass is no finding.
        if ((chances < low - ROUNDING) | (chances > high + ROUNDING)).any():
            worst = int(np.argmax(np.abs(hits / draws - chances)))
            sentence = (
                f"for '{mechanism.space.word(int(word))}', {hits[worst] / draws:.3g} of {draws:,} "
                f"draws fell among its likeliest outputs, which have probability "
                f"{chances[worst]:.3g} by the stated law."
            )
            return structural(name, "REFUTED", sentence, figures)
    sentence = f"{draws:,} draws of each of {len(words)} words fit the stated law."
    return structural(name, "NOT REFUTED", sentence, figures)


def underflow(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """How many possible outputs are too improbable for floating-point numbers."""
    law = law_of(subject.mechanism, subject.few_words)
    possible = law[np.isfinite(law)]
    tiny = int((possible < np.log(SMALLEST_DRAW)).sum())
    lost = int((possible < SMALLEST_EXPONENT).sum())
    delta = law.shape[1] * SMALLEST_DRAW
    sentence = (
        f"{tiny:,} of {len(possible):,} possible outputs have a probability below 2^-53, of which "
        f"{lost:,} vanish in float64: bounds hold up to a delta of {delta:.1g}."
    )
    figures: Figures = {"outputs": len(possible), "below_2^-53": tiny}
    figures |= {"vanishing": lost, "delta": delta}
    return structural("underflow", "NOT REFUTED", sentence, figures)


# Draws.


@dataclass(frozen=True)
class _Returned:
    """How often words came back as they were, and how often they should have."""

    name: str
    """Of its figures."""
    where: str
    draws: int
    share: float
    expected: float
    too_often: bool


def returned_originals(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """Whether words come back as they are more often than noise, or the stated law, explains."""
    name, mechanism = "returned originals", subject.mechanism
    if mechanism.has_law:
        compared, explains = _returned_by_law(subject), "law"
    elif isinstance(mechanism, NoiseMechanism):
        compared, explains = _returned_by_noise(subject), "noise"
    else:
        return []
    figures: Figures = {"draws": compared[0].draws}
    for tried in compared:
        figures[f"returned{tried.name}"] = tried.share
        figures[f"expected{tried.name}"] = tried.expected
    excess = [
        f"{tried.share:.1%} of the words came back{tried.where}, {tried.expected:.1%} would"
        for tried in compared
        if tried.too_often
    ]
    if excess:
        sentence = "; ".join(excess) + ": the mechanism returns originals."
        return structural(name, "REFUTED", sentence, figures)
    likewise = ", also".join([compared[1].where, *(LOW for _ in compared[2:])])
    sentence = (
        f"{compared[0].share:.1%} of {compared[0].draws:,} words came back as they were, as many "
        f"as the {explains} explains; likewise{likewise}."
    )
    return structural(name, "NOT REFUTED", sentence, figures)


def _returned_by_law(subject: Subject[WordMechanism]) -> list[_Returned]:
    words, draws, rng = subject.few_words, subject.few_draws // 2, subject.rng
    places, compared = np.arange(draws) % len(words), []
    for name, where, factor in (("", "", 1.0), ("_low", LOW, 0.1)):
        tried = replace(subject.mechanism, epsilon=subject.mechanism.epsilon * factor)
        hits = int((tried.draw(words[places], Draws([(rng, draws)])) == words[places]).sum())
        unchanged = np.exp(law_of(tried, words)[np.arange(len(words)), words])
        expected = float(unchanged[places].mean())
        too_often = bool(at_least(hits, draws, RISK_OF_A_CHECK / 4) > expected + ROUNDING)
        compared.append(_Returned(name, where, draws, hits / draws, expected, too_often))
    return compared


def _returned_by_noise(subject: Subject[WordMechanism]) -> list[_Returned]:
    """Few draws as the mechanism is; more with fewer words to be released, also at low epsilon."""
    whole, narrow = (
        cast("NoiseMechanism", mechanism) for mechanism in (subject.mechanism, subject.narrow)
    )
    low = replace(narrow, epsilon=narrow.epsilon / 10)
    few, many, where = subject.few_draws // 20, subject.few_draws // 2, subject.narrowly
    return [
        _against_noise(subject, whole, few, "", ""),
        _against_noise(subject, narrow, many, "_narrow", where or " in more draws"),
        _against_noise(subject, low, many, "_low", where + LOW),
    ]


def _against_noise(
    subject: Subject[WordMechanism], tried: NoiseMechanism, draws: int, name: str, where: str
) -> _Returned:
    """What ``draw`` gives, against what comes of the noisy point alone, by a sign test.

    Both get the same random numbers. So a sound mechanism gives the same words, and a broken one
    differs soon; but a mechanism may use its numbers otherwise, and a GPU makes its own: the test
    holds for any two rows of the same law.
    """
    ids = np.resize(subject.few_words, draws)
    one, same = _repeated(subject.rng, draws, tried.draws_on_gpu(is_secure(subject.rng)))
    drawn = tried.draw(ids, one) == ids
    settled = tried.settle(tried.perturb(ids, same), same) == ids
    more, different = int((drawn & ~settled).sum()), int((drawn != settled).sum())
    too_often = different > 0 and bool(at_least(more, different, RISK_OF_A_CHECK / 4) > 1 / 2)
    return _Returned(name, where, draws, float(drawn.mean()), float(settled.mean()), too_often)


def _repeated(rng: Generator, count: int, on_gpu: bool) -> tuple[Draws, Draws]:
    """The same random numbers twice; what a GPU makes itself cannot be repeated."""
    if on_gpu:
        return Draws([(rng, count)]), Draws([(rng, count)])
    seed = int(rng.integers(1 << 62))
    one, same = (Draws([(Generator(PCG64(seed)), count)]) for _ in range(2))
    return one, same


def effect_of_epsilon(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """The law at epsilon 1 and at 50 must differ, or epsilon means nothing."""
    name, words, draws = "effect of epsilon", subject.few_words, subject.few_draws
    low, high = (replace(subject.mechanism, epsilon=epsilon) for epsilon in LOW_AND_HIGH)
    verdict: Verdict
    if low.has_law and high.has_law:
        one, other = np.exp(law_of(low, words)), np.exp(law_of(high, words))
        apart = float(np.abs(one - other).sum(axis=1).max() / 2)
        verdict, how = "CONSISTENT", "by the stated law"
    else:
        # Neighbours a fifth apart: at epsilon 1 a word gets lost among them, at 50 it does not.
        try:
            near = on_line(replace(subject.mechanism, epsilon=5.0)).space
        except UsageError:
            sentence = "not looked at: it needs more words than the line of words has."
            return structural(name, "NOT REFUTED", sentence)
        middle = np.full(draws, near.size // 2)
        hits = []
        for tried in (replace(low, space=near), replace(high, space=near)):
            drawn = tried.draw(middle, Draws([(subject.rng, draws)]))
            hits.append(int((drawn == middle).sum()))
        down, up = (bound(hits, draws, RISK_OF_A_CHECK / 4) for bound in (at_least, at_most))
        apart = float(max(0.0, down[1] - up[0], down[0] - up[1]))
        verdict, how = "NOT REFUTED", f"by {draws:,} draws on a line of words"
    figures: Figures = {"total_variation": apart}
    if apart <= ROUNDING:
        sentence = f"epsilon is ignored: {how}, 1 and 50 cannot be told apart."
        return structural(name, "REFUTED", sentence, figures)
    sentence = f"{how}, epsilon 1 and 50 differ by {apart:.2g} in total variation or more."
    return structural(name, verdict, sentence, figures)


def batch_independence(subject: Subject[WordMechanism], _: Step) -> list[Finding]:
    """Equal inputs in one batch must not agree more often than inputs of separate batches."""
    name, mechanism, rng = "batch independence", subject.narrow, subject.rng
    low = replace(mechanism, epsilon=min(mechanism.epsilon, 1 / _typical_distance(mechanism, rng)))
    word, total = int(subject.few_words[0]), BATCHES * ROWS
    # How often equal words agree: across batches, and together in one batch.
    batches = [_batch(low, word, rng) for _ in range(2 * BATCHES)]
    apart = sum(int((a == b).sum()) for a, b in zip(batches[::2], batches[1::2], strict=True))
    together = {"draw": sum(int((batch[::2] == batch[1::2]).sum()) for batch in batches)}
    sampled = low.sample(np.array([word, word]), total, rng)
    together["sample"] = int((sampled[:, 0] == sampled[:, 1]).sum())
    trials = {"draw": total, "sample": total}
    if isinstance(low, NoiseMechanism):
        points = low.perturb(np.full(ROWS, word), Draws([(rng, ROWS)]))
        if len(np.unique(points, axis=0)) < ROWS:
            return structural(name, "REFUTED", "one noise vector serves several words of a batch.")
    text = plain_word(low, subject.few_words)
    if text is not None:
        seed = int(rng.integers(1 << 62))
        runs = Obfuscator(low, n=2, pipeline=TextPipeline(), rng=seed).obfuscate([text] * TEXTS)
        variants = [result.variants for result in runs]
        together["variants of a text"] = sum(one == two for one, two in variants)
        neighbours = zip(variants[::2], variants[1::2], strict=True)
        together["texts of a batch"] = sum(one[0] == two[0] for one, two in neighbours)
        trials |= {"variants of a text": TEXTS, "texts of a batch": TEXTS // 2}
    risk = RISK_OF_A_CHECK / (2 * len(trials))
    limit = at_most(apart, total, risk)
    shared = [way for way, hits in together.items() if at_least(hits, trials[way], risk) > limit]
    figures: Figures = {"separate": apart / total}
    figures |= {way: hits / trials[way] for way, hits in together.items()}
    if shared:
        sentence = (
            f"equal words agree more often in one batch than across batches ({', '.join(shared)}): "
            "they share their noise."
        )
        return structural(name, "REFUTED", sentence, figures)
    sentence = (
        f"equal words agree in {together['draw'] / total:.1%} of the cases in one batch, and in "
        f"{apart / total:.1%} across batches{subject.narrowly}: no sign of shared noise in "
        f"{', '.join(trials)}."
    )
    return structural(name, "NOT REFUTED", sentence, figures)


def _batch(mechanism: WordMechanism, word: int, rng: Generator) -> IntArray:
    """One batch of the same word, its rows from two generators."""
    seeds = rng.integers(1 << 62, size=2)
    units = [(Generator(PCG64(int(seed))), ROWS // 2) for seed in seeds]
    return mechanism.draw(np.full(ROWS, word), Draws(units))


def _typical_distance(mechanism: WordMechanism, rng: Generator) -> float:
    """The median Euclidean distance of random pairs."""
    one, other = rng.integers(mechanism.space.size, size=(2, 64))
    far = euclidean(mechanism.space, one, other)
    return float(np.median(far[far > 0])) if (far > 0).any() else 1.0


def plain_word(mechanism: WordMechanism, words: IntArray) -> str | None:
    """A word that survives as one known token when it is a text."""
    pipeline = TextPipeline()
    for word in mechanism.space.words(words):
        if len(pipeline.prepare(word, mechanism.space).ids) == 1:
            return word
    return None
