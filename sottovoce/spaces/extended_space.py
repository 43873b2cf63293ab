"""A word space with more words, for attacks and audits that must know of words the list lacks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.spaces.nearest import Nearest
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace, folded_rows
from sottovoce.types import UNKNOWN, Float32Array, Float64Array, IntArray


def with_words(space: WordSpace, words: Sequence[str], vectors: ArrayLike) -> WordSpace:
    """The same space with more words at the end, none of which may be released.

    It is held in memory.
    """
    if not isinstance(space, ExtendedSpace):
        return ExtendedSpace(space, words, vectors)
    added_words, added_vectors = space.added()
    both = np.concatenate([added_vectors, np.asarray(vectors, dtype=np.float32)])
    return ExtendedSpace(space.base, [*added_words, *words], both)


class ExtendedSpace(WordSpace):
    """A space with more words at the end: they have vectors, but are never released.

    Whatever decides how a mechanism draws comes from ``base``: the words that may be released, the
    search among them, the covariance, and what was derived from the space. So a word drawn here is
    drawn as it is there.
    """

    def __init__(self, base: WordSpace, words: Sequence[str], vectors: ArrayLike) -> None:
        if any(word in base for word in words):
            raise UsageError("the space has some of these words already")
        more = folded_rows(words, vectors)
        if more.shape[1] != base.dimension + 1:
            raise UsageError(
                f"the space has {base.dimension} dimensions, the vectors {more.shape[1] - 1}"
            )
        encoded = [word.encode("utf-8") for word in words]
        ends = base._offsets[-1] + np.cumsum([*map(len, encoded)], dtype=np.int64)
        super().__init__(
            name=base.name,
            folded=np.concatenate([base._folded, more]),
            words=b"".join([bytes(base._words), *encoded]),
            offsets=np.concatenate([base._offsets, ends]),
            table=base._table,
            source=base.source,
            output=base.output,
            encoder=base.encoder,
            axes=base.axes,
        )
        self.base, self._more = base, dict(zip(words, range(base.size, self.size), strict=True))

    def id(self, word: str) -> int:
        """The id of a word of the list or of those added, or ``UNKNOWN``."""
        position = self.base.id(word)
        return self._more.get(word, UNKNOWN) if position == UNKNOWN else position

    @cached_property
    def sha256(self) -> str:
        """The hash of the list, and of the words and vectors at the end."""
        words, vectors = self.added()
        named = "\n".join([self.base.sha256, *words])
        return hashlib.sha256(named.encode() + vectors.tobytes()).hexdigest()

    @property
    def listed(self) -> WordSpace:
        """The space without the words at the end."""
        return self.base

    def with_output(self, output: OutputVocabulary) -> WordSpace:
        """The same words, of which only those of ``output`` are released: words of the list."""
        space = ExtendedSpace.__new__(ExtendedSpace)
        WordSpace.__init__(space, **self._parts(), output=output)  # Vectors are not copied.
        space.base, space._more = self.base.with_output(output), self._more
        return space

    @cached_property
    def nearest_output(self) -> Nearest:
        """The search among the words of the list."""
        return self.base.nearest_output

    @cached_property
    def likely_output(self) -> Nearest:
        """The search among the words of the list."""
        return self.base.likely_output

    @cached_property
    def covariance(self) -> Float64Array:
        """That of the words of the list."""
        return self.base.covariance

    def derived(self, name: str, size: int, make: Callable[[], IntArray]) -> IntArray:
        """What follows from the words of the list."""
        return self.base.derived(name, size, make)

    def __reduce__(self) -> tuple[Any, ...]:
        return ExtendedSpace, (self.base, *self.added())

    def added(self) -> tuple[list[str], Float32Array]:
        """The words at the end, and their vectors."""
        return list(self._more), self.vectors[self.base.size :]
