"""Spaces of given word vectors, opened: an encoder gives a vector to any word that they lack.

The vectors of the list stay as they are. For another word the space's vector is predicted from the
encoder's, by the affine map that does so best for the words of the list (ridge regression), scaled
so that predictions differ from the mean as much as vectors of the list do. List and encoder are
public, and so is the map.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from sottovoce.arrays import row_norms
from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder, corpus_vectors, one_by_one, vectors_file
from sottovoce.encoders.word_spaces import is_there, refuse_other_words
from sottovoce.errors import UsageError
from sottovoce.resources import install
from sottovoce.resources.catalogue import Opening, Resource, find, named
from sottovoce.resources.local import load_space
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.spaces.space_encoder import SpaceEncoder, projected
from sottovoce.spaces.store import SpaceWriter
from sottovoce.spaces.vocabularies import is_clean
from sottovoce.types import Float32Array, Float64Array, Progress

ROWS_AT_A_TIME = 16384
NEEDED = ("onnx", "onnxruntime", "pyarrow")
"""Packages that opening a space of the catalogue takes."""
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
        _write(folder, name, space, load_encoder(encoder), space, {}, progress)
    open_cached.cache_clear()
    return open_cached(folder.resolve())


def add_opened(
    resource: Resource, opening: Opening, progress: Progress | None, say: install.Say | None
) -> None:
    """Open a space of the catalogue: its parts first, then more words, then the encoder's map."""
    tell = say or (lambda _: None)
    if is_there(resource, opening.encoder):
        tell(f"{resource.name} is already there, and intact")
        return
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        install.add(named(opening.base), progress=progress, say=say)
        tell(
            f"{' and '.join(missing)} missing: {opening.base} serves as {resource.alias}, and "
            "words that it lacks get a uniform stand-in. To open it, pip install "
            f"'sottovoce[strong,data]' and add {resource.alias} again"
        )
        return
    for part in filter(None, map(find, opening.parts)):
        if not install.intact(part):
            install.add(part, progress=progress, say=say)
    base, donor = load_space(opening.base), load_space(opening.donor)
    words = more_words(base, donor, opening.looked_at)
    listed = [*base.words(np.arange(base.size)), *words]
    refuse_other_words(resource, listed, opening.words_sha256)
    tell(f"opening {opening.base}")
    about = {"about": resource.about, "licence": resource.licence}
    about["more words"] = f"{len(words):,}, predicted from {opening.donor}"
    with install.room_to_write(resource.folder.parent) as aside:
        folder = aside / resource.name
        extended = with_words(base, words, predicted(base, donor, words))
        encoder = load_encoder(opening.encoder)
        _write(folder, resource.name, base, encoder, extended, about, progress)
        install.move_into_place(
            folder, resource, aside, lambda: is_there(resource, opening.encoder)
        )
    open_cached.cache_clear()


def more_words(base: WordSpace, donor: WordSpace, looked_at: int) -> list[str]:
    """The clean ones of the donor's most frequent words that the base lacks."""
    frequent = donor.words(np.arange(min(looked_at, donor.size)))
    return [word for word in frequent if is_clean(word) and word not in base]


def predicted(base: WordSpace, donor: WordSpace, words: Sequence[str]) -> Float32Array:
    """The vectors that words of a donor would have in the base."""
    shared = donor.ids(base.words(np.arange(base.size)))
    both = shared >= 0
    axes = fitted_axes(donor.vectors[shared[both]], base.vectors[both])
    return projected(donor.vectors[donor.ids(words)], axes)


def _write(
    folder: Path,
    name: str,
    base: WordSpace,
    encoder: Encoder,
    extended: WordSpace,
    about: Mapping[str, str],
    progress: Progress | None,
) -> None:
    """Fit the encoder's map to the base, and write the extended space with it."""
    if base.encoder is not None:
        raise UsageError(f"the space '{base.name}' has an encoder: it is open already")
    words = base.words(np.arange(base.size))
    readable = encoder.knows(words)
    read = [word for word, can_be_read in zip(words, readable, strict=True) if can_be_read]
    if len(read) <= encoder.dimension:
        raise UsageError(
            f"the encoder reads {len(read):,} words of the space '{base.name}': to learn how its "
            f"vectors follow from the encoder's takes more than {encoder.dimension:,}"
        )
    encoder_of_words = one_by_one(encoder)
    axes = fitted_axes(corpus_vectors(encoder_of_words, read, progress), base.vectors[readable])
    source = {
        **base.source,
        **about,
        "opened with": f"{encoder.name} encoder: vectors of other words are predicted from its "
        f"{encoder.dimension} dimensions",
        "encoder sha256": encoder.fingerprint,
    }
    with SpaceWriter(
        folder,
        name=name,
        dimension=base.dimension,
        source=source,
        encoder=SpaceEncoder(encoder.name, encoder.fingerprint, encoder.dimension),
        axes=axes,
    ) as writer:
        for start in range(0, extended.size, ROWS_AT_A_TIME):
            ids = np.arange(start, min(start + ROWS_AT_A_TIME, extended.size))
            writer.append(extended.words(ids), extended.vectors[ids])
        writer.commit()
    # They were kept to go on with after a kill; now the space has what follows from them.
    with suppress(OSError):
        vectors_file(encoder_of_words, read).unlink(missing_ok=True)


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
