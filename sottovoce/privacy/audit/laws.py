"""Structural checks of a stated law: never itself, differing supports, draws, underflow."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.audit.chance import SHARE
from sottovoce.privacy.audit.claims import Claim
from sottovoce.privacy.audit.exact import neighbours
from sottovoce.privacy.audit.verdicts import STRUCTURE, Finding, Witness
from sottovoce.statistics import at_least, at_most
from sottovoce.types import Float64Array, IntArray

NEAR = 60
NEVER_ITSELF = "never itself"
SUPPORT = "support"
SHARES = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
"""Shares of a law's mass at which draws are compared with it."""
SMALLEST_DRAW = 2.0**-53
SMALLEST_EXPONENT = -745.0


def never_itself(
    mechanism: WordMechanism, claims: list[Claim], words: IntArray, law: Float64Array
) -> list[Finding]:
    """A word that others can come out as, but itself cannot, excludes every finite epsilon."""
    own = law[np.arange(len(words)), words]
    silent = words[np.isneginf(own) & np.isin(words, mechanism.space.output.ids)]
    figures: dict[str, float | int | None] = {"words": len(words), "never": len(silent)}
    for word in silent:
        others = neighbours(mechanism, np.array([word]), NEAR)[0]
        rows = mechanism.log_probabilities(others)
        assert rows is not None  # noqa: S101 - only closed forms come here
        best = int(np.argmax(rows[:, word]))
        chance = float(np.exp(rows[best, word]))
        if chance == 0:
            continue
        sentence = f"{len(silent)} of {len(words)} words come out for others, never for themselves."
        covered = [claim for claim in claims if claim.guarantee.notion != "group"]
        ids = np.array([others[best], word, word])
        return _refuted(mechanism, NEVER_ITSELF, covered, sentence, ids, chance, figures)
    sentence = f"each of {len(words)} words can come out as itself."
    if len(silent):
        sentence = (
            f"{len(silent)} of {len(words)} words never come out as themselves; nor do others."
        )
    return [Finding(NEVER_ITSELF, STRUCTURE, "NOT REFUTED", sentence, None, figures)]


def support(
    mechanism: WordMechanism, claims: list[Claim], words: IntArray, law: Float64Array
) -> list[Finding]:
    """An output that one word can have and another cannot excludes every finite epsilon."""
    possible = np.isfinite(law)
    common = possible.all(axis=0)
    torn = np.flatnonzero(possible.any(axis=0) & ~common)
    figures: dict[str, float | int | None] = {
        "words": len(words),
        "outputs_of_some": int(possible.any(axis=0).sum()),
        "outputs_of_all": int(common.sum()),
    }
    if not len(torn):
        sentence = f"{len(words)} words all have the same {int(common.sum()):,} possible outputs."
        return [Finding(SUPPORT, STRUCTURE, "NOT REFUTED", sentence, None, figures)]
    place = np.unravel_index(np.argmax(law[:, torn]), (len(words), len(torn)))
    one, output = int(place[0]), int(torn[place[1]])
    other = int(np.flatnonzero(~possible[:, output])[0])
    sentence = "which outputs are possible depends on the input: an output rules inputs out."
    covered = [claim for claim in claims if claim.guarantee.notion != "group"]
    if claims and not covered:
        sentence += " The claim says so: the group is released."
        return [Finding(SUPPORT, STRUCTURE, "CONSISTENT", sentence, None, figures)]
    ids = np.array([words[one], words[other], output])
    chance = float(np.exp(law[one, output]))
    return _refuted(mechanism, SUPPORT, covered, sentence, ids, chance, figures)


def _refuted(
    mechanism: WordMechanism,
    check: str,
    claims: list[Claim],
    sentence: str,
    ids: IntArray,
    chance: float,
    figures: dict[str, float | int | None],
) -> list[Finding]:
    """Both inputs and the output that the second one cannot have refute each claim."""
    if not claims:
        return [Finding(check, STRUCTURE, "NO CLAIM", sentence, None, figures)]
    first, second, output = mechanism.space.words(ids)
    findings = []
    for claim in claims:
        bound = float(claim.bounds(mechanism, ids[:1], ids[1:2])[0])
        witness = Witness(first, second, f"'{output}'", (chance, 0.0), np.inf, bound)
        findings.append(Finding(check, claim.label, "REFUTED", sentence, witness, figures))
    return findings


def draws_follow_law(
    mechanism: WordMechanism, words: IntArray, law: Float64Array, draws: int, rng: Generator
) -> Finding:
    """Whether what is drawn has the stated law.

    For each word, outputs are put in the order of their probability; how many draws fall among
    the likeliest, up to several shares of the mass, must fit (exact binomial intervals).
    """
    name = "draws follow the law"
    drawn = mechanism.sample(words, draws, rng)
    risk = SHARE / (2 * len(words) * len(SHARES))
    figures: dict[str, float | int | None] = {"draws": draws, "words": len(words)}
    for column, (word, row) in enumerate(zip(words, law, strict=True)):
        seen = np.bincount(drawn[:, column], minlength=len(row))
        if seen[np.isneginf(row)].any():
            sentence = "an output was drawn that the stated law excludes."
            return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
        order = np.argsort(-row, kind="stable")
        mass = np.minimum(np.cumsum(np.exp(row[order])), 1.0)
        ends = np.minimum(np.searchsorted(mass, SHARES), len(row) - 1)
        hits, chances = np.cumsum(seen[order])[ends], mass[ends]
        low, high = at_least(hits, draws, risk), at_most(hits, draws, risk)
        # Rounding of the cumulated mass is no finding.
        if ((chances < low - 1e-9) | (chances > high + 1e-9)).any():
            worst = int(np.argmax(np.abs(hits / draws - chances)))
            said = mechanism.space.word(int(word))
            sentence = (
                f"for '{said}', {hits[worst] / draws:.3g} of {draws:,} draws fell among its "
                f"likeliest outputs, which have probability {chances[worst]:.3g} by the stated law."
            )
            return Finding(name, STRUCTURE, "REFUTED", sentence, None, figures)
    sentence = f"{draws:,} draws of each of {len(words)} words fit the stated law."
    return Finding(name, STRUCTURE, "NOT REFUTED", sentence, None, figures)


def underflow(law: Float64Array) -> Finding:
    """How many possible outputs are too improbable for floating-point numbers."""
    possible = law[np.isfinite(law)]
    tiny = int((possible < np.log(SMALLEST_DRAW)).sum())
    lost = int((possible < SMALLEST_EXPONENT).sum())
    delta = law.shape[1] * SMALLEST_DRAW
    sentence = (
        f"{tiny:,} of {len(possible):,} possible outputs have a probability below 2^-53, of which "
        f"{lost:,} vanish in float64: bounds hold up to a delta of {delta:.1g}."
    )
    figures: dict[str, float | int | None] = {
        "outputs": len(possible),
        "below_2^-53": tiny,
        "vanishing": lost,
        "delta": delta,
    }
    return Finding("underflow", STRUCTURE, "NOT REFUTED", sentence, None, figures)
