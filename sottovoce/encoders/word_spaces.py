"""Word spaces whose vectors are a text encoder's: any word at all has a vector there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import (
    Encoder,
    corpus_vectors,
    encode_words,
    one_by_one,
    vectors_file,
)
from sottovoce.errors import SpaceError, UsageError
from sottovoce.resources import install
from sottovoce.resources.catalogue import Making, Resource, find
from sottovoce.resources.word_lists import WordList, read_lists
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.spaces.space_encoder import SpaceEncoder, principal_axes, projected
from sottovoce.spaces.store import SpaceWriter
from sottovoce.types import UNKNOWN, BoolArray, Float32Array, Progress

WORDS_AT_A_TIME = 16384
SHORTEST_CORRECTED = 7
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ROUNDING = (
    "computed on this machine; another processor may round them differently, so that the hash of "
    "the space is not the same everywhere"
)


# Words that a space lacks.


def word_vectors(
    space: WordSpace,
    words: Sequence[str],
    *,
    public: bool = False,
    progress: Progress | None = None,
) -> tuple[Float32Array, BoolArray]:
    """The vectors that words have in a space, by the encoder that made it, and which have one.

    A long word that is one letter off a listed one is taken for misspelled, and has the vector of
    that word. A word has none where the encoder cannot read it; its row is zeros. Vectors of
    ``public`` words, those of a log, are kept on disk.
    """
    encoder = space_encoder(space)
    readable = encoder.knows(words)
    if public:
        vectors = np.array(corpus_vectors(one_by_one(encoder), words, progress))
    else:
        vectors = encode_words(encoder, words)
    vectors[~readable] = 0
    if space.axes is not None:
        vectors = projected(vectors, space.axes)
        vectors[~readable] = 0
    corrected = np.array([misspelled(space, word) for word in words], dtype=np.int64)
    off = corrected != UNKNOWN
    vectors[off] = space.vectors[corrected[off]]
    return vectors, readable | off


def misspelled(space: WordSpace, word: str) -> int:
    """The id of the most frequent listed word that is one letter off, or ``UNKNOWN``.

    A letter too many, too few, another one, or two that changed places. Only words of seven letters
    or more are taken for misspelled: short ones are one letter off many others.
    """
    if len(word) < SHORTEST_CORRECTED or not word.isalpha():
        return UNKNOWN
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    candidates = {left + right[1:] for left, right in parts if right}
    candidates |= {left + right[1] + right[0] + right[2:] for left, right in parts if right[1:]}
    for letter in {*LETTERS, *word}:
        candidates |= {left + letter + right for left, right in parts}
        candidates |= {left + letter + right[1:] for left, right in parts if right}
    ids = space.listed.ids_of_words
    return min((ids[form] for form in candidates & ids.keys()), default=UNKNOWN)


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
            "with 'sottovoce spaces make' (or 'add'), or bring back the encoder it was made with"
        )
    return encoder


# Making spaces.


def make_space(
    name: str,
    encoder: str,
    words: WordList,
    *,
    dimensions: int | None = None,
    replacing: bool = False,
    progress: Progress | None = None,
) -> WordSpace:
    """Make a space of one's own, of a public list of words and phrases.

    Work that was killed goes on where it stopped when the same space is made again.

    encoder
        ``light``, ``strong``, or the folder of a model.
    words
        As ``read_lists`` or ``given_words`` of ``resources.word_lists`` give them.
    dimensions
        Keep only as many, in which the words of the list differ most.
    replacing
        A space of that name.
    """
    folder = install.folder_for(name, replacing)
    path = Path(encoder).expanduser()
    model = load_encoder(str(path.resolve()) if path.is_dir() else encoder)
    with install.room_to_write(folder.parent):
        _write(folder, name, model, readable_words(model, words), dimensions, {}, progress)
    open_cached.cache_clear()
    return open_cached(folder.resolve())


def add_made(
    resource: Resource, making: Making, progress: Progress | None, say: install.Say | None
) -> None:
    """Make a space of the catalogue with its encoder, its parts first."""
    parts = [part for part in map(find, making.parts) if part]
    tell = say or (lambda _: None)
    if is_there(resource, making.encoder):
        tell(f"{resource.name} is already there, and intact")
        return
    for part in parts:
        if not install.intact(part):
            install.add(part, progress=progress, say=say)
    encoder = load_encoder(making.encoder)
    listed = readable_words(encoder, read_lists(making.sources))
    refuse_other_words(resource, listed.words, making.words_sha256)
    tell(f"encoding the words of {resource.name}")
    about = {"about": resource.about, "licence": resource.licence}
    with install.room_to_write(resource.folder.parent) as aside:
        folder = aside / resource.name
        _write(folder, resource.name, encoder, listed, None, about, progress)
        install.move_into_place(folder, resource, aside, lambda: is_there(resource, making.encoder))
    open_cached.cache_clear()


def readable_words(encoder: Encoder, listed: WordList) -> WordList:
    """The words of a list that an encoder can read."""
    readable = encoder.knows(listed.words)
    words = (word for word, can_be_read in zip(listed.words, readable, strict=True) if can_be_read)
    return replace(listed, words=tuple(words))


def is_there(resource: Resource, encoder: str) -> bool:
    """Whether a space is on this machine, undamaged and by the encoder that is here now."""
    if not install.intact(resource):
        return False
    with suppress(SpaceError):
        return space_encoder(WordSpace.open(resource.folder)).name == encoder
    return False


def refuse_other_words(resource: Resource, words: Sequence[str], sha256: str) -> None:
    """Refuse words that are not those of the catalogue."""
    if install.words_hash(words) != sha256:
        raise SpaceError(
            f"the lists of {resource.name} gave other words than expected; nothing was installed. "
            "Please report this, with your platform and Python version"
        )


def _write(
    folder: Path,
    name: str,
    encoder: Encoder,
    listed: WordList,
    dimensions: int | None,
    about: Mapping[str, str],
    progress: Progress | None,
) -> None:
    """Encode the words of a list and store them as a space."""
    if dimensions is not None and not 1 <= dimensions < encoder.dimension:
        raise UsageError(
            f"--dimensions is a whole number below {encoder.dimension}, the dimensions of the "
            f"encoder's vectors, and at least 1: {dimensions} is not"
        )
    words, encoder_of_words = listed.words, one_by_one(encoder)
    vectors = corpus_vectors(encoder_of_words, words, progress)
    axes = None if dimensions is None else principal_axes(vectors, dimensions)
    with SpaceWriter(
        folder,
        name=name,
        dimension=dimensions or encoder.dimension,
        source={**about, **_facts(encoder, listed, dimensions)},
        encoder=SpaceEncoder(encoder.name, encoder.fingerprint, encoder.dimension),
        axes=axes,
    ) as writer:
        for start in range(0, len(words), WORDS_AT_A_TIME):
            rows = slice(start, start + WORDS_AT_A_TIME)
            block = vectors[rows]
            writer.append(words[rows], block if axes is None else projected(block, axes))
        writer.commit()
    # They were kept to go on with after a kill; now the space has them.
    with suppress(OSError):
        vectors_file(encoder_of_words, words).unlink(missing_ok=True)


def _facts(encoder: Encoder, listed: WordList, dimensions: int | None) -> dict[str, str]:
    """What ``sottovoce spaces info`` says about how a space was made."""
    projection = (
        "" if dimensions is None else f", the first {dimensions} principal axes of the list"
    )
    sources = listed.contributions
    not_clean = sum(source.left_out for source in sources)
    unread = sum(source.words for source in sources) - len(listed.words)
    return {
        "made with": f"{encoder.name} encoder, {encoder.dimension} dimensions{projection}",
        "encoder sha256": encoder.fingerprint,
        "words from": ", ".join(f"{source.source} ({source.words:,})" for source in sources),
        "left out": f"{not_clean:,} entries that are not clean, {unread:,} that the encoder cannot "
        "read",
        "vectors": ROUNDING,
    }
