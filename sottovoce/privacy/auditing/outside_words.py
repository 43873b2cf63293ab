"""Words outside the list of a space, for audits: what is promised must hold for them, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from sottovoce.encoders.word_spaces import word_vectors
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.word_samples import sample_words
from sottovoce.spaces.extended_space import with_words
from sottovoce.types import IntArray


def with_outside_words(
    mechanism: WordMechanism, count: int, rng: Generator
) -> tuple[WordMechanism, IntArray]:
    """The mechanism on a space with misspelled words, where an encoder made it, and their ids.

    A misspelled word is one of the list with its middle letter doubled.
    """
    space = mechanism.space
    if space.encoder is None:
        return mechanism, np.empty(0, dtype=np.int64)
    listed = space.words(sample_words(space, count, rng))
    doubled = dict.fromkeys(word[: len(word) // 2 + 1] + word[len(word) // 2 :] for word in listed)
    words = [word for word in doubled if word not in space]
    vectors, readable = word_vectors(space, words)
    words = [words[row] for row in np.flatnonzero(readable)]
    if not words:
        return mechanism, np.empty(0, dtype=np.int64)
    extended = with_words(space, words, vectors[readable])
    return replace(mechanism, space=extended), np.arange(space.size, extended.size)
