"""For authors of mechanisms: the contract that every registered mechanism keeps.

    from sottovoce.testing import check_mechanism
    check_mechanism(MyMechanism(space=toy_space(), epsilon=2.0))

``CHECKS`` are for mechanisms that work word by word, ``TEXT_CHECKS`` for those that rewrite a
text, ``POOL_CHECKS`` for those that replace it by a string of a pool, ``SET_CHECKS`` for those that
hide it in a set of strings. Each check is also a function of its own; a broken promise raises
``AssertionError`` with the promise as its message.
"""

from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.mechanisms.base import (
    Mechanism,
    PoolMechanism,
    SetMechanism,
    TextMechanism,
    WordMechanism,
)
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.randomness import Draws
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray

SMALL_PICKLE = 4096
DRAWS = 4000
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


def check_mechanism(mechanism: Mechanism) -> None:
    """Run every check."""
    if isinstance(mechanism, TextMechanism):
        for text_check in TEXT_CHECKS:
            text_check(mechanism)
    if isinstance(mechanism, WordMechanism):
        for check in CHECKS:
            check(mechanism)
    if isinstance(mechanism, PoolMechanism):
        for pool_check in POOL_CHECKS:
            pool_check(mechanism)
    if isinstance(mechanism, SetMechanism):
        for set_check in SET_CHECKS:
            set_check(mechanism)
    promise(
        isinstance(mechanism, TextMechanism | WordMechanism | PoolMechanism | SetMechanism),
        "a mechanism works word by word or on a whole text",
    )


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
        try:
            drawn = replace(mechanism, space=narrowed).sample(ids, 3, _generator(1))
        except UsageError:
            return  # It may need more words than that, if it says so.
        promise(np.isin(drawn, half).all(), "a smaller output vocabulary is respected")


def check_law(mechanism: WordMechanism) -> None:
    """A stated law is a law, it is what is drawn from, and it keeps the guarantee."""
    ids = np.unique(_ids(mechanism, 12))
    law = mechanism.log_probabilities(ids)
    if law is None:
        return
    chances = np.exp(law)
    promise(law.shape == (len(ids), mechanism.space.size), "a law has a row for each word")
    promise(np.allclose(chances.sum(axis=1), 1, atol=1e-12), "the chances of a word sum to 1")
    outside = np.delete(chances, mechanism.space.output.ids, axis=1)
    promise(not outside.any(), "words outside the output vocabulary have no chance")
    drawn = mechanism.sample(ids, DRAWS, _generator(2))
    for column, row in zip(drawn.T, chances, strict=True):
        seen = np.bincount(column, minlength=len(row))
        promise(not seen[row == 0].any(), "what is drawn is possible")
        spread = np.sqrt(DRAWS * row * (1 - row))
        promise((abs(seen - DRAWS * row) <= 6 * spread + 6).all(), "draws follow the stated law")
    stated = mechanism.guarantee
    if stated.notion == "metric" and stated.metric == "euclidean":
        vectors = mechanism.space.vectors[ids].astype(np.float64)
        far = np.sqrt(((vectors[:, None] - vectors) ** 2).sum(axis=2))
        bounds = np.array([[stated.loss(float(d)) for d in row] for row in far])
        promise((_losses(law) <= bounds + 1e-9).all(), "no two words are further apart than stated")
    if stated.notion == "group":
        together = (np.isfinite(law)[:, None] == np.isfinite(law)).all(axis=2)
        promise(
            (_losses(law)[together] <= stated.loss(1.0) + 1e-9).all(),
            "words of a group are not further apart than stated",
        )


def _losses(law: Float64Array) -> Float64Array:
    """The largest log-ratio of each two rows."""
    with np.errstate(invalid="ignore"):
        ratios = law[:, None] - law
    return np.asarray(np.where(np.isnan(ratios), -np.inf, ratios).max(axis=2))


def check_seeds(mechanism: WordMechanism) -> None:
    """A seed decides everything; another seed, or none, gives something else."""
    ids, low = _ids(mechanism, 60), replace(mechanism, epsilon=0.1)
    first = low.sample(ids, 5, _generator(7))
    promise(np.array_equal(first, low.sample(ids, 5, _generator(7))), "same seed, same draw")
    promise(not np.array_equal(first, low.sample(ids, 5, _generator(8))), "seeds matter")


def check_batching(mechanism: WordMechanism) -> None:
    """Whatever the batch size, a seeded run gives the same variants."""
    texts = _texts(mechanism, 23)
    runs = [
        [r.variants for r in _obfuscator(mechanism, n=2, rng=11, batch_size=size).obfuscate(texts)]
        for size in (1, 7, 1000)
    ]
    promise(runs[0] == runs[1] == runs[2], "the batch size changes nothing")
    tail = _obfuscator(mechanism, n=2, rng=11).obfuscate(texts[9:], first=9)
    promise(runs[0][9:] == [r.variants for r in tail], "a run can be split anywhere")


def check_rows_are_independent(mechanism: WordMechanism) -> None:
    """Equal texts in one batch get noise of their own, and so do equal words in one text."""
    word = mechanism.space.word(0)
    text = " ".join([word] * 12)
    low = replace(mechanism, epsilon=1e-3)
    results = list(_obfuscator(low, n=2, rng=3).obfuscate([text] * 12))
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
    list(_obfuscator(mechanism, n=2).obfuscate(_texts(mechanism, 2)))
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
    text = f"{SECRET} {mechanism.space.word(0)}"
    strict = Obfuscator(mechanism, pipeline=TextPipeline(unknown="error"))
    with _listening() as heard:
        list(_obfuscator(mechanism, n=2).obfuscate([text]))
        try:
            list(strict.obfuscate([text]))
        except SottovoceError as error:
            heard.write(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        else:
            promise(False, "an unknown word is an error when the policy says so")
    promise(SECRET not in heard.getvalue(), "no text in logs, prints or errors")


@contextmanager
def _listening() -> Iterator[io.StringIO]:
    """Collects what is logged or printed in the block."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(heard), redirect_stderr(heard):
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def check_never_in_clear(mechanism: WordMechanism) -> None:
    """An unknown word never comes back, whatever surrounds it."""
    text = f"{SECRET}, {mechanism.space.word(0)} ({SECRET}-{SECRET})!"
    (result,) = _obfuscator(mechanism, n=20).obfuscate([text])
    promise(all(SECRET not in v for v in result.variants), "unknown words are never released")


def check_own_protection(mechanism: WordMechanism) -> None:
    """Whatever words a mechanism protects as published, no text is released for nothing."""
    texts = ["was i", *mechanism.space.words(_ids(mechanism, 30))]
    for result in Obfuscator(mechanism, n=2).obfuscate(texts):
        unchanged = result.text.casefold() in map(str.casefold, result.variants)
        promise(not (unchanged and result.spent == 0), "a text is not released as it is at no cost")


def check_guarantee(mechanism: Mechanism) -> None:
    """The guarantee is stated, and a metric one never poses as more."""
    stated = mechanism.guarantee
    promise(bool(stated.caveats), "every guarantee says what it does not cover")
    if stated.notion == "metric":
        wording = " ".join((stated.sentence, *stated.caveats, mechanism.summary)).lower()
        promise("epsilon-dp" not in wording, "a metric guarantee is not called epsilon-DP")
        promise("ε-dp" not in wording, "a metric guarantee is not called ε-DP")
    if stated.notion == "none":
        promise(stated.loss(1.0) == np.inf, "without a guarantee the loss is unbounded")


def check_epsilon_matters(mechanism: WordMechanism) -> None:
    """A small epsilon and a large one give different laws, unless ``epsilon_matters`` denies it."""
    if not mechanism.epsilon_matters:
        promise(mechanism.guarantee.notion == "none", "without epsilon there is no guarantee")
        return
    ids = _ids(mechanism, 50)
    loud, quiet = (replace(mechanism, epsilon=epsilon) for epsilon in (1e3, 1e-2))
    laws = loud.log_probabilities(ids), quiet.log_probabilities(ids)
    if laws[0] is not None and laws[1] is not None:
        difference = abs(np.exp(laws[0]) - np.exp(laws[1])).sum(axis=1).mean() / 2
    else:
        shares = [
            (variant.sample(ids, 20, _generator(5)) == ids).mean() for variant in (loud, quiet)
        ]
        difference = shares[0] - shares[1]
    promise(difference > 0.1, "epsilon decides how much is released")


def check_once(mechanism: WordMechanism) -> None:
    """Reading N words off one point gives N different ones; reading one is the mechanism."""
    if not isinstance(mechanism, NoiseMechanism):
        return
    count = min(3, len(mechanism.space.output))
    word = mechanism.space.word(0)
    (result,) = _obfuscator(mechanism, n=count, release="once", rng=1).obfuscate([word])
    promise(len(set(result.variants)) == count, "one point gives different words")
    single = mechanism.guarantee.loss(1.0, 1)
    paid = np.inf if result.spent is None else result.spent
    promise(paid == single, "all variants of one point cost one release")


CHECKS: tuple[Callable[[WordMechanism], None], ...] = (
    check_shape_and_closure,
    check_law,
    check_seeds,
    check_batching,
    check_rows_are_independent,
    check_global_generator_untouched,
    check_pickle,
    check_silence,
    check_never_in_clear,
    check_own_protection,
    check_guarantee,
    check_epsilon_matters,
    check_once,
)


# Mechanisms that rewrite a text as a whole


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
    n = _variants_of(mechanism, 5)
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
    with _listening() as heard:
        list(Obfuscator(mechanism, n=_variants_of(mechanism, 2)).obfuscate([f"{SECRET} doctor"]))
    promise(SECRET not in heard.getvalue(), "no text in logs, prints or errors")


def check_text_generator(mechanism: Mechanism) -> None:
    """The global numpy generator is neither used nor moved."""
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002 - it is what must not move
    list(Obfuscator(mechanism, n=_variants_of(mechanism, 3)).obfuscate(TEXTS[:2]))
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    promise(before == after, "the global numpy generator stays untouched")


def check_text_pickle(mechanism: Mechanism) -> None:
    """A mechanism travels as its parameters and what it works on."""
    n = _variants_of(mechanism, 3)
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


TEXT_CHECKS: tuple[Callable[[TextMechanism], None], ...] = (
    check_text_variants,
    check_text_seeds,
    check_text_silence,
    check_text_generator,
    check_text_pickle,
    check_guarantee,
)


# Mechanisms that replace a text by a string of a pool


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


# Mechanisms that hide a text in a set of strings of a pool


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
    rows = mechanism.draw(np.full(DRAWS, hidden), Draws([(_generator(3), DRAWS)]))
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


def _variants_of(mechanism: Mechanism, n: int) -> int:
    """How many variants to ask for: a mechanism of sets decides that itself."""
    return 1 if isinstance(mechanism, SetMechanism) else n


def _obfuscator(mechanism: WordMechanism, **options: Any) -> Obfuscator:
    """With every word protected, whatever the mechanism's paper leaves in clear."""
    return Obfuscator(mechanism, pipeline=TextPipeline(), **options)


def _generator(seed: int) -> Generator:
    return Generator(PCG64(seed))


def _ids(mechanism: WordMechanism, count: int) -> IntArray:
    return np.arange(count, dtype=np.int64) * 7 % mechanism.space.size


def _texts(mechanism: WordMechanism, count: int) -> list[str]:
    words = mechanism.space.words(_ids(mechanism, 5 * count))
    texts = [" ".join(words[i : i + 1 + i % 5]) for i in range(count)]
    return [*texts[:-1], f"{SECRET} {words[0]}"]
