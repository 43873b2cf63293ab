"""Checks of mechanisms that hide a text in a set of public strings: every pair, and the draws."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from sottovoce.mechanisms.cover import Cover
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.auditing.findings import (
    IN_FULL_SPACE,
    RISK_OF_A_CHECK,
    TOLERANCE,
    Figures,
    Finding,
    Step,
    Subject,
    Witness,
    structural,
)
from sottovoce.randomness import Draws, as_generator
from sottovoce.statistics import clopper_pearson
from sottovoce.types import Float64Array, IntArray

BLOCKS = 20
"""Parts of the pool, each as likely to hold a decoy, by which draws are counted."""
FEWEST_EXPECTED = 5
EQUAL_TEXTS = 64
ORDERED = 1000
"""Releases whose order is looked at."""


def every_pair(subject: Subject[Cover], _: Step) -> list[Finding]:
    """The largest log-ratio of any set between any two strings of the pool, by the exact law."""
    law = subject.mechanism.law
    loss, one, two = max(law.worst_pairs())
    pairs = law.size * (law.size - 1)
    figures: Figures = {"pairs": pairs, "tight_epsilon": loss, "largest_log_ratio": loss}
    hidden = subject.mechanism.hides
    extent = f"{pairs:,} ordered pairs of {law.size:,} {hidden}s and every set of {law.k}, exactly:"
    findings = []
    for claim in subject.claims:
        if loss <= claim.epsilon + TOLERANCE:
            sentence = (
                f"{extent} none exceeds its bound; the epsilon really reached is {loss:.4g} of "
                f"{claim.epsilon:g} claimed."
            )
            findings.append(
                Finding("exact, all pairs", claim.label, "CONSISTENT", sentence, None, figures)
            )
            continue
        sentence = f"{extent} a set that holds one {hidden} and not the other exceeds the bound."
        witness = _witness(subject.mechanism, one, two, loss, claim.epsilon)
        findings.append(
            Finding("exact, all pairs", claim.label, "REFUTED", sentence, witness, figures)
        )
    return findings


def _witness(mechanism: Cover, one: int, two: int, loss: float, bound: float) -> Witness:
    """A set that holds the one string and not the other."""
    law = mechanism.law
    decoys = [place for place in range(law.k + 1) if place not in (one, two)][: law.k - 1]
    chances = np.exp(law.log_law(np.array([[one, *decoys]]), np.array([one, two])))[0]
    output = f"a set of {law.k} {mechanism.hides}s that holds the first and not the second"
    probabilities = (float(chances[0]), float(chances[1]))
    labels = mechanism.label(one), mechanism.label(two)
    return Witness(*labels, output, probabilities, loss, bound)


def small_pool(subject: Subject[Cover], _: Step) -> list[Finding]:
    """On a few strings every set is listed: the law must sum to 1, and draws must follow it."""
    name, mechanism = "every set of a small pool", _small(subject.mechanism)
    law, size = mechanism.law, len(mechanism.pool)
    sets = np.array(
        [
            members
            for members in combinations(range(size), law.k)
            if len({*mechanism.law_places(np.array(members)).tolist()}) == law.k
        ]
    )
    table = np.exp(mechanism.log_law(sets))
    figures: Figures = {"strings": size, "sets": len(sets), "draws": subject.draws}
    if abs(table.sum(axis=0) - 1).max() > TOLERANCE:
        return structural(name, "REFUTED", "the stated law does not sum to 1.", figures)
    with np.errstate(divide="ignore"):
        logs = np.log(mechanism.by_law_place(table[table.any(axis=1)]))
    finite = np.isfinite(logs).all()
    widest = float((logs.max(axis=1) - logs.min(axis=1)).max()) if finite else math.inf
    if not (widest == law.epsilon or abs(widest - law.epsilon) <= TOLERANCE):
        sentence = (
            f"the largest log-ratio of {len(sets)} listed sets is {widest:.6g}, not "
            f"{law.epsilon:.6g} as the law states."
        )
        return structural(name, "REFUTED", sentence, figures)
    numbers = {tuple(row): number for number, row in enumerate(sets.tolist())}
    for hidden in (0, size - 1):
        drawn = _drawn(mechanism, hidden, subject.draws, subject)
        counts = np.bincount([numbers[tuple(row)] for row in drawn.tolist()], minlength=len(sets))
        if (pvalue := _fit(counts, table[:, hidden])) < RISK_OF_A_CHECK / 2:
            sentence = f"{subject.draws:,} draws do not fit the law of the sets (p = {pvalue:.1g})."
            return structural(name, "REFUTED", sentence, figures)
    sentence = (
        f"{len(sets)} sets of {law.k} out of {size} strings: the law sums to 1, its largest "
        f"log-ratio is as stated, and {subject.draws:,} draws of two strings fit it."
    )
    return structural(name, "NOT REFUTED", sentence, figures)


def _small(mechanism: Cover) -> Cover:
    """The same mechanism on so few strings that all sets can be listed."""
    k = min(mechanism.k, 2)
    return mechanism.on_few(max(6, math.ceil(k / mechanism.p) + 1), k=k)


def draws_follow_law(subject: Subject[Cover], _: Step) -> list[Finding]:
    """On the real pool: how often the string itself is in, and from where decoys come."""
    name, mechanism = "draws follow the law", subject.mechanism
    law, draws = mechanism.law, max(1, subject.draws // IN_FULL_SPACE)
    place = int(subject.rng.integers(len(mechanism.pool)))
    strings = _drawn(mechanism, place, draws, subject)
    included = (strings == place).any(axis=1)
    drawn = np.sort(mechanism.law_places(strings), axis=1)
    hidden = int(mechanism.law_places(np.array([place]))[0])
    if ((drawn == hidden).any(axis=1) != included).any():
        sentence = f"another string stands for the {mechanism.hides} of a text."
        return structural(name, "REFUTED", sentence, {"draws": draws})
    figures: Figures = {"draws": draws, "included": float(included.mean())}
    if not (np.diff(drawn, axis=1) > 0).all():
        return structural(name, "REFUTED", f"a set holds a {mechanism.hides} twice.", figures)
    low, high = clopper_pearson(included.sum(), draws, 1 - RISK_OF_A_CHECK / 2)
    if not low <= law.p <= high:
        sentence = (
            f"the text's own string is in {included.mean():.3g} of {draws:,} sets, not in {law.p:g}"
        )
        return structural(name, "REFUTED", sentence + " as stated.", figures)
    if law.k > 1:
        # One decoy of each set, any: these are independent of each other.
        decoys = drawn.copy()
        decoys[included] = np.sort(np.where(decoys == hidden, -1, decoys)[included], axis=1)
        first = included.astype(np.int64)
        columns = first + (subject.rng.random(draws) * (law.k - first)).astype(np.int64)
        places = decoys[np.arange(draws), columns]
        blocks, chances = _blocks(law.decoy_chances(hidden), draws)
        if (pvalue := _fit(np.bincount(blocks[places], minlength=len(chances)), chances)) < (
            RISK_OF_A_CHECK / 2
        ):
            sentence = f"decoys do not come from the whole pool as stated (p = {pvalue:.1g})."
            return structural(name, "REFUTED", sentence, figures)
    sentence = (
        f"{draws:,} sets of one string: it is in {included.mean():.3g} of them ({law.p:g} stated), "
        "and decoys come from all parts of the pool as they should."
    )
    return structural(name, "NOT REFUTED", sentence, figures)


def _blocks(chances: Float64Array, draws: int) -> tuple[IntArray, Float64Array]:
    """Parts of the pool that are about equally likely to hold a decoy, and how likely each is."""
    # Not by place: neighbors in a file may have something in common that an error spares.
    order = as_generator(0).permutation(len(chances))
    count = min(BLOCKS, len(chances) - 1, max(2, draws // (10 * FEWEST_EXPECTED)))
    blocks = np.empty(len(chances), dtype=np.int64)
    blocks[order] = np.minimum(np.cumsum(chances[order]) * count, count - 1).astype(np.int64)
    return blocks, np.bincount(blocks, weights=chances, minlength=count).astype(np.float64)


def random_order(subject: Subject[Cover], _: Step) -> list[Finding]:
    """Where the text's own string stands among what is released: anywhere, equally often."""
    name, mechanism = "order", subject.mechanism
    text = mechanism.pool.strings[int(subject.rng.integers(len(mechanism.pool)))]
    plain = replace(mechanism, m=1)
    runs = Obfuscator(plain, rng=int(subject.rng.integers(1 << 62))).obfuscate([text] * ORDERED)
    places = [run.variants.index(text) for run in runs if text in run.variants]
    counts = np.bincount(np.array(places, dtype=np.int64) * min(BLOCKS, plain.k) // plain.k)
    chances = np.bincount(np.arange(plain.k) * min(BLOCKS, plain.k) // plain.k) / plain.k
    counts = np.pad(counts, (0, len(chances) - len(counts)))
    figures: Figures = {"releases": ORDERED, "included": len(places)}
    if len(places) and _fit(counts, chances) < RISK_OF_A_CHECK:
        sentence = "the place of the text's own string is not random: the order gives it away."
        return structural(name, "REFUTED", sentence, figures)
    sentence = f"in {len(places)} releases the text's own string stands anywhere, equally often."
    return structural(name, "NOT REFUTED", sentence, figures)


def batch_independence(subject: Subject[Cover], _: Step) -> list[Finding]:
    """Equal texts of one batch must not share their decoys."""
    mechanism = replace(subject.mechanism, m=1)
    text = mechanism.pool.strings[0]
    seed = int(subject.rng.integers(1 << 62))
    runs = list(Obfuscator(mechanism, rng=seed).obfuscate([text] * EQUAL_TEXTS))
    shared = [
        len({*one.variants} & {*two.variants} - {text})
        for one, two in zip(runs[::2], runs[1::2], strict=True)
    ]
    # Two independent sets of k - 1 decoys rarely have more than this in common.
    usual = mechanism.k**2 * float((mechanism.law.matched_prior**2).sum())
    limit = usual + 6 * math.sqrt(usual / len(shared)) + 1 / len(shared) * 6
    figures: Figures = {"shared": float(np.mean(shared)), "expected": usual}
    sentence = f"the sets of two equal texts share {np.mean(shared):.2g} decoys on average"
    if np.mean(shared) > limit:
        return structural("batch independence", "REFUTED", f"{sentence}, not {usual:.2g}.", figures)
    return structural("batch independence", "NOT REFUTED", f"{sentence}, by chance.", figures)


def _drawn(mechanism: Cover, hidden: int, count: int, subject: Subject[Cover]) -> IntArray:
    return mechanism.draw(np.full(count, hidden), Draws([(subject.rng, count)]))


def _fit(counts: IntArray, chances: Float64Array) -> float:
    """The p-value of Pearson's chi-square; outcomes that are seldom expected are put together."""
    from scipy.stats import chisquare

    if counts[chances == 0].any():
        return 0.0
    order = np.argsort(chances)
    expected = chances[order] * counts.sum()
    # Outcomes from the least likely on, until enough are expected of each bunch.
    bunches = (np.cumsum(expected) // FEWEST_EXPECTED).astype(np.int64)
    bunches = np.where(expected >= FEWEST_EXPECTED, len(chances) + np.arange(len(chances)), bunches)
    _, bunches = np.unique(bunches, return_inverse=True)
    seen, due = np.bincount(bunches, counts[order]), np.bincount(bunches, expected)
    keep = due > 0
    if keep.sum() < 2:
        return 1.0
    return float(chisquare(seen[keep], due[keep] * seen[keep].sum() / due[keep].sum()).pvalue)
