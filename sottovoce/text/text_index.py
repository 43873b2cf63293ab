"""Where a text stands among many, however it is written: an index that can be kept on disk."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.text.comparing import folded_text


@dataclass(frozen=True, repr=False)
class TextIndex:
    """Short hashes of texts in ascending order, and the place of each; smaller than a dictionary.

    Several texts may have the same hash: those that are found are compared as texts.
    """

    hashes: NDArray[np.uint32]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, folded: Iterable[str]) -> TextIndex:
        """The index of texts in the form in which they are compared."""
        hashes = np.fromiter(map(_hash, folded), dtype=np.uint32)
        places = np.argsort(hashes, kind="stable")
        return cls(hashes[places], places)

    def find(self, text: str, texts: Sequence[str]) -> int | None:
        """The place of the same text among ``texts``, of which this is the index; or None."""
        folded = folded_text(text)
        wanted = np.uint32(_hash(folded))
        first, end = (int(np.searchsorted(self.hashes, wanted, side)) for side in ("left", "right"))
        for place in self.places[first:end].tolist():
            if folded_text(texts[place]) == folded:
                return int(place)
        return None


def _hash(folded: str) -> int:
    return zlib.crc32(folded.encode("utf-8", "surrogatepass"))
