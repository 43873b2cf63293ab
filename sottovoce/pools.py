"""Pools: public strings with their sentence vectors, from which whole texts are replaced."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sottovoce import pool_store
from sottovoce.arrays import read_array, row_blocks
from sottovoce.collections import DEMO, STRING_SOURCES, has_strings, read_strings
from sottovoce.encoders import corpus_vectors, load_encoder
from sottovoce.encoders.base import Encoder, embeddings_folder, has_unit_length, query_side
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import whole_file
from sottovoce.sensitive import sensitivity
from sottovoce.spaces.nearest import Nearest
from sottovoce.subjects import ordered_within, subjects_of
from sottovoce.text.comparing import folded_text
from sottovoce.text.text_index import TextIndex
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

SUBJECTS_LAYOUT = 2
"""Raised when the same strings would have other subjects."""
SENSITIVITY_LAYOUT = 1
"""Raised when the same strings would have another sensitivity: with the list of words, say."""
Numbers = TypeVar("Numbers", IntArray, Float64Array)


class Pool:
    """Public strings, all different as texts are compared, one line each, in a fixed order.

    It must be chosen without the private texts. Vectors are computed when first needed, kept on
    disk and mapped. A pool read from a source pickles as that source, its encoder and its hash.

    weights
        How popular each string is, in public: for decoys that are drawn by it. Those of a string
        that comes again are added up; without weights, it counts how often a string comes.
    """

    def __init__(
        self,
        strings: Iterable[str],
        encoder: str | Encoder = "auto",
        *,
        name: str = "in memory",
        source: str | None = None,
        weights: Iterable[float] | None = None,
    ) -> None:
        if isinstance(strings, str):
            raise UsageError("a pool takes a list of strings, not a single one")
        lines: dict[str, str] = {}
        sums: dict[str, float] = {}
        popularities = repeat(1.0) if weights is None else weights
        for string, weight in zip(strings, popularities, strict=weights is not None):
            folded = folded_text(string)
            if folded:
                lines.setdefault(folded, " ".join(string.split()))
                sums[folded] = sums.get(folded, 0.0) + weight
        if not lines:
            raise UsageError("the pool holds no string: nothing could ever be released")
        self._fill(
            tuple(lines.values()), np.fromiter(sums.values(), np.float64), TextIndex.of(lines)
        )
        self.encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self.name, self.source = name, source
        self._vectors: Float32Array | None = None

    def _fill(
        self, strings: tuple[str, ...], popularity: Float64Array | None, index: TextIndex
    ) -> None:
        """Take strings that are all different as texts are compared."""
        self.strings = strings
        differs = popularity is not None and bool((popularity != popularity[0]).any())
        self.popularity = popularity if differs else None
        self.index = index

    @classmethod
    def open(cls, name: str, encoder: str | Encoder = "auto") -> Pool:
        """A pool that was made (``sottovoce pools make``), by its name.

        ``auto`` is the encoder that it was made with. With another one, its vectors are computed
        as those of any file.
        """
        facts = pool_store.pool_facts(name)
        pool = cls.__new__(cls)
        pool._fill(*pool_store.read_stored(facts))
        encoder_to_load = facts.encoder if encoder == "auto" else encoder
        pool.encoder = (
            load_encoder(encoder_to_load) if isinstance(encoder_to_load, str) else encoder_to_load
        )
        pool.name = pool.source = name
        pool._vectors = None
        if pool.encoder.name == facts.encoder:
            if pool.encoder.fingerprint != facts.encoder_fingerprint:
                raise SottovoceError(
                    f"the encoder of the pool '{name}' changed since it was made: make it again "
                    "with 'sottovoce pools make --replace'"
                )
            pool._vectors = pool_store.map_vectors(facts)
        return pool

    def prepare(self, progress: Progress | None = None) -> Pool:
        """Compute the vectors now rather than when they are first needed."""
        if self._vectors is None:
            self._vectors = corpus_vectors(self.encoder, self.strings, progress)
        return self

    @property
    def vectors(self) -> Float32Array:
        """The vector of each string, (len(self), dimension), mapped from disk."""
        self.prepare()
        assert self._vectors is not None  # noqa: S101 - prepare has seen to it
        return self._vectors

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    @property
    def unit_length(self) -> bool:
        """Whether vectors have length 1."""
        return has_unit_length(self.encoder)

    @property
    def one_tower(self) -> bool:
        """Whether private texts have the vectors that they would have as strings of the pool."""
        return query_side(self.encoder) is self.encoder

    def vectors_of_texts(self, texts: Sequence[str]) -> Float32Array:
        """The vectors of private texts, in memory: by the tower for queries, if there are two."""
        return query_side(self.encoder).encode(texts)

    @cached_property
    def longest(self) -> int:
        """The number of characters of the longest string."""
        return max(map(len, self.strings))

    @cached_property
    def sha256(self) -> str:
        """The hash of the strings and of all that decides their vectors."""
        digest = hashlib.sha256(self.encoder.fingerprint.encode())
        for string in self.strings:
            digest.update(string.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()

    @property
    def sha256_with_popularity(self) -> str:
        """The hash of all that decides draws and attacks; ``sha256`` where all are as popular."""
        return self.drawn_with(self.popularity)

    def drawn_with(self, shares: Float64Array | None) -> str:
        """The hash of the pool, and of the shares by which its strings are drawn, if by any."""
        if shares is None:
            return self.sha256
        return hashlib.sha256(self.sha256.encode() + shares.tobytes()).hexdigest()

    def place(self, text: str) -> int | None:
        """Where the same text stands in the pool; None if it does not."""
        return self.index.find(text, self.strings)

    def representatives(
        self, texts: Sequence[str], vectors: Float32Array | None = None
    ) -> IntArray:
        """The place of each text, or else of the string nearest to it, the first of equals.

        vectors
            Of the texts as they are compared, by the pool's encoder, where somebody has them.
        """
        folded = [folded_text(text) for text in texts]
        places = [self.place(text) for text in folded]
        rows = [row for row, place in enumerate(places) if place is None]
        out = np.array([-1 if place is None else place for place in places], dtype=np.int64)
        if rows:
            foreign = (
                self.encoder.encode([folded[row] for row in rows])
                if vectors is None
                else vectors[rows]
            )
            out[rows] = self.best(foreign, 1)[:, 0]
        return out

    @cached_property
    def covariance(self) -> Float64Array:
        """Sample covariance of the vectors, scaled to mean variance 1."""
        sums = np.zeros(self.dimension)
        products = np.zeros((self.dimension, self.dimension))
        with single_threaded_blas():  # Several threads would round differently.
            for block in row_blocks(self.vectors):
                exact = block.astype(np.float64)
                sums += exact.sum(axis=0)
                products += exact.T @ exact
        centered = products - np.outer(sums, sums) / len(self)
        spread = np.trace(centered) / self.dimension
        if not spread > 1e-9 * len(self):
            raise UsageError("the strings of the pool all have the same vector: it has no shape")
        return np.asarray(centered / spread)

    @cached_property
    def sensitivity(self) -> Float64Array:
        """The log-odds that each string is one that people hide, up to a constant.

        They are kept on disk; see :mod:`sottovoce.sensitive`.
        """
        return self._kept(
            f"sensitivity {SENSITIVITY_LAYOUT}",
            np.empty(len(self)),
            lambda: sensitivity(self.strings, self.vectors, self.encoder),
        )

    def subjects(self, count: int) -> tuple[IntArray, IntArray]:
        """The number of each string's subject, and all places, subject after subject, in order.

        They are kept on disk; see :mod:`sottovoce.subjects`.
        """
        if not self.unit_length:
            raise UsageError(
                "subjects are found by the cosine of vectors: use an encoder of unit length"
            )

        def cut() -> IntArray:
            subjects = subjects_of(self.vectors, count)
            return np.stack([subjects, ordered_within(self.vectors, subjects)])

        like = np.empty((2, len(self)), np.int64)
        subjects, order = self._kept(f"subjects {SUBJECTS_LAYOUT} {count}", like, cut)
        return subjects, order

    def _kept(self, what: str, like: Numbers, compute: Callable[[], Numbers]) -> Numbers:
        """Numbers that strings and encoder decide, computed once and kept on disk.

        like
            An array of their shape and type: a file with another was not written by us.
        """
        key = hashlib.sha256(f"{what} {self.sha256}".encode())
        file = embeddings_folder() / f"{key.hexdigest()}.npy"
        with suppress(OSError, ValueError, EOFError):
            kept: Numbers = read_array(file, mapped=False)
            if kept.shape == like.shape and kept.dtype == like.dtype:
                return kept
        computed = compute()
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(file) as growing, growing.open("wb") as out:
                np.save(out, computed)
        return computed

    @cached_property
    def nearest(self) -> Nearest:
        """Exact search for the largest inner product, ties to the first string."""
        return Nearest(self.vectors, "inner")

    def best(self, points: Float32Array, k: int) -> IntArray:
        """The places of the ``k`` strings with the largest inner product, best first."""
        return self.nearest.top(points, k)[0]

    def __len__(self) -> int:
        return len(self.strings)

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Pool) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"Pool({self.name!r}, {len(self)} strings, {self.encoder!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.source is None:
            return _rebuilt, (self.strings, self.encoder, self.name, self.popularity)
        return _reopened, (self.source, self.encoder, self.sha256_with_popularity)


def load_pool(
    source: str | Path, encoder: str | Encoder = "auto", progress: Progress | None = None
) -> Pool:
    """The pool in a source, its vectors computed (once) or mapped.

    source
        The name of a pool that was made; ``demo`` (the demo log of queries); a text file with a
        string a line, JSON lines with ``text``, tab-separated values (the last column), each
        perhaps gzipped; a folder or ``ir_datasets:ID``: the queries of that collection.
    """
    return read_pool(str(source), encoder).prepare(progress)


def read_pool(source: str, encoder: str | Encoder = "auto") -> Pool:
    """The same; vectors are computed when they are first needed."""
    if pool_store.is_made(source):
        return Pool.open(source, encoder)
    if not has_strings(source):
        raise UsageError(
            f"there is no such pool: use one that 'sottovoce pools list' shows, {STRING_SOURCES}"
        )
    path = Path(source).expanduser()
    if source == DEMO or not path.exists():
        return Pool(read_strings(source), encoder, name=source, source=source)
    return Pool(read_strings(source), encoder, name=path.name, source=str(path.resolve()))


def check_source(source: str) -> None:
    """Refuse a source that is not there; nothing is read."""
    if not (pool_store.is_made(source) or has_strings(source)):
        raise UsageError(
            f"there is no '{source}': use demo, a pool that 'sottovoce pools list' shows, or check "
            "the path"
        )


def _rebuilt(
    strings: Sequence[str], encoder: Encoder, name: str, popularity: Float64Array | None
) -> Pool:
    return Pool(strings, encoder, name=name, weights=popularity)


@lru_cache(maxsize=4)
def _reopened(source: str, encoder: Encoder, sha256: str) -> Pool:
    """One pool for each source and process, however many mechanisms come with it."""
    pool = read_pool(source, encoder)
    if pool.sha256_with_popularity != sha256:
        raise SottovoceError(
            "the file of the pool, or its encoder, changed since this mechanism was made"
        )
    return pool
