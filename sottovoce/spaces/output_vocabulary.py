"""The words of a space that a mechanism may release, and how often each is expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.types import Float64Array, IntArray

ZIPF_OFFSET = 2.7
"""Word number r is expected as often as 1 / (r + 2.7): Zipf's law as Mandelbrot has it."""


@dataclass(frozen=True)
class OutputVocabulary:
    """The words a mechanism may release: a public choice, made without the private text.

    ``popularity`` says how often each is expected, by whatever is public; without it, words count
    as the more frequent the earlier a space lists them (Zipf's law).
    """

    name: str
    ids: IntArray
    popularity: Float64Array | None = None

    def __post_init__(self) -> None:
        ids, popularity = np.array(self.ids, dtype=np.int64), self.popularity
        if (ids[1:] <= ids[:-1]).any():
            ids, first = np.unique(ids, return_index=True)
            popularity = None if popularity is None else popularity[first]
        if popularity is not None and not (
            popularity.shape == ids.shape and np.isfinite(popularity).all() and popularity.min() > 0
        ):
            raise UsageError("popularity is a positive number for each word of the vocabulary")
        if not len(ids):
            raise UsageError(
                f"the output vocabulary '{self.name}' shares no word with the space: nothing could "
                "ever be released. Choose another with --output-vocabulary, or 'all'."
            )
        ids.setflags(write=False)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "popularity", popularity)

    @property
    def log_popularity(self) -> Float64Array:
        """The log of how often each word is expected, up to a constant."""
        expected = 1 / (self.ids + ZIPF_OFFSET) if self.popularity is None else self.popularity
        return np.asarray(np.log(expected))

    def __len__(self) -> int:
        return len(self.ids)
