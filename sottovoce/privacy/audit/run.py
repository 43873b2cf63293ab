"""One audit from beginning to end: which checks a mechanism gets, and in what order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, TextMechanism, WordMechanism
from sottovoce.mechanisms.boxes import BoxMechanism
from sottovoce.mechanisms.comet import Comet
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.audit import density, exact, laws, plumbing, pools, structure
from sottovoce.privacy.audit.all_pairs import Step, all_pairs
from sottovoce.privacy.audit.chance import LEVEL, generator
from sottovoce.privacy.audit.claims import Claim, claims, guarantees
from sottovoce.privacy.audit.fixtures import LINE, on_line, on_plane
from sottovoce.privacy.audit.groups import within_groups
from sottovoce.privacy.audit.plane import in_the_plane
from sottovoce.privacy.audit.sampled import sampled
from sottovoce.privacy.audit.verdicts import Audit, Finding
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.types import IntArray, Progress

DRAWS = 50_000
WORDS = 40
QUICK_DRAWS, QUICK_WORDS, QUICK_EXACT = 10_000, 8, 256
CLOSE_PAIRS = 3
IN_FULL_SPACE = 10
"""In the mechanism's own space, draws are dear: so many times fewer there than on the fixtures."""
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
        For each word, on the fixtures; a tenth of it in the mechanism's own space.
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
    seeded = is_seeded(rng)
    steps = list(_checks(mechanism, draws, words, quick, generator(rng)))
    findings: list[Finding] = []
    for number, check in enumerate(steps):

        def step(share: float, number: int = number) -> None:
            if progress is not None:
                progress(int(TICKS * (number + share)), TICKS * len(steps))

        findings += check(step)
        step(1.0)
    space = mechanism.metric_space and mechanism.metric_space[0]
    return Audit.of(mechanism.spec, space, guarantees(mechanism), tuple(findings), LEVEL, seeded)


Check = Callable[[Step], list[Finding]]


def _checks(
    mechanism: Mechanism, draws: int, count: int, quick: bool, rng: Generator
) -> Iterator[Check]:
    made = claims(mechanism)
    if not made:
        yield lambda _: [Finding("claims", "stated", "NO CLAIM", "no privacy is promised.")]
    if isinstance(mechanism, WordMechanism):
        if mechanism.space.size < 2:
            raise UsageError("an audit needs a space of at least two words")
        words = exact.some_words(mechanism, count, rng)
        yield from _of_claims(mechanism, made, words, draws, quick, rng)
        yield from _of_words(mechanism, made, words, draws, rng)
        yield lambda _: [plumbing.no_memory(mechanism, words, rng)]
        yield lambda _: [plumbing.order_and_seed(mechanism, words, rng)]
    else:
        if isinstance(mechanism, Comet):
            yield lambda _: pools.density_ratios(mechanism, made, count, rng)
            yield lambda _: [pools.draws_follow_density(mechanism, draws // IN_FULL_SPACE, rng)]
            yield lambda _: pools.released_strings(mechanism, made, draws // IN_FULL_SPACE, rng)
            yield lambda _: [pools.effect_of_epsilon(mechanism, rng)]
            yield lambda _: [pools.batch_independence(mechanism, rng)]
        if not (isinstance(mechanism, Comet) and mechanism.shares_noise):
            yield lambda _: [plumbing.order_and_seed(mechanism, None, rng)]
    if isinstance(mechanism, TextMechanism):
        yield lambda _: [plumbing.determinism(mechanism, rng)]
    yield lambda _: [plumbing.pass_through(mechanism)]
    yield lambda _: [plumbing.composition(mechanism)]


def _of_claims(
    mechanism: WordMechanism,
    made: list[Claim],
    words: IntArray,
    draws: int,
    quick: bool,
    rng: Generator,
) -> Iterator[Check]:
    """The bounds themselves."""
    if not made:
        return
    if isinstance(mechanism, NoiseMechanism):
        yield lambda _: _on_fixtures(mechanism, made, draws, rng)
        yield lambda _: density.density_ratios(mechanism, made, words, rng)
        yield lambda _: _on_close_pairs(mechanism, made, words, draws, rng)
    elif mechanism.log_probabilities(words[:1]) is not None:
        yield lambda step: _exactly(mechanism, made, len(words), quick, rng, step)
    else:
        yield lambda _: _on_close_pairs(mechanism, made, words, draws, rng)


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
        found: Finding | None = None
        if isinstance(mechanism, ExponentialMechanism):
            some = exact.some_words(mechanism, QUICK_EXACT, rng) if quick else None
            found = all_pairs(mechanism, claim, step, some)
        elif isinstance(mechanism, BoxMechanism) and claim.guarantee.notion == "group":
            found = within_groups(mechanism, claim, step)
        if found is None:
            rest.append(claim)
        else:
            findings.append(found)
    if rest:
        losses = exact.pair_losses(mechanism, rest, words, rng, step)
        findings += exact.judge(mechanism, rest, losses)
    return findings


def _on_fixtures(
    mechanism: NoiseMechanism, made: list[Claim], draws: int, rng: Generator
) -> list[Finding]:
    try:
        line, plane = on_line(mechanism), on_plane(mechanism)
    except UsageError:
        sentence = (
            "not looked at: with these parameters it needs more words than the fixtures have."
        )
        return [Finding("fixtures", claim.label, "NOT REFUTED", sentence) for claim in made]
    middle = LINE // 2
    on = {
        "line, sampled": (line, [(middle, middle - 1), (middle, middle + 2)], "on a line of words"),
        "plane, sampled": (
            plane,
            [(one, two) for one in range(plane.space.size) for two in range(one)],
            "on six words of the plane",
        ),
    }
    return in_the_plane(plane) + [
        sampled(rebuilt, claim, pairs, draws, rng, check=check, where=where)
        for check, (rebuilt, pairs, where) in on.items()
        for claim in claims(rebuilt)
    ]


def _on_close_pairs(
    mechanism: WordMechanism, made: list[Claim], words: IntArray, draws: int, rng: Generator
) -> list[Finding]:
    """Draws in the mechanism's own space, where two words are close enough to see something."""
    near = exact.neighbours(mechanism, words, 1)[:, 0]
    findings = []
    for claim in made:
        order = np.argsort(claim.distances(mechanism, words, near), kind="stable")[:CLOSE_PAIRS]
        pairs = [(int(words[at]), int(near[at])) for at in order]
        findings.append(
            sampled(
                mechanism,
                claim,
                pairs,
                max(FEWEST, draws // IN_FULL_SPACE),
                rng,
                check="close pairs, sampled",
                where=f"for close pairs of space {mechanism.space.name}",
            )
        )
    return findings


def _of_words(
    mechanism: WordMechanism, made: list[Claim], words: IntArray, draws: int, rng: Generator
) -> Iterator[Check]:
    """What can be wrong whatever is claimed."""
    some = words[:: max(1, len(words) // 12)][:12]
    fewer = max(FEWEST, draws // IN_FULL_SPACE)
    yield lambda _: _of_law(mechanism, made, some, draws, rng)
    if isinstance(mechanism, NoiseMechanism):
        yield lambda _: [density.draws_follow_density(mechanism, fewer, rng)]
    yield lambda _: _maybe(structure.returned_originals(mechanism, some, fewer // 2, rng))
    yield lambda _: [structure.effect_of_epsilon(mechanism, some, fewer, rng)]
    yield lambda _: [structure.batch_independence(mechanism, some, rng)]


def _of_law(
    mechanism: WordMechanism, made: list[Claim], words: IntArray, draws: int, rng: Generator
) -> list[Finding]:
    law = mechanism.log_probabilities(words)
    if law is None:
        return []
    return [
        *laws.never_itself(mechanism, made, words, law),
        *laws.support(mechanism, made, words, law),
        laws.draws_follow_law(mechanism, words, law, draws, rng),
        laws.underflow(law),
    ]


def _maybe(finding: Finding | None) -> list[Finding]:
    return [] if finding is None else [finding]
