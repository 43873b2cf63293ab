"""Every attack on a release, for several numbers of variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from sottovoce.choices import Release
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.attacks.alignment import Text, align
from sottovoce.privacy.attacks.ceiling import seen_through
from sottovoce.privacy.attacks.cells import cells
from sottovoce.privacy.attacks.intersection import intersection
from sottovoce.privacy.attacks.likelihood import likelihood
from sottovoce.privacy.attacks.priors import log_prior
from sottovoce.privacy.attacks.recovery import Guessed, Recovery
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.sampled import sampled
from sottovoce.privacy.attacks.simple import centroid, mode
from sottovoce.privacy.attacks.target import CERTAIN, Target
from sottovoce.randomness import Randomness, as_generator, is_seeded
from sottovoce.types import UNKNOWN, BoolArray, Float64Array, IntArray, Progress

COUNTS = (1, 5, 20, 50)
"""How many variants of a text the attacker sees, as far as there are so many."""
CEILING = "ceiling"
ATTACKS = ("mode", "centroid", "likelihood", "intersection", "sampled", "cell")
"""In the order in which they are reported; ``ceiling``, a bound, follows the attack on ``once``."""
CEILING_DRAWS = 4
"""Noisy points for each word of the texts."""

NEEDS_MECHANISM = "it needs to know the mechanism: name it"
ONE_POINT = "all variants come from one noisy point, so they are no independent draws"
ANOTHER_LAW = (
    "this mechanism cannot have made these releases: name its parameters, its space and its output "
    "vocabulary as they were"
)
FEWEST_SURVIVORS = 0.5
"""The true word survives wherever the law is the right one; far fewer on average, and it is not."""
WHOLE_RELEASE = "a release 'once' is read as a whole: fewer variants are a random part of it"


def reconstruct(
    releases: Sequence[Released],
    mechanism: WordMechanism | None,
    *,
    release: Release = "independent",
    counts: Sequence[int] | None = None,
    prior: Literal["uniform"] | Float64Array = "uniform",
    attacks: Sequence[str] | None = None,
    bounds: bool = True,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> list[Recovery]:
    """Try to read the words of the texts off their variants.

    counts
        Numbers of variants to attack; by default 1, 5, 20, 50 and all there are. A text with
        fewer variants is attacked with what it has.
    prior
        ``uniform``, or positive frequencies, one for each word of the space.
    attacks
        Some of ``ATTACKS``; by default each one, with the reason where it does not apply.
    bounds
        Whether ``ceiling`` is measured beside the attack that it belongs to.
    """
    if release not in ("independent", "once"):
        raise UsageError("a release is 'independent' or 'once'")
    if release == "once" and mechanism is not None and not mechanism.supports_once:
        raise UsageError("release 'once' is made by noise mechanisms only: use 'independent'")
    chosen = ATTACKS if attacks is None else tuple(attacks)
    if unknown := set(chosen) - set(ATTACKS):
        raise UsageError(f"{len(unknown)} of the attacks do not exist: use {', '.join(ATTACKS)}")
    most = max((len(each.variants) for each in releases), default=0)
    if not most:
        raise UsageError("there is no variant to attack: give texts with at least one")
    wanted = numbers_of_variants((*COUNTS, most) if counts is None else counts, most)
    aligned = align(releases, mechanism.space if mechanism else None)
    if isinstance(aligned, str):
        return [Recovery(name, n, applies=False, why=aligned) for name in chosen for n in wanted]
    texts, uneven = aligned
    target = Target(
        texts, mechanism, release, log_prior(prior, mechanism), as_generator(rng), progress
    )
    found = [each for name in chosen for each in _attacked(target, name, wanted, most)]
    if bounds and "cell" in chosen and _excluded(target, "cell") is None:
        found.append(_ceiling(target, most))
    return [replace(each, seeded=is_seeded(rng), left_out=uneven) for each in found]


def numbers_of_variants(counts: Sequence[int], most: int) -> list[int]:
    """How many variants are looked at: the numbers asked for, none above what there is."""
    if not counts or min(counts) < 1:
        raise UsageError("numbers of variants are whole numbers, 1 or more")
    return sorted({min(int(n), most) for n in counts})


def _attacked(target: Target, name: str, counts: list[int], most: int) -> list[Recovery]:
    if why := _excluded(target, name):
        return [Recovery(name, n, applies=False, why=why) for n in counts]
    if name == "mode":
        return [_judged(target.texts, name, n, mode(target, n)) for n in counts]
    if name == "likelihood":
        guesses = likelihood(target, counts)
        return [_judged(target.texts, name, n, _words(target, guesses[n])) for n in counts]
    if name == "intersection":
        guesses, survivors = intersection(target, counts)
        return [_intersected(target, n, guesses[n], survivors[n]) for n in counts]
    if name == "cell":
        return [_cell(target, n, most) for n in counts]
    by_count: Callable[[Target, int], IntArray] = {"centroid": centroid, "sampled": sampled}[name]
    return [_judged(target.texts, name, n, _words(target, by_count(target, n))) for n in counts]


def _excluded(target: Target, name: str) -> str | None:
    """Why an attack does not apply, if it does not."""
    mechanism = target.mechanism
    if name == "mode":
        return None
    if mechanism is None:
        return NEEDS_MECHANISM
    if name == "intersection" and not isinstance(mechanism, BoxMechanism):
        return f"'{mechanism.name}' has no boxes: any word may stand for any other"
    if name == "likelihood":
        if isinstance(mechanism, BoxMechanism):
            return "for boxes the intersection attack is the same, and faster"
        if not mechanism.has_law:
            return f"'{mechanism.name}' has no law in closed form"
    if name in ("sampled", "cell"):
        if not isinstance(mechanism, NoiseMechanism):
            return f"'{mechanism.name}' draws no noise"
        if name == "sampled" and target.release == "once":
            return ONE_POINT
        if name == "cell" and target.release != "once":
            return "it reads releases 'once'"
    return None


def _intersected(target: Target, n: int, guesses: IntArray, survivors: float | None) -> Recovery:
    if survivors is not None and survivors < FEWEST_SURVIVORS:
        return Recovery("intersection", n, applies=False, why=ANOTHER_LAW, survivors=survivors)
    found = _judged(target.texts, "intersection", n, _words(target, guesses))
    return replace(found, survivors=survivors)


def _cell(target: Target, n: int, most: int) -> Recovery:
    if n < most:
        return Recovery("cell", n, applies=False, why=WHOLE_RELEASE)
    return _judged(target.texts, "cell", n, _words(target, cells(target)))


def _ceiling(target: Target, n: int) -> Recovery:
    truths = [np.array([each.id for each in text.truth], dtype=np.int64) for text in target.texts]
    words = np.concatenate([*truths, np.empty(0, dtype=np.int64)])
    clear = np.concatenate([*map(_in_clear, target.texts), np.empty(0, dtype=np.bool_)])
    hits = [seen_through(target, words) | clear for _ in range(CEILING_DRAWS)]
    ends = np.cumsum([len(truth) for truth in truths])[:-1]
    whole = [bool(part.size and part.all()) for hit in hits for part in np.split(hit, ends)]
    return Recovery(
        CEILING,
        n,
        words=len(words) * CEILING_DRAWS,
        words_right=int(np.sum(hits)),
        queries=len(whole),
        queries_right=sum(whole),
        bound=True,
    )


def _in_clear(text: Text) -> BoolArray:
    """Which words of a text stand in every variant: they were left as they are."""
    if len(text.positions) != len(text.truth):
        return np.zeros(len(text.truth), dtype=np.bool_)
    return np.array(
        [
            len(seen) >= CERTAIN and all(each.word == truth.word for each in seen)
            for truth, seen in zip(text.truth, text.positions, strict=True)
        ],
        dtype=np.bool_,
    )


def _words(target: Target, guesses: IntArray) -> list[str | None]:
    known = np.flatnonzero(guesses != UNKNOWN)
    found: list[str | None] = [None] * len(guesses)
    for place, word in zip(known.tolist(), target.space.words(guesses[known]), strict=True):
        found[place] = word.casefold()
    return found


def _judged(texts: list[Text], attack: str, n: int, guesses: list[str | None]) -> Recovery:
    start, found = 0, []
    for text in texts:
        end = start + len(text.positions)
        right, whole = text.judge(guesses[start:end])
        found.append(Guessed(text.id, right, len(text.truth), whole))
        start = end
    return Recovery(
        attack,
        n,
        words=sum(each.words for each in found),
        words_right=sum(each.right for each in found),
        queries=len(found),
        queries_right=sum(each.whole for each in found),
        by_text=tuple(found),
    )
