"""What mechanisms promise that work word by word."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.mechanisms.base import (
    WordMechanism,
)
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.testing.promises import (
    DRAWS,
    SECRET,
    SMALL_PICKLE,
    check_guarantee,
    generator,
    listening,
    promise,
)
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray


def check_shape_and_closure(mechanism: WordMechanism) -> None:
    """Ids in, ids out: shape, dtype, and only words of the output vocabulary."""
    ids = _ids(mechanism, 40)
    drawn = mechanism.sample(ids, 3, generator(1))
    promise(drawn.shape == (3, 40), "sample answers an array of shape (n, len(ids))")
    promise(drawn.dtype == np.int64, "sample answers int64 ids")
    promise(
        np.isin(drawn, mechanism.space.output.ids).all(), "only the output vocabulary is released"
    )
    empty = mechanism.sample(ids[:0], 3, generator(1))
    promise(empty.shape == (3, 0), "no words in, no words out")
    half = mechanism.space.output.ids[::2]
    if len(half) >= 2:
        narrowed = mechanism.space.with_output(OutputVocabulary("every second word", half))
        try:
            drawn = replace(mechanism, space=narrowed).sample(ids, 3, generator(1))
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
    drawn = mechanism.sample(ids, DRAWS, generator(2))
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
    first = low.sample(ids, 5, generator(7))
    promise(np.array_equal(first, low.sample(ids, 5, generator(7))), "same seed, same draw")
    promise(not np.array_equal(first, low.sample(ids, 5, generator(8))), "seeds matter")


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
    mechanism.sample(_ids(mechanism, 10), 2, generator(1))
    list(_obfuscator(mechanism, n=2).obfuscate(_texts(mechanism, 2)))
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    promise(before == after, "the global numpy generator stays untouched")


def check_pickle(mechanism: WordMechanism) -> None:
    """A mechanism travels as its parameters; what it computed stays behind."""
    mechanism.sample(_ids(mechanism, 5), 1, generator(1))
    size = len(pickle.dumps(mechanism)) - len(pickle.dumps(mechanism.space))
    promise(size < SMALL_PICKLE, f"a pickle adds at most {SMALL_PICKLE} bytes to the space's")
    copy = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own bytes
    promise(copy == mechanism, "a pickle comes back equal")


def check_silence(mechanism: WordMechanism) -> None:
    """Neither logs, prints nor errors hold a word of the text."""
    text = f"{SECRET} {mechanism.space.word(0)}"
    strict = Obfuscator(mechanism, pipeline=TextPipeline(unknown="error"))
    with listening() as heard:
        list(_obfuscator(mechanism, n=2).obfuscate([text]))
        try:
            list(strict.obfuscate([text]))
        except SottovoceError as error:
            heard.write(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        else:
            promise(False, "an unknown word is an error when the policy says so")
    promise(SECRET not in heard.getvalue(), "no text in logs, prints or errors")


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
            (variant.sample(ids, 20, generator(5)) == ids).mean() for variant in (loud, quiet)
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


def _obfuscator(mechanism: WordMechanism, **options: Any) -> Obfuscator:
    """With every word protected, whatever the mechanism's paper leaves in clear."""
    return Obfuscator(mechanism, pipeline=TextPipeline(), **options)


def _ids(mechanism: WordMechanism, count: int) -> IntArray:
    return np.arange(count, dtype=np.int64) * 7 % mechanism.space.size


def _texts(mechanism: WordMechanism, count: int) -> list[str]:
    words = mechanism.space.words(_ids(mechanism, 5 * count))
    texts = [" ".join(words[i : i + 1 + i % 5]) for i in range(count)]
    return [*texts[:-1], f"{SECRET} {words[0]}"]


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
