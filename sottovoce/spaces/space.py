"""WordSpace: words, their vectors, and the words that may be released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.arrays import ROWS_IN_A_BLOCK, read_array, row_blocks, row_norms
from sottovoce.errors import SpaceError, UsageError
from sottovoce.files import parse_json, whole_file
from sottovoce.spaces import store
from sottovoce.spaces.nearest import Nearest
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space_encoder import SpaceEncoder
from sottovoce.threads import single_threaded_blas
from sottovoce.types import UNKNOWN, BoolArray, Float32Array, Float64Array, IntArray

NORMS_SAMPLED = 10_000
"""Vectors measured when a space is opened whose description does not say how long they are."""
OF_ALL_WORDS = ("covariance", "ids_of_words", "phrase_ids", "phrases")
"""What takes a moment to find out, and does not depend on the words that may be released."""
ROUNDING = 1e-9
"""How far the mean variance of a covariance that was kept may be from 1."""
DAMAGE = (*(AttributeError, EOFError, KeyError, OSError, OverflowError, TypeError, ValueError),)
"""What comes of files that are not what they were."""


class WordSpace:
    """An immutable set of words with float32 vectors, mapped from disk or held in memory.

    Ids are positions, 0 to ``size - 1``; ``UNKNOWN`` (-1) stands for a word the space lacks.
    A space opened from a folder pickles as that folder's path and hash, so sending a
    mechanism to a worker process costs a few hundred bytes.

    encoder
        What gave the words their vectors, where it was a text encoder: so a word that the space
        lacks has a vector, too.
    axes
        What the encoder's vectors were projected onto, (its dimension, dimension), if they were.
    """

    def __init__(
        self,
        *,
        name: str,
        folded: Float32Array,
        words: bytes | NDArray[np.uint8],
        offsets: NDArray[np.int64],
        table: NDArray[np.int32],
        sha256: str | None = None,
        source: dict[str, str] | None = None,
        folder: Path | None = None,
        output: OutputVocabulary | None = None,
        encoder: SpaceEncoder | None = None,
        axes: Float64Array | None = None,
    ) -> None:
        self.name = name
        self.source = source or {}
        self.encoder, self.axes = encoder, axes
        self.folder = folder
        self._folded, self._words, self._offsets, self._table = folded, words, offsets, table
        self._sha256 = sha256
        self._output = output
        self._derived: dict[str, IntArray] = {}
        self._folded.setflags(write=False)

    @classmethod
    def open(cls, folder: Path | str) -> WordSpace:
        """Map a converted space; nothing is read until it is needed."""
        folder = Path(folder)
        try:
            description = parse_json((folder / store.DESCRIPTION).read_text())
            encoder = description.get("encoder")
            if description["layout"] != store.LAYOUT:
                raise SpaceError(
                    f"the space in {folder} has layout {description['layout']}, this version reads "
                    f"{store.LAYOUT}: add or import it again"
                )
            space = cls(
                name=description["name"],
                # As plain arrays: numpy's class of mapped ones is slow to take elements from.
                folded=np.asarray(read_array(folder / store.VECTORS)),
                words=np.asarray(np.memmap(folder / store.WORDS, dtype=np.uint8, mode="r")),
                offsets=np.asarray(read_array(folder / store.OFFSETS)),
                table=np.asarray(read_array(folder / store.TABLE)),
                sha256=description["sha256"],
                source=description["source"],
                folder=folder.resolve(),
                encoder=None if encoder is None else SpaceEncoder(**encoder),
                axes=read_array(folder / store.AXES, mapped=False)
                if (folder / store.AXES).exists()
                else None,
            )
            shape = (description["size"], description["dimension"] + 1)
            stated = description.get("norms", {})
            norms = [float(stated[name]) for name in ("median", "largest") if stated]
        except FileNotFoundError:
            raise SpaceError(
                f"no word space in {folder}: see 'sottovoce spaces list', or add the default one "
                "with 'sottovoce spaces add default'"
            ) from None
        except DAMAGE as error:
            raise SpaceError(
                f"the word space in {folder} is damaged ({type(error).__name__}): remove the "
                "folder and add or import the space again"
            ) from None
        if (
            space._folded.shape != shape
            or not space._axes_fit()
            or not store.index_fits(space._offsets, space._table, shape[0])
            or len(space._words) != space._offsets[-1]
        ):
            raise SpaceError(
                f"the word space in {folder} is damaged (sizes disagree): remove the folder and "
                "add or import the space again"
            )
        store.refuse_extreme(*(norms or space._typical_norms()))
        return space

    def _axes_fit(self) -> bool:
        """Whether the encoder's vectors become vectors of this space."""
        if self.encoder is None:
            return self.axes is None
        if self.axes is None:
            return self.encoder.dimension == self.dimension
        rows, columns = self.axes.shape
        return bool(rows - self.encoder.dimension in (0, 1) and columns == self.dimension)

    def _typical_norms(self) -> tuple[float, float]:
        """Median and largest length, of an even sample where there are many words."""
        step = max(1, self.size // NORMS_SAMPLED)
        return store.typical_norms(row_norms(self.vectors[::step]))

    @classmethod
    def from_arrays(
        cls,
        words: Sequence[str],
        vectors: ArrayLike,
        name: str = "in memory",
        encoder: SpaceEncoder | None = None,
    ) -> WordSpace:
        """A space held in memory, for experiments and tests."""
        folded = folded_rows(words, vectors)
        if not folded.size:
            raise UsageError("a word space needs at least one word")
        encoded = [word.encode("utf-8") for word in words]
        return cls(
            name=name,
            folded=folded,
            words=b"".join(encoded),
            offsets=np.cumsum([0, *map(len, encoded)], dtype=np.int64),
            table=store.hash_table(store.word_hashes(words)),
            encoder=encoder,
        )

    # What it holds

    @property
    def size(self) -> int:
        return len(self._folded)

    @property
    def dimension(self) -> int:
        return int(self._folded.shape[1]) - 1

    @property
    def vectors(self) -> Float32Array:
        """All vectors, (size, dimension), read-only."""
        return self._folded[:, :-1]

    @property
    def folded(self) -> Float32Array:
        """The vectors with one more column, -|w|^2 / 2; read-only."""
        return self._folded

    @cached_property
    def sha256(self) -> str:
        """The hash of words and vectors; output vocabularies do not change it."""
        if self._sha256 is not None:
            return self._sha256
        return store.content_hash(
            bytes(self._words), np.asarray(self._offsets), row_blocks(self._folded)
        )

    def word(self, position: int) -> str:
        if not 0 <= position < self.size:
            raise IndexError(f"word id {position} is not in 0..{self.size - 1}")
        start, end = self._offsets[position], self._offsets[position + 1]
        return bytes(self._words[start:end]).decode("utf-8")

    def words(self, ids: IntArray | Sequence[int]) -> list[str]:
        """The words with these ids; each distinct id is decoded once."""
        distinct, inverse = np.unique(np.asarray(ids, dtype=np.int64), return_inverse=True)
        if len(distinct) and not 0 <= distinct[0] <= distinct[-1] < self.size:
            raise IndexError(f"word ids must be in 0..{self.size - 1}")
        try:
            decoded = (
                self._all_words() if len(distinct) == self.size else self._some_words(distinct)
            )
        except UnicodeDecodeError:
            raise SpaceError(
                f"the words of the space '{self.name}' are damaged: remove its folder and add or "
                "import it again"
            ) from None
        return [decoded[position] for position in inverse.ravel().tolist()]

    def _some_words(self, ids: IntArray) -> list[str]:
        """The words of some ids, each decoded by itself."""
        text, bounds = memoryview(cast("bytes", self._words)), self._offsets
        spans = zip(bounds[ids].tolist(), bounds[ids + 1].tolist(), strict=True)
        return [str(text[start:end], "utf-8") for start, end in spans]

    def _all_words(self) -> list[str]:
        """All words, decoded at once and then cut: their places are counted in characters."""
        data = np.frombuffer(cast("bytes", self._words), np.uint8)
        # All bytes of a character but its first have the bits 10 in front.
        before = np.concatenate(([0], np.cumsum((data & 0xC0) != 0x80)))
        places = before[self._offsets].tolist()
        text = data.tobytes().decode()
        return [text[start:end] for start, end in pairwise(places)]

    def id(self, word: str) -> int:
        """The id of a word, or ``UNKNOWN``."""
        encoded = word.encode("utf-8", "surrogatepass")
        mask = len(self._table) - 1
        slot = store.word_hash(word) & mask
        while (position := int(self._table[slot])) != store.EMPTY_SLOT:
            start, end = self._offsets[position], self._offsets[position + 1]
            if end - start == len(encoded) and bytes(self._words[start:end]) == encoded:
                return position
            slot = (slot + 1) & mask
        return UNKNOWN

    def ids(self, words: Sequence[str]) -> IntArray:
        return np.fromiter((self.id(word) for word in words), dtype=np.int64, count=len(words))

    @cached_property
    def phrase_ids(self) -> IntArray:
        """The ids of entries of several words, with blanks between them."""
        return self._ids_where(np.arange(256) == ord(" "))

    def ids_with_other_bytes(self, usual: bytes) -> IntArray:
        """The ids of words that are not made of these bytes alone."""
        return self._ids_where(~np.isin(np.arange(256), list(usual)))

    def _ids_where(self, by_byte: BoolArray) -> IntArray:
        """The ids of words that hold one of these bytes."""
        places = np.flatnonzero(by_byte[np.frombuffer(cast("bytes", self._words), np.uint8)])
        return np.unique(np.searchsorted(self._offsets, places, side="right") - 1)

    @cached_property
    def phrases(self) -> dict[str, int]:
        """The words that phrases begin with, each with the number of words of the longest."""
        longest: dict[str, int] = {}
        for phrase in self.words(self.phrase_ids):
            first, *rest = phrase.split(" ")
            longest[first] = max(longest.get(first, 1), 1 + len(rest))
        return longest

    @property
    def listed(self) -> WordSpace:
        """The space of the listed words alone."""
        return self

    @cached_property
    def ids_of_words(self) -> dict[str, int]:
        """The ids of all words, for many look-ups at once; :meth:`id` needs no such dict."""
        return {word: position for position, word in enumerate(self.words(np.arange(self.size)))}

    def __contains__(self, word: str) -> bool:
        return self.id(word) != UNKNOWN

    def __len__(self) -> int:
        return self.size

    # What may leave

    @property
    def output(self) -> OutputVocabulary:
        """The words that may be released; all of them unless chosen otherwise."""
        return self._everything if self._output is None else self._output

    @cached_property
    def _everything(self) -> OutputVocabulary:
        return OutputVocabulary("all", np.arange(self.size, dtype=np.int64))

    def with_output(self, output: OutputVocabulary) -> WordSpace:
        """The same space, releasing only the words of ``output``."""
        if output.ids[-1] >= self.size or output.ids[0] < 0:
            raise UsageError(f"the output vocabulary '{output.name}' has ids outside the space")
        space = WordSpace(**self._parts(), output=output)
        known = {name: vars(self)[name] for name in OF_ALL_WORDS if name in vars(self)}
        vars(space).update(known)
        return space

    @cached_property
    def nearest_output(self) -> Nearest:
        """Exact Euclidean search over the output vocabulary (answers positions in it)."""
        everything = len(self.output) == self.size
        folded = self._folded if everything else self._folded[self.output.ids]
        return Nearest.from_folded(folded)

    @cached_property
    def likely_output(self) -> Nearest:
        """Exact search for the largest w.x - |w|^2 / 2 + s log p(w), with queries [x, 1, s].

        p is the popularity of the words that may be released; s says what it counts for.
        """
        folded = self._folded[self.output.ids]
        rows = np.column_stack([folded, self.output.log_popularity.astype(np.float32)])
        return Nearest(rows, "inner", coded=False)  # The last two columns are large.

    # Geometry that mechanisms need

    @cached_property
    def covariance(self) -> Float64Array:
        """Sample covariance of the vectors, scaled to mean variance 1 (section 3 of Xu et al.).

        Made once, kept beside the space on disk, under its hash: another space may have taken the
        folder since this one was opened, and must not get the shape of this one.
        """
        name = f"covariance-{self.sha256[:16]}"
        return _kept_on_disk(self.folder, name, self._made_covariance, self._fits)

    def _made_covariance(self) -> Float64Array:
        total = np.zeros((self.dimension, self.dimension))
        with single_threaded_blas():  # Blocks are small: threads would mostly wait.
            mean = np.zeros(self.dimension)
            for block in row_blocks(self._folded):
                mean += block[:, :-1].sum(axis=0, dtype=np.float64)
            mean /= self.size
            room = np.empty((ROWS_IN_A_BLOCK, self.dimension))  # New memory takes time.
            for block in row_blocks(self._folded):
                centered = np.subtract(block[:, :-1], mean, out=room[: len(block)])
                total += centered.T @ centered
        spread = np.trace(total) / self.dimension
        if not spread > 0:
            raise UsageError("the words of this space all have the same vector: it has no shape")
        return np.asarray(total / spread)

    def _fits(self, covariance: NDArray[Any]) -> bool:
        """Whether a file holds what may be the covariance: one of zeros would mean less noise."""
        return (
            covariance.shape == (self.dimension, self.dimension)
            and covariance.dtype == np.float64
            and np.array_equal(covariance, covariance.T)
            and bool(abs(np.trace(covariance) / self.dimension - 1) < ROUNDING)
        )

    def derived(self, name: str, size: int, make: Callable[[], IntArray]) -> IntArray:
        """Whole numbers that follow from the space alone: made once, kept beside it on disk.

        Nothing that depends on a text may come here.
        """
        if name not in self._derived:
            self._derived[name] = _kept_on_disk(
                self.folder,
                name,
                lambda: make().astype(np.int32),
                lambda kept: kept.shape == (size,) and kept.dtype.kind == "i",
            ).astype(np.int64)
        return self._derived[name]

    # Identity

    def __repr__(self) -> str:
        released = "" if self._output is None else f", output={self.output.name!r}"
        return f"WordSpace({self.name!r}, {self.size} x {self.dimension}{released})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:
            return _reopen, (self.folder, self.sha256, self._output)
        return partial(WordSpace, **self._parts(), output=self._output), ()

    def _parts(self) -> dict[str, Any]:
        """What it is made of, as its constructor takes it, without the output vocabulary."""
        return {
            "name": self.name,
            "folded": self._folded,
            "words": self._words,
            "offsets": self._offsets,
            "table": self._table,
            "sha256": self._sha256,
            "source": self.source,
            "folder": self.folder,
            "encoder": self.encoder,
            "axes": self.axes,
        }


def folded_rows(words: Sequence[str], vectors: ArrayLike) -> Float32Array:
    """The vectors of words with their half norms, unless something is wrong with either."""
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or len(array) != len(words) or not array.shape[1]:
        raise UsageError(f"{len(words)} words need as many vectors, got shape {array.shape}")
    if len(set(words)) != len(words):
        raise UsageError("the words of a space must differ from each other")
    if not np.isfinite(array).all():
        raise UsageError("vectors must be finite")
    store.refuse_extreme(*store.typical_norms(row_norms(array)))
    return store.with_half_norms(array)


def _kept_on_disk(
    folder: Path | None,
    name: str,
    make: Callable[[], NDArray[Any]],
    fits: Callable[[NDArray[Any]], bool],
) -> NDArray[Any]:
    """The array of this name, read from the folder if it fits, or made and, if possible, kept."""
    if folder is None:
        return make()
    file = folder / f"{name}.npy"
    with suppress(OSError, ValueError, EOFError):
        kept = read_array(file, mapped=False)
        if fits(kept):
            return kept
    made = make()
    # A folder that cannot be written to is no reason to fail.
    with suppress(OSError), whole_file(file) as part, part.open("wb") as out:
        np.save(out, made)
    return made


def _reopen(folder: Path, sha256: str, output: OutputVocabulary | None) -> WordSpace:
    space = open_cached(folder)
    if space.sha256 != sha256:
        raise SpaceError(f"the word space in {folder} changed since this object was made")
    return space if output is None else space.with_output(output)


@lru_cache(maxsize=8)
def open_cached(folder: Path) -> WordSpace:
    """One mapped space per folder and process, however many mechanisms use it."""
    return WordSpace.open(folder)
