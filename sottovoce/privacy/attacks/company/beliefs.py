"""What an attacker believes beforehand: which strings of a set look like something a person asks.

Beliefs are log-odds, to which the law of the sets is added: ln prior(x) + ln P(S | x), the exact
posterior of each member up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.likeness import Likeness, logistic
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import stems, words
from sottovoce.types import Float32Array, Float64Array

Belief: TypeAlias = Callable[[SeenSet], Float64Array]
"""The log-odds of each string of a set."""

_SENSITIVE = """
cancer tumour hiv std herpes pregnant abortion miscarriage infertility dementia diabetes epilepsy
depression anxiety suicide self-harm psychosis bulimia therapy medication addiction alcohol cocaine
opioid gambling debt bankruptcy benefits eviction fired dismissal harassment discrimination strike
whistleblower divorce custody affair paternity adoption abuse violence rape blackmail stalking
arrest police prison conviction lawyer lawsuit deportation asylum undocumented visa refugee
gay lesbian transgender sex porn erectile religion atheist headscarf conversion protest party
disability obesity scar tumour surgery
"""
SENSITIVE_WORDS = tuple(dict.fromkeys(_SENSITIVE.split()))
"""Subjects that people would rather not be known for, one word each."""
FOR_WORD, FOR_COSINE = 3.0, 10.0
"""The log-odds in favour of a string with such a word, and of one near to it."""
NEIGHBOURS = 3
"""How many texts of a history a string must be near to."""
STRANGERS = 2000
"""Strings of the pool that a history is compared with."""


def nothing(seen: SeenSet) -> Float64Array:
    """All strings are alike."""
    return np.zeros(len(seen.strings))


def looks_like(likeness: Likeness) -> Belief:
    """The learned log-ratio of texts of the person's kind against the pool."""

    def belief(seen: SeenSet) -> Float64Array:
        return likeness.log_ratio(seen.strings, seen.vectors)

    return belief


def is_popular(pool: Pool) -> Belief:
    """As often as the pool says that a string is asked; strings that it lacks as its rarest."""
    assert pool.popularity is not None  # noqa: S101 - only asked for with a popularity
    logs = np.log(pool.popularity)

    def belief(seen: SeenSet) -> Float64Array:
        places = [pool.place(string) for string in seen.strings]
        return np.array([logs.min() if place is None else logs[place] for place in places])

    return belief


def is_sensitive(encoder: Encoder) -> Belief:
    """Strings on subjects that people hide are what a person hides."""
    subjects = encoder.encode(SENSITIVE_WORDS)
    listed = frozenset(stems(SENSITIVE_WORDS))

    def belief(seen: SeenSet) -> Float64Array:
        nearest = (seen.vectors @ subjects.T).max(axis=1).astype(np.float64)
        said = [not listed.isdisjoint(stems(words(string))) for string in seen.strings]
        return np.asarray(FOR_COSINE * nearest + FOR_WORD * np.array(said))

    return belief


def is_like_history(history: Sequence[str], pool: Pool, likeness: Likeness | None = None) -> Belief:
    """Strings near to what this person asked before, and of the kind, where that is known.

    How much nearness says is learned from the history itself: each of its texts against the
    others, and the pool's strings against all of them.
    """
    texts = [folded_text(text) for text in history]
    asked = pool.encoder.encode(texts)

    def numbers(
        strings: Sequence[str], vectors: Float32Array, cosines: Float64Array
    ) -> Float64Array:
        few = np.sort(cosines, axis=1)[:, -NEIGHBOURS:]
        columns = [cosines.mean(axis=1), few.mean(axis=1)]
        if likeness is not None:
            columns.append(likeness.log_ratio(strings, vectors))
        return np.column_stack(columns)

    among = _cosines(asked, asked)
    without_itself = among[~np.eye(len(asked), dtype=bool)].reshape(len(asked), -1)
    some = np.random.default_rng(0).permutation(len(pool))[:STRANGERS]
    strangers = pool.vectors[some]
    rows = np.concatenate(
        [
            numbers(texts, asked, without_itself),
            numbers([pool.strings[at] for at in some], strangers, _cosines(strangers, asked)),
        ]
    )
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    weights = logistic((rows - middle) / spread, np.arange(len(rows)) < len(asked))

    def belief(seen: SeenSet) -> Float64Array:
        found = numbers(seen.strings, seen.vectors, _cosines(seen.vectors, asked))
        return np.asarray((found - middle) / spread @ weights[:-1] + weights[-1])

    return belief


def _cosines(first: Float32Array, second: Float32Array) -> Float64Array:
    return np.asarray(first @ second.T, dtype=np.float64)
