"""The audit: whether a mechanism keeps what is stated, or published, about it.

``findings.py`` says what an audit is made of; start there. Here is one audit from beginning to end:
which checks a mechanism gets, and in what order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, SetMechanism, WordMechanism
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.auditing import (
    exact,
    noise_checks,
    sampled_bounds,
    set_checks,
    text_checks,
    word_checks,
)
from sottovoce.privacy.auditing.all_pairs import all_pairs
from sottovoce.privacy.auditing.findings import (
    FEWEST_DRAWS,
    Audit,
    Check,
    Claim,
    ClaimVerdict,
    Finding,
    Step,
    Subject,
    Verdict,
    Witness,
    claims,
    guarantees,
)
from sottovoce.privacy.auditing.outside_words import with_outside_words
from sottovoce.privacy.word_samples import sample_words
from sottovoce.randomness import Randomness, as_generator, is_seeded
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Progress

__all__ = ["Audit", "Check", "Claim", "ClaimVerdict", "Finding", "Verdict", "Witness", "audit"]

DRAWS = 50_000
WORDS = 40
QUICK_DRAWS, QUICK_WORDS, QUICK_EXACT = 10_000, 8, 256
TICKS = 1000


def audit(
    mechanism: Mechanism,
    *,
    draws: int | None = None,
    words: int | None = None,
    rng: Randomness = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Try to refute what is stated, and published, about a mechanism.

    draws
        For each word, on small spaces; a tenth of it in the mechanism's own space.
    words
        How many words are looked at where not all are. Half of them are outside the list where an
        encoder gives any word a vector.
    rng
        None for secure randomness; a seed repeats the audit.
    quick
        Fewer draws and words, and not every pair of an exponential mechanism.
    progress
        Told what is done, and of how much.
    """
    draws = (QUICK_DRAWS if quick else DRAWS) if draws is None else draws
    words = (QUICK_WORDS if quick else WORDS) if words is None else words
    if draws < FEWEST_DRAWS:
        raise UsageError(f"an audit needs at least {FEWEST_DRAWS:,} draws, got {draws}")
    if words < 2:
        raise UsageError(f"an audit needs at least 2 words, got {words}")
    generator, ids = as_generator(rng), np.empty(0, dtype=np.int64)
    space = mechanism.metric_space and mechanism.metric_space[0]
    if isinstance(mechanism, WordMechanism):
        if mechanism.space.size < 2:
            raise UsageError("an audit needs a space of at least two words")
        mechanism, outside = with_outside_words(mechanism, words // 2, generator)
        listed = sample_words(mechanism.space, words - len(outside), generator)
        ids = np.concatenate([listed, outside])
    subject = Subject(mechanism, claims(mechanism), ids, words, draws, quick, generator)
    checks = list(_checks(mechanism, subject.claims))
    findings: list[Finding] = []
    for number, check in enumerate(checks):

        def step(share: float, number: int = number) -> None:
            if progress is not None:
                progress(int(TICKS * (number + share)), TICKS * len(checks))

        with single_threaded_blas():  # Its threads would wait for each other; ours do not.
            findings += check(subject, step)
        step(1.0)
    by_label = guarantees(mechanism)
    return Audit(mechanism.spec, space, by_label, tuple(findings), is_seeded(rng))


def _checks(mechanism: Mechanism, claims: list[Claim]) -> Iterator[Check]:
    """The checks of a mechanism: of its claims, of its words or texts, of its pipeline."""
    if not claims:
        yield _nothing_claimed
    if mechanism.by_word:
        if claims:
            if mechanism.has_density:
                yield sampled_bounds.on_line_and_plane
                yield noise_checks.density_ratios
            yield _exactly if mechanism.has_law else sampled_bounds.on_close_pairs
        if mechanism.has_law:
            yield word_checks.never_itself
            yield word_checks.support
            yield word_checks.draws_follow_law
            yield word_checks.underflow
        if mechanism.has_density:
            yield noise_checks.draws_follow_density
        yield word_checks.returned_originals
        yield word_checks.effect_of_epsilon
        yield word_checks.batch_independence
        yield text_checks.no_memory
    elif mechanism.has_density:
        yield text_checks.density_ratios
        yield text_checks.draws_follow_density
        yield text_checks.released_strings
        yield text_checks.effect_of_epsilon
        yield text_checks.batch_independence
    elif isinstance(mechanism, SetMechanism):
        yield set_checks.every_pair
        yield set_checks.small_pool
        yield set_checks.draws_follow_law
        yield set_checks.random_order
        yield set_checks.batch_independence
    if not mechanism.shares_noise:
        yield text_checks.order_and_seed
    if mechanism.cuts_texts and not mechanism.by_word:
        yield text_checks.determinism
    yield text_checks.pass_through
    yield text_checks.composition


def _nothing_claimed(_: Subject[Mechanism], __: Step) -> list[Finding]:
    return [Finding("claims", "stated", "NO CLAIM", "no privacy is promised.")]


def _exactly(subject: Subject[WordMechanism], step: Step) -> list[Finding]:
    """By the formula where there is one, by groups where they are claimed, else by rows."""
    mechanism = subject.mechanism
    findings: list[Finding] = []
    rest: list[Claim] = []
    for claim in subject.claims:
        finding: Finding | None = None
        if isinstance(mechanism, ExponentialMechanism):
            few = sample_words(mechanism.space, QUICK_EXACT, subject.rng) if subject.quick else None
            finding = all_pairs(mechanism, claim, step, few)
        elif isinstance(mechanism, BoxMechanism) and claim.guarantee.notion == "group":
            finding = exact.within_groups(mechanism, claim, step)
        if finding is None:
            rest.append(claim)
        else:
            findings.append(finding)
    if rest:
        losses = exact.pair_losses(mechanism, rest, len(subject.words), subject.rng, step)
        findings += exact.judge(mechanism, rest, losses)
    return findings
