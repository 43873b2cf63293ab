"""Word spaces whose vectors are a text encoder's: any word at all has a vector there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.errors import SpaceError
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.space_encoder import projected
from sottovoce.types import BoolArray, Float32Array


def word_vectors(space: WordSpace, words: Sequence[str]) -> tuple[Float32Array, BoolArray]:
    """The vectors that words have in a space, by the encoder that made it, and which have one.

    A word has none where the encoder cannot read it; its row is zeros.
    """
    encoder = space_encoder(space)
    vectors = encoder.encode(words)
    if space.axes is not None:
        vectors = projected(vectors, space.axes)
    return vectors, np.ones(len(words), dtype=np.bool_)


def space_encoder(space: WordSpace) -> Encoder:
    """The encoder that made a space; another one than that is refused."""
    if space.encoder is None:
        raise SpaceError(
            f"the word space '{space.name}' was not made with an encoder: it has vectors for the "
            "words of its list alone"
        )
    encoder = load_encoder(space.encoder.name)
    if encoder.fingerprint != space.encoder.fingerprint:
        raise SpaceError(
            f"the encoder '{encoder.name}' on this machine is not the one that made the word space "
            f"'{space.name}': words would get vectors of another function. Make the space again "
            "with 'sottovoce spaces make', or bring the encoder back that it was made with"
        )
    return encoder
