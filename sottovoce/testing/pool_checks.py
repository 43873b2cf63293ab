"""What mechanisms promise that replace a text by strings of a pool, or hide it in a set of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sottovoce.mechanisms.base import (
    PoolMechanism,
    SetMechanism,
)
from sottovoce.obfuscation import Obfuscator
from sottovoce.randomness import Draws
from sottovoce.testing.promises import (
    DRAWS,
    check_guarantee,
    generator,
    promise,
)
from sottovoce.testing.text_checks import (
    TEXTS,
    check_text_generator,
    check_text_pickle,
    check_text_seeds,
    check_text_silence,
)

EQUAL_TEXTS = 12


def check_pool_closure(mechanism: PoolMechanism) -> None:
    """Every text, a blank one too, gets its variants, and they are strings of the pool."""
    for result in Obfuscator(mechanism, n=5).obfuscate(TEXTS):
        promise(len(result.variants) == 5, "every text gets as many variants as asked for")
        promise(
            set(result.variants) <= set(mechanism.pool.strings), "only strings of the pool leave"
        )
        promise(result.spent != 0, "no text is released at no cost")
    promise(not list(Obfuscator(mechanism).obfuscate([])), "no texts in, none out")


def check_pool_texts_are_independent(mechanism: PoolMechanism) -> None:
    """Equal texts in one batch get noise of their own, with a seed and without."""
    low = replace(mechanism, epsilon=1e-3)
    for rng in (3, None):
        results = Obfuscator(low, n=2, rng=rng).obfuscate(TEXTS[:1] * EQUAL_TEXTS)
        for variants in zip(*(result.variants for result in results), strict=True):
            promise(len(set(variants)) > 1, "texts of one batch do not share their noise")


def check_pool_variants_are_independent(mechanism: PoolMechanism) -> None:
    """The variants of a text are drawn afresh, unless they are read off one point."""
    low = replace(mechanism, epsilon=1e-3)
    for rng in (3, None):
        (result,) = Obfuscator(low, n=EQUAL_TEXTS, rng=rng).obfuscate(TEXTS[:1])
        promise(len(set(result.variants)) > 1, "variants of a text do not share their noise")


def check_pool_epsilon(mechanism: PoolMechanism) -> None:
    """A large epsilon gives a string of the pool back as itself, a small one does not."""
    strings = mechanism.pool.strings[:20]
    loud, quiet = (
        np.mean([r.unchanged or 0.0 for r in Obfuscator(variant, n=3, rng=5).obfuscate(strings)])
        for variant in (replace(mechanism, epsilon=epsilon) for epsilon in (1e5, 1e-3))
    )
    promise(loud - quiet > 0.5, "epsilon decides how much is released")


def check_pool_once(mechanism: PoolMechanism) -> None:
    """One point gives different strings for one epsilon, the first as an independent draw would."""
    count = min(3, len(mechanism.pool))
    (result,) = Obfuscator(mechanism, n=count, release="once", rng=1).obfuscate(TEXTS[:1])
    (single,) = Obfuscator(mechanism, n=1, rng=1).obfuscate(TEXTS[:1])
    promise(len(set(result.variants)) == count, "one point gives different strings")
    promise(result.variants[0] == single.variants[0], "the first of them is the mechanism's own")
    promise(result.spent == single.spent, "all variants of one point cost one release")


POOL_CHECKS: tuple[Callable[[PoolMechanism], None], ...] = (
    check_pool_closure,
    check_text_seeds,
    check_pool_texts_are_independent,
    check_pool_variants_are_independent,
    check_text_generator,
    check_text_pickle,
    check_text_silence,
    check_guarantee,
    check_pool_epsilon,
    check_pool_once,
)


def check_set_closure(mechanism: SetMechanism) -> None:
    """Every text, a blank one too, gets one set of different strings of the pool, for one cost."""
    for result in Obfuscator(mechanism).obfuscate(TEXTS):
        promise(0 < len(result.variants) <= mechanism.set_size, "a set has at most its size")
        promise(len({*result.variants}) == len(result.variants), "no string comes twice in a set")
        promise({*result.variants} <= {*mechanism.pool.strings}, "only strings of the pool leave")
        promise(result.spent == mechanism.guarantee.epsilon, "a set is one release")
    promise(not list(Obfuscator(mechanism).obfuscate([])), "no texts in, none out")


def check_set_law(mechanism: SetMechanism) -> None:
    """Sets follow the stated law in how often they hold the string that they hide."""
    hidden = len(mechanism.pool) // 2
    rows = mechanism.draw(np.full(DRAWS, hidden), Draws([(generator(3), DRAWS)]))
    promise((np.diff(rows, axis=1) > 0).all(), "a set is drawn as ascending places, each once")
    p = mechanism.law.p
    spread = 6 * np.sqrt(DRAWS * p * (1 - p))
    times = (rows == hidden).any(axis=1).sum()
    promise(abs(times - DRAWS * p) <= spread, "a set holds its string as often as stated")


def check_set_texts_are_independent(mechanism: SetMechanism) -> None:
    """Equal texts in one batch get sets of their own, with a seed and without."""
    for rng in (3, None):
        results = Obfuscator(mechanism, rng=rng).obfuscate(TEXTS[:1] * EQUAL_TEXTS)
        sets = {frozenset(result.variants) for result in results}
        promise(len(sets) > 1, "texts of one batch do not share their decoys")


def check_set_is_sticky(mechanism: SetMechanism) -> None:
    """Remembered, a representative has one set, whichever text it stands for."""
    text = mechanism.pool.strings[0]
    obfuscator = Obfuscator(mechanism, memory_key=b"key")
    plain, loud = obfuscator.obfuscate([text, f"  {text.upper()} "])
    promise(plain.variants == loud.variants, "the same string brings the same company")
    promise(plain.word_hashes == loud.word_hashes, "and it is counted once")


SET_CHECKS: tuple[Callable[[SetMechanism], None], ...] = (
    check_set_closure,
    check_set_law,
    check_text_seeds,
    check_set_texts_are_independent,
    check_set_is_sticky,
    check_text_generator,
    check_text_pickle,
    check_text_silence,
    check_guarantee,
)
