"""What mechanisms promise that rewrite a text as a whole."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np

from sottovoce.mechanisms.base import (
    Mechanism,
    SetMechanism,
    TextMechanism,
)
from sottovoce.obfuscation import Obfuscator
from sottovoce.testing.promises import (
    SECRET,
    SMALL_PICKLE,
    check_guarantee,
    listening,
    promise,
)

TEXTS = (
    "treatment for skin cancer",
    "divorce lawyer",
    f"doctor {SECRET}",
    "",
    "the of and",
    "Where can I find a shelter for women and children?",
    "🙂 лечение 42",
)


def check_text_seeds(mechanism: Mechanism) -> None:
    """A seed decides everything, and neither the batch nor its place in it changes a text."""
    n = variants_of(mechanism, 5)
    runs = [
        [r.variants for r in Obfuscator(mechanism, n=n, rng=11, batch_size=size).obfuscate(TEXTS)]
        for size in (1, 3, 100)
    ]
    promise(runs[0] == runs[1] == runs[2], "the batch size changes nothing")
    tail = Obfuscator(mechanism, n=n, rng=11).obfuscate(TEXTS[2:], first=2)
    promise(runs[0][2:] == [r.variants for r in tail], "a run can be split anywhere")


def check_text_variants(mechanism: TextMechanism) -> None:
    """No more variants than asked for; unless they may repeat, different ones, never the text."""
    for result in Obfuscator(mechanism, n=7).obfuscate(TEXTS):
        folded = {variant.casefold() for variant in result.variants}
        promise(len(result.variants) <= 7, "at most n variants")
        promise(all(SECRET not in v for v in folded), "unknown words are never released")
        if not mechanism.may_repeat:
            promise(len(folded) == len(result.variants), "variants are all different")
            promise(result.text.casefold() not in folded, "the text itself is never released")
        if len(result.variants) < 7:
            promise(bool(result.guarantee.caveats), "fewer variants than asked for are explained")


def check_text_silence(mechanism: Mechanism) -> None:
    """Neither logs nor prints hold a word of the text."""
    with listening() as heard:
        list(Obfuscator(mechanism, n=variants_of(mechanism, 2)).obfuscate([f"{SECRET} doctor"]))
    promise(SECRET not in heard.getvalue(), "no text in logs, prints or errors")


def check_text_generator(mechanism: Mechanism) -> None:
    """The global numpy generator is neither used nor moved."""
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002 - it is what must not move
    list(Obfuscator(mechanism, n=variants_of(mechanism, 3)).obfuscate(TEXTS[:2]))
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    promise(before == after, "the global numpy generator stays untouched")


def check_text_pickle(mechanism: Mechanism) -> None:
    """A mechanism travels as its parameters and what it works on."""
    n = variants_of(mechanism, 3)
    list(Obfuscator(mechanism, n=n).obfuscate(TEXTS[:2]))
    resources = [getattr(mechanism, name) for name in mechanism.resources()]
    size = len(pickle.dumps(mechanism)) - len(pickle.dumps(resources))
    promise(size < SMALL_PICKLE, f"a pickle adds at most {SMALL_PICKLE} bytes to the resources'")
    copy = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    runs = [
        [result.variants for result in Obfuscator(subject, n=n, rng=1).obfuscate(TEXTS[:2])]
        for subject in (mechanism, copy)
    ]
    promise(copy.spec == mechanism.spec and runs[0] == runs[1], "a pickle does the same")


def variants_of(mechanism: Mechanism, n: int) -> int:
    """How many variants to ask for: a mechanism of sets decides that itself."""
    return 1 if isinstance(mechanism, SetMechanism) else n


TEXT_CHECKS: tuple[Callable[[TextMechanism], None], ...] = (
    check_text_variants,
    check_text_seeds,
    check_text_silence,
    check_text_generator,
    check_text_pickle,
    check_guarantee,
)
