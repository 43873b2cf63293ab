"""One audit from beginning to end: which checks a mechanism gets, and in what order."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.mechanisms.boxes import BoxMechanism
from sottovoce.mechanisms.comet import Comet
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.auditing import (
    exact,
    noise_checks,
    pipeline_checks,
    pool_checks,
    sampled_bounds,
    word_checks,
)
from sottovoce.privacy.auditing.all_pairs import all_pairs
from sottovoce.privacy.auditing.findings import (
    LEVEL,
    Audit,
    Check,
    Claim,
    Finding,
    Step,
    claims,
    guarantees,
)
from sottovoce.randomness import Randomness, as_generator, is_seeded
from sottovoce.types import IntArray, Progress

DRAWS = 50_000
WORDS = 40
QUICK_DRAWS, QUICK_WORDS, QUICK_EXACT = 10_000, 8, 256
STRUCTURE_WORDS = 12
"""Of the words looked at, so many are drawn often."""
IN_FULL_SPACE = 10
"""In the mechanism's own space, draws are dear: so many times fewer there than on small spaces."""
FEWEST = 1000
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
        How many words are looked at where not all are.
    rng
        None for secure randomness; a seed repeats the audit.
    quick
        Fewer draws and words, and not every pair of an exponential mechanism.
    progress
        Told what is done, and of how much.
    """
    draws = (QUICK_DRAWS if quick else DRAWS) if draws is None else draws
    words = (QUICK_WORDS if quick else WORDS) if words is None else words
    if draws < FEWEST:
        raise UsageError(f"an audit needs at least {FEWEST:,} draws, got {draws}")
    if words < 2:
        raise UsageError(f"an audit needs at least 2 words, got {words}")
    checks = list(_checks(mechanism, draws, words, quick, as_generator(rng)))
    findings: list[Finding] = []
    for number, check in enumerate(checks):

        def step(share: float, number: int = number) -> None:
            if progress is not None:
                progress(int(TICKS * (number + share)), TICKS * len(checks))

        findings += check(step)
        step(1.0)
    space = mechanism.metric_space and mechanism.metric_space[0]
    said = guarantees(mechanism)
    return Audit.of(mechanism.spec, space, said, tuple(findings), LEVEL, is_seeded(rng))


def _checks(
    mechanism: Mechanism, draws: int, count: int, quick: bool, rng: Generator
) -> Iterator[Check]:
    """The checks of a mechanism: of its claims, of its words or texts, of its pipeline."""
    made, fewer = claims(mechanism), draws // IN_FULL_SPACE
    if not made:
        yield lambda _: [Finding("claims", "stated", "NO CLAIM", "no privacy is promised.")]
    if isinstance(mechanism, WordMechanism):
        if mechanism.space.size < 2:
            raise UsageError("an audit needs a space of at least two words")
        words = exact.some_words(mechanism, count, rng)
        if made:
            yield from _claim_checks(mechanism, made, words, draws, quick, rng)
        yield from _word_checks(mechanism, made, words, draws, rng)
        yield lambda _: [pipeline_checks.no_memory(mechanism, words, rng)]
        yield lambda _: [pipeline_checks.order_and_seed(mechanism, words, rng)]
    elif isinstance(mechanism, Comet):
        yield lambda _: pool_checks.density_ratios(mechanism, made, count, rng)
        yield lambda _: [pool_checks.draws_follow_density(mechanism, fewer, rng)]
        yield lambda _: pool_checks.released_strings(mechanism, made, fewer, rng)
        yield lambda _: [pool_checks.effect_of_epsilon(mechanism, rng)]
        yield lambda _: [pool_checks.batch_independence(mechanism, rng)]
    if not (mechanism.by_word or mechanism.shares_noise):
        yield lambda _: [pipeline_checks.order_and_seed(mechanism, None, rng)]
    if mechanism.cuts_texts and not mechanism.by_word:
        yield lambda _: [pipeline_checks.determinism(mechanism, rng)]
    yield lambda _: [pipeline_checks.pass_through(mechanism)]
    yield lambda _: [pipeline_checks.composition(mechanism)]


def _claim_checks(
    mechanism: WordMechanism,
    made: list[Claim],
    words: IntArray,
    draws: int,
    quick: bool,
    rng: Generator,
) -> Iterator[Check]:
    """The bounds themselves: by densities, by the law, or else by draws."""
    fewer = max(FEWEST, draws // IN_FULL_SPACE)
    if isinstance(mechanism, NoiseMechanism):
        yield lambda _: sampled_bounds.on_line_and_plane(mechanism, made, draws, rng)
        yield lambda _: noise_checks.density_ratios(mechanism, made, words, rng)
    if mechanism.has_law:
        yield lambda step: _exactly(mechanism, made, len(words), quick, rng, step)
    else:
        yield lambda _: sampled_bounds.on_close_pairs(mechanism, made, words, fewer, rng)


def _exactly(
    mechanism: WordMechanism,
    made: list[Claim],
    words: int,
    quick: bool,
    rng: Generator,
    step: Step,
) -> list[Finding]:
    """By the formula where there is one, by groups where they are claimed, else by rows."""
    findings: list[Finding] = []
    rest: list[Claim] = []
    for claim in made:
        finding: Finding | None = None
        if isinstance(mechanism, ExponentialMechanism):
            inputs = exact.some_words(mechanism, QUICK_EXACT, rng) if quick else None
            finding = all_pairs(mechanism, claim, step, inputs)
        elif isinstance(mechanism, BoxMechanism) and claim.guarantee.notion == "group":
            finding = exact.within_groups(mechanism, claim, step)
        if finding is None:
            rest.append(claim)
        else:
            findings.append(finding)
    if rest:
        losses = exact.pair_losses(mechanism, rest, words, rng, step)
        findings += exact.judge(mechanism, rest, losses)
    return findings


def _word_checks(
    mechanism: WordMechanism, made: list[Claim], words: IntArray, draws: int, rng: Generator
) -> Iterator[Check]:
    """What can be wrong whatever is claimed."""
    few = words[:: max(1, len(words) // STRUCTURE_WORDS)][:STRUCTURE_WORDS]
    fewer = max(FEWEST, draws // IN_FULL_SPACE)
    yield lambda _: word_checks.law_checks(mechanism, made, few, draws, rng)
    if isinstance(mechanism, NoiseMechanism):
        yield lambda _: [noise_checks.draws_follow_density(mechanism, fewer, rng)]
    yield lambda _: word_checks.returned_originals(mechanism, few, fewer // 2, rng)
    yield lambda _: [word_checks.effect_of_epsilon(mechanism, few, fewer, rng)]
    yield lambda _: [word_checks.batch_independence(mechanism, few, rng)]
