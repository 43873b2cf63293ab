"""For authors of mechanisms: the contract that every registered mechanism keeps.

    from sottovoce.testing import check_mechanism
    check_mechanism(MyMechanism(space=toy_space(), epsilon=2.0))

Each check is also a function of its own; a broken promise raises ``AssertionError`` with the
promise as its message.
"""

from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import IntArray

SMALL_PICKLE = 4096
SECRET = "xqzzysecret"  # noqa: S105 - a made-up word that no space knows


def toy_space() -> WordSpace:
    """Five words in the plane, whose exact laws are known."""
    return WordSpace.from_arrays(
        ["a", "b", "c", "e", "f"],
        [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.5], [2.0, 0.5]],
        name="toy",
    )


def promise(kept: bool | np.bool_, message: str) -> None:
    """Raise an ``AssertionError`` that names the broken promise."""
    if not kept:
        raise AssertionError(message)


def check_mechanism(mechanism: WordMechanism) -> None:
    """Run every check."""
    for check in CHECKS:
        check(mechanism)


def check_shape_and_closure(mechanism: WordMechanism) -> None:
    """Ids in, ids out: shape, dtype, and only words of the output vocabulary."""
    ids = _ids(mechanism, 40)
    drawn = mechanism.sample(ids, 3, _generator(1))
    promise(drawn.shape == (3, 40), "sample answers an array of shape (n, len(ids))")
    promise(drawn.dtype == np.int64, "sample answers int64 ids")
    promise(
        np.isin(drawn, mechanism.space.output.ids).all(), "only the output vocabulary is released"
    )
    empty = mechanism.sample(ids[:0], 3, _generator(1))
    promise(empty.shape == (3, 0), "no words in, no words out")
    half = mechanism.space.output.ids[::2]
    if len(half) >= 2:
        narrowed = mechanism.space.with_output(OutputVocabulary("every second word", half))
        drawn = replace(mechanism, space=narrowed).sample(ids, 3, _generator(1))
        promise(np.isin(drawn, half).all(), "a smaller output vocabulary is respected")


def check_seeds(mechanism: WordMechanism) -> None:
    """A seed decides everything; another seed, or none, gives something else."""
    ids = _ids(mechanism, 60)
    first = mechanism.sample(ids, 5, _generator(7))
    promise(np.array_equal(first, mechanism.sample(ids, 5, _generator(7))), "same seed, same draw")
    promise(not np.array_equal(first, mechanism.sample(ids, 5, _generator(8))), "seeds matter")


def check_batching(mechanism: WordMechanism) -> None:
    """Whatever the batch size, a seeded run gives the same variants."""
    texts = _texts(mechanism, 23)
    runs = [
        [r.variants for r in Obfuscator(mechanism, n=2, rng=11, batch_size=size).obfuscate(texts)]
        for size in (1, 7, 1000)
    ]
    promise(runs[0] == runs[1] == runs[2], "the batch size changes nothing")
    tail = Obfuscator(mechanism, n=2, rng=11).obfuscate(texts[9:], first=9)
    promise(runs[0][9:] == [r.variants for r in tail], "a run can be split anywhere")


def check_rows_are_independent(mechanism: WordMechanism) -> None:
    """Equal texts in one batch get noise of their own, and so do equal words in one text."""
    word = mechanism.space.word(0)
    text = " ".join([word] * 12)
    low = replace(mechanism, epsilon=1e-3)
    results = list(Obfuscator(low, n=2, rng=3).obfuscate([text] * 12))
    variants = [variant for result in results for variant in result.variants]
    promise(len(set(variants)) > 1, "texts of one batch do not share their noise")
    promise(
        any(len(set(variant.split())) > 1 for variant in variants),
        "words of one text do not share their noise",
    )


def check_global_generator_untouched(mechanism: WordMechanism) -> None:
    """The global numpy generator is neither used nor moved."""
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002 - it is what must not move
    mechanism.sample(_ids(mechanism, 10), 2, _generator(1))
    list(Obfuscator(mechanism, n=2).obfuscate(_texts(mechanism, 2)))
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    promise(before == after, "the global numpy generator stays untouched")


def check_pickle(mechanism: WordMechanism) -> None:
    """A mechanism travels as its parameters; what it computed stays behind."""
    mechanism.sample(_ids(mechanism, 5), 1, _generator(1))
    size = len(pickle.dumps(mechanism)) - len(pickle.dumps(mechanism.space))
    promise(size < SMALL_PICKLE, f"a pickle adds at most {SMALL_PICKLE} bytes to the space's")
    copy = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    promise(copy == mechanism, "a pickle comes back equal")


def check_silence(mechanism: WordMechanism) -> None:
    """Neither logs, prints nor errors hold a word of the text."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    text = f"{SECRET} {mechanism.space.word(0)}"
    strict = Obfuscator(mechanism, pipeline=TextPipeline(unknown="error"))
    try:
        with redirect_stdout(heard), redirect_stderr(heard):
            list(Obfuscator(mechanism, n=2).obfuscate([text]))
            try:
                list(strict.obfuscate([text]))
            except SottovoceError as error:
                heard.write(f"{error!r} {error.__cause__!r} {error.__context__!r}")
            else:
                promise(False, "an unknown word is an error when the policy says so")
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    promise(SECRET not in heard.getvalue(), "no text in logs, prints or errors")


def check_never_in_clear(mechanism: WordMechanism) -> None:
    """An unknown word never comes back, whatever surrounds it."""
    text = f"{SECRET}, {mechanism.space.word(0)} ({SECRET}-{SECRET})!"
    (result,) = Obfuscator(mechanism, n=20).obfuscate([text])
    promise(all(SECRET not in v for v in result.variants), "unknown words are never released")


def check_guarantee(mechanism: WordMechanism) -> None:
    """The guarantee is stated, and a metric one never poses as more."""
    stated = mechanism.guarantee
    promise(bool(stated.caveats), "every guarantee says what it does not cover")
    if stated.notion == "metric":
        said = " ".join((stated.sentence, *stated.caveats, mechanism.summary)).lower()
        promise("epsilon-dp" not in said, "a metric guarantee is not called epsilon-DP")
        promise("ε-dp" not in said, "a metric guarantee is not called ε-DP")
    if stated.notion == "none":
        promise(stated.loss(1.0) == np.inf, "without a guarantee the loss is unbounded")


def check_epsilon_matters(mechanism: WordMechanism) -> None:
    """A small epsilon and a large one give different laws."""
    ids = _ids(mechanism, 50)
    shares = [
        float((replace(mechanism, epsilon=e).sample(ids, 20, _generator(5)) == ids).mean())
        for e in (0.01, 1e4)
    ]
    promise(shares[1] > shares[0] + 0.1, "more budget keeps more words")


def check_once(mechanism: WordMechanism) -> None:
    """Reading N words off one point gives N different ones; reading one is the mechanism."""
    if not isinstance(mechanism, NoiseMechanism):
        return
    count = min(3, len(mechanism.space.output))
    word = mechanism.space.word(0)
    (result,) = Obfuscator(mechanism, n=count, release="once", rng=1).obfuscate([word])
    promise(len(set(result.variants)) == count, "one point gives different words")
    single = mechanism.guarantee.loss(1.0, 1)
    paid = np.inf if result.spent is None else result.spent
    promise(paid == single, "all variants of one point cost one release")


CHECKS: tuple[Callable[[WordMechanism], None], ...] = (
    check_shape_and_closure,
    check_seeds,
    check_batching,
    check_rows_are_independent,
    check_global_generator_untouched,
    check_pickle,
    check_silence,
    check_never_in_clear,
    check_guarantee,
    check_epsilon_matters,
    check_once,
)


def _generator(seed: int) -> Generator:
    return Generator(PCG64(seed))


def _ids(mechanism: WordMechanism, count: int) -> IntArray:
    return np.arange(count, dtype=np.int64) * 7 % mechanism.space.size


def _texts(mechanism: WordMechanism, count: int) -> list[str]:
    words = mechanism.space.words(_ids(mechanism, 5 * count))
    texts = [" ".join(words[i : i + 1 + i % 5]) for i in range(count)]
    return [*texts[:-1], f"{SECRET} {words[0]}"]
