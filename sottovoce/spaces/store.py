"""A word space on disk: the layout, and a writer that streams and commits atomically.

A space is a folder::

    space.json    name, size, dimension, content hash, where it came from, by which encoder
    vectors.npy   float32 (size, dimension + 1); the last column is -|w|^2 / 2
    words.bin     the words, UTF-8, one after the other
    offsets.npy   int64 (size + 1); word i is words.bin[offsets[i]:offsets[i + 1]]
    table.npy     int32 hash table, open addressing: word -> id without building a dict
    axes.npy      float64 (encoder's dimension, dimension), where its vectors were projected

The extra column turns "nearest by Euclidean distance" into one matrix product
(argmin |z - w| = argmax z.w - |w|^2 / 2), so the kernel works on the mapped file as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sottovoce.arrays import row_norms
from sottovoce.errors import SpaceError
from sottovoce.files import move_folder, scratch_folder
from sottovoce.spaces.space_encoder import SpaceEncoder
from sottovoce.types import Float32Array, Float64Array, FloatArray

LAYOUT = 1
DESCRIPTION, VECTORS, WORDS = "space.json", "vectors.npy", "words.bin"
OFFSETS, TABLE, AXES = "offsets.npy", "table.npy", "axes.npy"
EMPTY_SLOT = -1
SHORTEST, LONGEST = 1e-6, 1e6
"""Between these lie the median and the largest length of the vectors of a usable space."""


class DuplicateWordError(SpaceError):
    """The same word was appended twice; ``first`` and ``second`` are its two ids."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"entries {first} and {second} are the same word")
        self.first, self.second = first, second


def word_hash(word: str) -> int:
    """A stable 64-bit hash of a word."""
    encoded = word.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")


def word_hashes(words: Iterable[str]) -> NDArray[np.uint64]:
    """The hashes of many words."""
    return np.fromiter((word_hash(word) for word in words), dtype=np.uint64)


def hash_table(hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
    """An open-addressing table (linear probing, at most half full) from hash to position."""
    size = 1 << max(1, int(2 * len(hashes)).bit_length())
    table = np.full(size, EMPTY_SLOT, dtype=np.int32)
    slots = (hashes & np.uint64(size - 1)).astype(np.int64)
    pending = np.arange(len(hashes), dtype=np.int32)
    while len(pending):
        # Of the words that aim at the same free slot the first one gets it.
        aimed_at, first = np.unique(slots[pending], return_index=True)
        free = table[aimed_at] == EMPTY_SLOT
        table[aimed_at[free]] = pending[first[free]]
        # The other words move on by one slot.
        placed = table[slots[pending]] == pending
        pending = pending[~placed]
        slots[pending] = (slots[pending] + 1) & (size - 1)
    return table


def index_fits(offsets: NDArray[Any], table: NDArray[Any], size: int) -> bool:
    """Whether words begin one after the other, and every look-up leads to one of them or ends."""
    return bool(
        offsets.dtype == np.int64
        and offsets.shape == (size + 1,)
        and offsets[0] == 0
        and (offsets[1:] >= offsets[:-1]).all()
        and table.dtype == np.int32
        and table.ndim == 1
        and len(table).bit_count() == 1
        and table.min() >= EMPTY_SLOT
        and table.max() < size
        and (table == EMPTY_SLOT).any()
    )


def with_half_norms(vectors: FloatArray) -> Float32Array:
    """The vectors with -|w|^2 / 2 as one more column."""
    folded = np.empty((len(vectors), vectors.shape[1] + 1), dtype=np.float32)
    folded[:, :-1] = vectors
    exact = folded[:, :-1].astype(np.float64)
    folded[:, -1] = -0.5 * np.einsum("ij,ij->i", exact, exact)
    return folded


def refuse_extreme(median: float, largest: float) -> None:
    """Refuse vectors of a scale at which float32 rounds noise away, or the vectors beside it.

    A noisy point is kept in float32, with 24 bits: at a length of a million its coordinates are
    multiples of about 0.06, so that noise of scale 1 is no longer what the guarantee speaks of; a
    vector of a millionth has as little left beside such noise. Further out (1e19, 1e-19) squares
    overflow, or vanish.
    """
    if largest > LONGEST or 0 < median < SHORTEST:
        raise SpaceError(
            f"the vectors are too {'large' if largest > LONGEST else 'small'} (median length "
            f"{median:.3g}, largest {largest:.3g}): noise in float32 needs lengths between "
            f"{SHORTEST:g} and {LONGEST:g}. Multiply all numbers by the same factor, and divide "
            "epsilon by it"
        )


def typical_norms(lengths: Float64Array) -> tuple[float, float]:
    """The median length of vectors and the largest; zeros are left out, and 0 if there is no other.

    A vector of zeros has no scale.
    """
    lengths = lengths[lengths > 0]
    return (float(np.median(lengths)), float(lengths.max())) if len(lengths) else (0.0, 0.0)


def content_hash(words: bytes, offsets: NDArray[np.int64], folded: Iterable[Float32Array]) -> str:
    """What identifies a space: its words and vectors, in order, nothing else."""
    digest = hashlib.sha256(b"sottovoce word space 1\n")
    digest.update(offsets.astype("<i8").tobytes())
    digest.update(words)
    for block in folded:
        digest.update(np.ascontiguousarray(block[:, :-1], dtype="<f4").tobytes())
    return digest.hexdigest()


def stored_blocks(vectors: Path, rows: int = 16384) -> Iterable[Float32Array]:
    """The rows of a stored array, read rather than mapped, so that memory stays small."""
    with vectors.open("rb") as file:
        npy.read_magic(file)
        (size, width), _, dtype = npy.read_array_header_1_0(file)
        for start in range(0, size, rows):
            count = min(rows, size - start)
            yield np.fromfile(file, dtype, count * width).reshape(count, width)


class SpaceWriter:
    """Writes a space block by block; it appears under its final name only when complete.

    Use as a context manager; leaving it without :meth:`commit` removes every trace. ``encoder``
    and ``axes`` say what gave the words their vectors, where something did that can be repeated.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        dimension: int,
        source: Mapping[str, str] | None = None,
        encoder: SpaceEncoder | None = None,
        axes: Float64Array | None = None,
    ) -> None:
        if dimension < 1:
            raise SpaceError("a word space needs vectors of at least one dimension")
        self.folder, self.name, self.dimension = Path(folder), name, dimension
        self.source = dict(source or {})
        self.encoder, self.axes = encoder, axes
        self.size = 0
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        scratch = scratch_folder(self.folder.parent, ".writing-")
        self._scratch = self._stack.enter_context(scratch)
        self._made = self._scratch / "space"
        self._made.mkdir(mode=0o700)
        self._words = (self._made / WORDS).open("wb")
        self._rows = (self._made / VECTORS).open("wb")
        self._write_header()
        self._norms: list[Float64Array] = []
        self._lengths: list[NDArray[np.int64]] = []
        self._hashes: list[NDArray[np.uint64]] = []

    def __enter__(self) -> SpaceWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._words.close()
        self._rows.close()
        self._stack.close()

    def append(self, words: Sequence[str], vectors: FloatArray) -> None:
        """Add words with their vectors, shape (len(words), dimension), all finite."""
        if vectors.shape != (len(words), self.dimension):
            raise SpaceError(
                f"expected vectors of shape {(len(words), self.dimension)}, got {vectors.shape}"
            )
        folded = with_half_norms(vectors)
        if not np.isfinite(folded).all():
            raise SpaceError("a vector holds a value that is not finite in float32")
        self._norms.append(row_norms(folded[:, :-1]))
        encoded = [word.encode("utf-8") for word in words]
        self._words.write(b"".join(encoded))
        self._rows.write(folded.tobytes())
        self._lengths.append(np.fromiter((len(word) for word in encoded), dtype=np.int64))
        self._hashes.append(word_hashes(words))
        self.size += len(words)

    def commit(self) -> Path:
        """Finish the files and move them into place; an earlier space of that name is replaced."""
        if not self.size:
            raise SpaceError("a word space needs at least one word")
        median, largest = typical_norms(np.concatenate(self._norms))
        refuse_extreme(median, largest)
        self._write_header()
        self._words.close()
        self._rows.close()
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(self._lengths))])
        np.save(self._made / OFFSETS, offsets)
        words = (self._made / WORDS).read_bytes()
        hashes = np.concatenate(self._hashes)
        self._refuse_duplicates(hashes, words, offsets)
        np.save(self._made / TABLE, hash_table(hashes))
        if self.axes is not None:
            np.save(self._made / AXES, self.axes)
        description = {
            "layout": LAYOUT,
            "name": self.name,
            "size": self.size,
            "dimension": self.dimension,
            "sha256": content_hash(words, offsets, stored_blocks(self._made / VECTORS)),
            "source": self.source,
            "encoder": None if self.encoder is None else asdict(self.encoder),
            "norms": {"median": median, "largest": largest},
        }
        (self._made / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n")
        move_folder(self._made, self.folder, aside=self._scratch)
        return self.folder

    @staticmethod
    def _refuse_duplicates(
        hashes: NDArray[np.uint64], words: bytes, offsets: NDArray[np.int64]
    ) -> None:
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        clashes = [
            (int(second), int(first))
            for first, second in zip(order[same], order[same + 1], strict=True)
            if words[offsets[first] : offsets[first + 1]]
            == words[offsets[second] : offsets[second + 1]]
        ]
        if clashes:
            second, first = min(clashes)
            raise DuplicateWordError(first, second)

    def _write_header(self) -> None:
        """Write the header of the vectors; it is padded, so it can be corrected in place."""
        self._rows.seek(0)
        shape = (self.size, self.dimension + 1)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._rows, header)
