"""Evidence: how likely what was released at a place is, for each word that may have stood there.

Which kind there is follows from what a mechanism can do: a law, boxes, noise, or draws alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.types import Float32Array, IntArray, Progress

PLACES_AT_A_TIME = 256
"""Places whose rows are held at once: 35 MB for 34,000 words, 310 MB for 300,000."""

WHOLE_RELEASE = (
    "a release 'once' can only be read as a whole: fewer variants are a random part of the nearest "
    "words, so give all variants of each text"
)


class Evidence(ABC):
    """How likely what was released at a place is, for each word that may have stood there."""

    kind: ClassVar[str]
    """``exact law``, ``boxes``, ``one noisy point`` or ``simulated law``."""
    reads_all_variants: ClassVar[bool] = False
    """Whether a place can only be read if all released variants are given."""
    mechanism: WordMechanism

    @abstractmethod
    def log_likelihood(
        self, places: Sequence[IntArray], progress: Progress | None = None
    ) -> Float32Array:
        """(len(places), space.size): log P(words seen at the place | word).

        Up to a constant of each row. A word that cannot have been meant has -inf; a place where
        nothing was seen has a row of zeros.
        """

    def check_variants(self, seen: int, released: int) -> None:
        """Refuse ``seen`` of the ``released`` variants where only all of them can be read."""
        if self.reads_all_variants and seen < released:
            raise UsageError(WHOLE_RELEASE)


def unknown_column(rows: Float32Array, output_ids: IntArray) -> Float32Array:
    """The log-likelihood of a word that the space lacks, (len(rows),).

    Such a word is replaced by one uniform word of the output vocabulary, which then goes through
    the mechanism: so its likelihood is the mean over these words, log-mean-exp on each row.
    """
    column = np.empty(len(rows), dtype=np.float32)
    for place, row in enumerate(rows):
        released = row[output_ids].astype(np.float64)
        top = released.max()
        if np.isneginf(top):
            column[place] = -np.inf
        else:
            column[place] = top + np.log(np.exp(released - top).mean())
    return column


def all_seen(mechanism: WordMechanism, places: Sequence[IntArray]) -> IntArray:
    """The ids seen at all places, end to end, each of them in the space."""
    return mechanism.checked(np.concatenate([*places, np.empty(0, dtype=np.int64)]))


def seen_counts(mechanism: WordMechanism, places: Sequence[IntArray]) -> tuple[Any, IntArray]:
    """How often each word was seen at each place, sparse; and the ids of its columns, ascending."""
    rows = np.repeat(np.arange(len(places)), [len(ids) for ids in places])
    flat = all_seen(mechanism, places)
    outputs, columns = np.unique(flat, return_inverse=True)
    ones = np.ones(len(flat), dtype=np.float32)
    counts = csr_matrix((ones, (rows, columns)), shape=(len(places), len(outputs)))
    return counts, outputs
