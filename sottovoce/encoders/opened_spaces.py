"""Spaces of given word vectors, opened: an encoder gives a vector to any word that they lack.

The vectors of the list stay as they are. For another word the space's vector is predicted from the
encoder's, by the affine map that does so best for the words of the list (ridge regression), scaled
so that predictions differ from the mean as much as vectors of the list do. List and encoder are
public, and so is the map.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sottovoce.arrays import row_blocks, row_norms
from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder, corpus_vectors, one_by_one
from sottovoce.errors import UsageError
from sottovoce.resources import install
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.spaces.space_encoder import SpaceEncoder
from sottovoce.spaces.store import SpaceWriter
from sottovoce.types import Float32Array, Float64Array, Progress

RIDGE = 1.0
"""The penalty of the map: a word's vector has length 1, and there are thousands of them."""


def open_space(
    space: WordSpace,
    name: str,
    encoder: str,
    *,
    replacing: bool = False,
    progress: Progress | None = None,
) -> WordSpace:
    """Store the same space under another name, with an encoder for all words that it lacks."""
    folder = install.folder_for(name, replacing)
    with install.room_to_write(folder.parent):
        write_opened(folder, name, space, load_encoder(encoder), progress)
    open_cached.cache_clear()
    return open_cached(folder.resolve())


def write_opened(
    folder: Path, name: str, space: WordSpace, encoder: Encoder, progress: Progress | None
) -> None:
    """Fit the map and write the space with it."""
    if space.encoder is not None:
        raise UsageError(f"the space '{space.name}' has an encoder: it is open already")
    words = space.words(np.arange(space.size))
    readable = encoder.knows(words)
    listed = [word for word, can_be_read in zip(words, readable, strict=True) if can_be_read]
    if len(listed) <= encoder.dimension:
        raise UsageError(
            f"the encoder reads {len(listed):,} words of the space '{space.name}': to learn how "
            f"its vectors follow from the encoder's takes more than {encoder.dimension:,}"
        )
    vectors = corpus_vectors(one_by_one(encoder), listed, progress)
    axes = fitted_axes(vectors, space.vectors[readable])
    source = {
        **space.source,
        "opened with": f"{encoder.name} encoder: vectors of other words are predicted from its "
        f"{encoder.dimension} dimensions",
        "encoder sha256": encoder.fingerprint,
    }
    with SpaceWriter(
        folder,
        name=name,
        dimension=space.dimension,
        source=source,
        encoder=SpaceEncoder(encoder.name, encoder.fingerprint, encoder.dimension),
        axes=axes,
    ) as writer:
        start = 0
        for block in row_blocks(space.folded):
            writer.append(words[start : start + len(block)], block[:, :-1])
            start += len(block)
        writer.commit()


def fitted_axes(encoded: Float32Array, vectors: Float32Array) -> Float64Array:
    """The map from an encoder's vectors to a space's, (encoder's dimension + 1, dimension).

    Predictions lie nearer to the mean than what they predict, so the map is scaled until they lie
    as far from it on average. Its last row is added to every prediction.
    """
    center, mean = encoded.mean(axis=0, dtype=np.float64), vectors.mean(axis=0, dtype=np.float64)
    inputs, targets = encoded - center, vectors - mean
    penalty = RIDGE * np.eye(inputs.shape[1])
    axes = np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ targets)
    axes *= row_norms(targets).mean() / row_norms(inputs @ axes).mean()
    return np.vstack([axes, mean - center @ axes])
