"""What an encoder is to sottovoce, what all of them do to texts, and the vectors of a corpus."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.lib import format as npy

from sottovoce.arrays import read_array, unit_rows
from sottovoce.errors import UsageError
from sottovoce.files import GROWING, locked, move_file
from sottovoce.paths import cache_folder
from sottovoce.types import BoolArray, Float32Array, Progress

VECTORS_KEPT = 20_000
"""Vectors of texts kept in memory, so that they are not computed again; about 30 MB."""
LAYOUT = 2
"""Raised when the same encoder and texts would give other vectors."""
TEXTS_AT_A_TIME = 1024


class Encoder(Protocol):
    """Anything that turns texts into vectors whose inner product says how alike they are.

    name
        What :func:`load_encoder` loads it by.
    dimension
        The length of a vector.
    exact_batches
        Whether batches change no bit of a vector, not even by rounding.

    Two more are optional. ``unit_length``, if it is there and False, says that vectors have any
    length (:func:`has_unit_length`). ``encode_queries`` is a second tower: vectors of queries and
    private texts, to be multiplied with the others (:func:`query_side`).
    """

    name: str
    dimension: int
    exact_batches: bool

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the vectors; vectors kept on disk go by it."""

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """A row of length 1 (or any, see above) for each text, zeros for a blank one.

        Batches change nothing but, where ``exact_batches`` is False, the rounding.
        """

    def knows(self, texts: Sequence[str]) -> BoolArray:
        """False where the tokenizer cannot read a text: no token, or one for unknown characters.

        The vector of such a text says little about it, or is shared by all such texts.
        """


@cache
def shared_encoder(kind: Callable[..., Encoder], *arguments: str) -> Encoder:
    """The one encoder of its kind and model in this process: pickles lead here, too."""
    return kind(*arguments)


def readable(texts: Sequence[str]) -> list[str]:
    """The texts without blanks around them, and with ? for halves of characters."""
    if isinstance(texts, str):
        raise UsageError("encode takes a list of texts: put the one text into a list")
    return [text.encode("utf-8", "replace").decode().strip() for text in texts]


# Lengths and towers


def has_unit_length(encoder: Encoder) -> bool:
    """Whether all vectors but those of blank texts have length 1."""
    return bool(getattr(encoder, "unit_length", True))


def query_side(encoder: Encoder) -> Encoder:
    """The encoder of queries: the same one, unless it has a tower of their own."""
    return _QuerySide(encoder) if isinstance(encoder, _TwoTowers) else encoder


def at_unit_length(encoder: Encoder) -> Encoder:
    """The encoder with vectors of length 1, whose product is the cosine."""
    return encoder if has_unit_length(encoder) else _AtUnitLength(encoder)


@runtime_checkable
class _TwoTowers(Protocol):
    def encode_queries(self, texts: Sequence[str]) -> Float32Array: ...


class _View:
    """Another encoder, used in a certain way."""

    use: ClassVar[str]

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name, self.dimension = encoder.name, encoder.dimension
        self.exact_batches = encoder.exact_batches
        self.unit_length = has_unit_length(encoder)

    @property
    def fingerprint(self) -> str:
        return f"{self._encoder.fingerprint} {self.use}"

    def encode(self, texts: Sequence[str]) -> Float32Array:
        return self._encoder.encode(texts)

    def knows(self, texts: Sequence[str]) -> BoolArray:
        return self._encoder.knows(texts)


class _QuerySide(_View):
    use = "queries"

    def encode(self, texts: Sequence[str]) -> Float32Array:
        tower = self._encoder
        return tower.encode_queries(texts) if isinstance(tower, _TwoTowers) else tower.encode(texts)


class _AtUnitLength(_View):
    use = "at length 1"

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.unit_length = True

    def encode(self, texts: Sequence[str]) -> Float32Array:
        return unit_rows(super().encode(texts))


# Words: a vector that is drawn around must be one vector, to the last bit.


def encode_words(encoder: Encoder, words: Sequence[str]) -> Float32Array:
    """The vectors of single words: the same bits whatever words they are encoded with."""
    return one_by_one(encoder).encode(words)


def one_by_one(encoder: Encoder) -> Encoder:
    """The encoder itself where batches change no bit, else one that encodes text by text."""
    return encoder if encoder.exact_batches else _OneByOne(encoder)


class _OneByOne(_View):
    """Another encoder, which gets each text alone."""

    use = "one by one"

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.exact_batches = True

    def encode(self, texts: Sequence[str]) -> Float32Array:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            rows[place] = self._encoder.encode([text])[0]
        return rows


# Vectors of a corpus: computed once, kept on disk, mapped into memory. Only documents come here,
# never a person's queries. A file is named by a hash of the encoder and all texts, and holds
# vectors alone. It grows under another name, so that work which was killed goes on where it
# stopped, and gets its own name when it is whole.


def embeddings_folder() -> Path:
    """Where the vectors of corpora are kept; it may be emptied at any time."""
    return cache_folder() / "embeddings"


def corpus_vectors(
    encoder: Encoder, texts: Sequence[str], progress: Progress | None = None
) -> Float32Array:
    """The vectors of public texts, (texts, dimension), mapped from disk or computed now.

    Where nothing can be written they are computed in memory. Of two processes that want the same
    vectors, one computes them and the other waits.
    """
    shape = (len(texts), encoder.dimension)
    if not texts:
        return np.zeros(shape, dtype=np.float32)
    file = vectors_file(encoder, texts)
    if (kept := _opened(file, shape)) is not None:
        return kept
    with suppress(OSError):
        _make(file, shape, lambda start: _encoded(encoder, texts, start, progress))
    if (kept := _opened(file, shape)) is not None:
        return kept
    return np.concatenate(list(_encoded(encoder, texts, 0, progress)))


def kept_vectors(encoder: Encoder, texts: Sequence[str]) -> Float32Array | None:
    """What ``encode`` gives for these texts, if they are a corpus whose vectors are on disk.

    Nothing is written. None where encoding would round differently.
    """
    if not encoder.exact_batches:
        return None
    return _opened(vectors_file(encoder, texts), (len(texts), encoder.dimension))


def write_vectors(
    file: Path, encoder: Encoder, texts: Sequence[str], progress: Progress | None = None
) -> None:
    """Write the vectors of public texts, block by block; go on where a killed process stopped.

    The caller answers for it that the texts are those of that process.
    """
    shape = (len(texts), encoder.dimension)
    _make(file, shape, lambda start: _encoded(encoder, texts, start, progress))


def vectors_file(encoder: Encoder, texts: Sequence[str]) -> Path:
    """Where the vectors of these texts are kept, or would be."""
    return embeddings_folder() / f"{_key(encoder, texts)}.npy"


def _key(encoder: Encoder, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n{encoder.name}\n{encoder.fingerprint}".encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _encoded(
    encoder: Encoder, texts: Sequence[str], start: int, progress: Progress | None
) -> Iterator[Float32Array]:
    """The vectors from ``start`` on, block by block."""
    for place in range(start, len(texts), TEXTS_AT_A_TIME):
        yield encoder.encode(texts[place : place + TEXTS_AT_A_TIME])
        if progress is not None:
            progress(min(place + TEXTS_AT_A_TIME, len(texts)), len(texts))


def _opened(file: Path, shape: tuple[int, int]) -> Float32Array | None:
    with suppress(OSError, ValueError, EOFError):
        vectors: Float32Array = read_array(file)
        if vectors.shape == shape and vectors.dtype == np.float32:
            return np.asarray(vectors)
    return None


def _make(
    file: Path, shape: tuple[int, int], blocks: Callable[[int], Iterator[Float32Array]]
) -> None:
    """Write the file, unless another process does; go on where a killed one stopped."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(file.with_suffix(".lock"), wait=True, remove=True):
        if _opened(file, shape) is None:
            growing = file.with_suffix(GROWING)
            _grow(growing, shape, blocks)
            move_file(growing, file)


def _grow(
    growing: Path, shape: tuple[int, int], blocks: Callable[[int], Iterator[Float32Array]]
) -> None:
    """Append the rows that are missing, on disk block by block.

    The last block may not have been on disk when the power went: it is made again.
    """
    header, row = _header(shape), shape[1] * 4
    with growing.open("a+b") as out:
        out.seek(0)
        done = (os.fstat(out.fileno()).st_size - len(header)) // row
        if out.read(len(header)) != header:
            out.truncate(0)
            out.write(header)
            done = 0
        done = max(0, done - 1) // TEXTS_AT_A_TIME * TEXTS_AT_A_TIME
        out.truncate(len(header) + done * row)
        for block in blocks(done):
            out.write(block.astype("<f4").tobytes())
            out.flush()
            os.fsync(out.fileno())


def _header(shape: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    npy.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return out.getvalue()
