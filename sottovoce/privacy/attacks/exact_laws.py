"""Evidence by exact laws: the sum over the words seen of log P(y | w), for every word w.

Fresh draws are independent, so their log-probabilities add up. Three ways to the same sum:

- exponential mechanisms: log P(y | w) = -epsilon c(|w - y|) / 2 - log Z(w). Z takes one pass over
  all pairs of words and is kept; after that only distances to the words seen are needed;
- other laws: ``log_probabilities`` of all words, one pass for each call;
- boxes: only words whose box holds everything seen are possible, and they are few.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.attacks.evidence import Evidence, all_seen, seen_counts
from sottovoce.privacy.attacks.pair_sums import log_sums, squared_distances
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, FloatArray, IntArray, Progress, count_up

WORDS_AT_A_TIME = 512
LAWS_AT_A_TIME = 128
"""Words whose laws over the whole vocabulary are held at once."""
BOXES_KEPT = 2
"""Sets of boxes kept for each space: some 20 MB each."""


class ExactLaw(Evidence):
    """Sums of exact log-probabilities."""

    kind: ClassVar[str] = "exact law"

    def __init__(self, mechanism: WordMechanism, progress: Progress | None = None) -> None:
        self.mechanism = mechanism
        self._progress = progress

    def log_likelihood(
        self, places: Sequence[IntArray], progress: Progress | None = None
    ) -> Float32Array:
        """Blocks of words, each against all words seen at any of the places."""
        size = self.mechanism.space.size
        rows = np.zeros((len(places), size), dtype=np.float32)
        counts, outputs = seen_counts(self.mechanism, places)
        if not len(outputs):
            return rows
        exponential = isinstance(self.mechanism, ExponentialMechanism)
        if exponential:
            self._log_normalizers  # noqa: B018 - made once, before threads ask for it
        law = self._exponential_law if exponential else self._any_law
        step = WORDS_AT_A_TIME if exponential else LAWS_AT_A_TIME

        def fill(start: int) -> int:
            words = np.arange(start, min(start + step, size))
            # A sparse product adds up what was seen and nothing else: no 0 * -inf.
            rows[:, words] = counts @ law(words, outputs).T
            return len(words)

        starts, count = range(0, size, step), count_up(progress, size)
        for first in range(0, len(starts), 4 * threads()):
            count(sum(parallel_map(fill, starts[first : first + 4 * threads()])))
        return rows

    def _any_law(self, words: IntArray, outputs: IntArray) -> FloatArray:
        law = self.mechanism.log_probabilities(words)
        assert law is not None  # noqa: S101 - it has_law
        return law[:, outputs]

    def _exponential_law(self, words: IntArray, outputs: IntArray) -> FloatArray:
        mechanism = self.mechanism
        assert isinstance(mechanism, ExponentialMechanism)  # noqa: S101 - asked before
        law = self._scores(words, outputs)
        law -= self._log_normalizers[words, None].astype(np.float32)
        law[:, ~np.isin(outputs, mechanism.released)] = -np.inf
        mechanism.mixed(law, words, outputs)
        return law

    def _scores(self, words: IntArray, outputs: IntArray) -> Float32Array:
        """-epsilon c(|w - y|) / 2."""
        mechanism = self.mechanism
        assert isinstance(mechanism, ExponentialMechanism)  # noqa: S101 - asked before
        squared = squared_distances(mechanism.space.folded, words, outputs)
        distances: Any = np.sqrt(squared, out=squared)
        costs = np.asarray(mechanism.cost(distances), dtype=np.float32)
        return costs * np.float32(-0.5 * mechanism.epsilon)

    @cached_property
    def _log_normalizers(self) -> Float64Array:
        """The log of Z(w) of every word, from one pass over all pairs."""
        mechanism = self.mechanism
        assert isinstance(mechanism, ExponentialMechanism)  # noqa: S101 - asked before
        return log_sums(
            mechanism.space.size, mechanism.released, self._scores, progress=self._progress
        )


class Boxes(Evidence):
    """Exact laws of mechanisms that choose within a box: a word is out if its box lacks a draw."""

    kind: ClassVar[str] = "boxes"
    mechanism: BoxMechanism

    def __init__(self, mechanism: BoxMechanism, progress: Progress | None = None) -> None:
        self.mechanism = mechanism
        self._progress = progress

    def log_likelihood(
        self, places: Sequence[IntArray], progress: Progress | None = None
    ) -> Float32Array:
        """First the words whose boxes hold all that was seen, then their laws alone."""
        rows = np.zeros((len(places), self.mechanism.space.size), dtype=np.float32)
        all_seen(self.mechanism, places)  # Refuses ids that are not in the space.
        holders = box_holders(self.mechanism, self._progress)
        seen = [np.unique(ids, return_counts=True) for ids in places]
        possible = [_holding_all(holders, ids) for ids, _ in seen]
        candidates = np.unique(np.concatenate([*possible, np.empty(0, dtype=np.int64)]))
        laws = self._laws(candidates)
        count = count_up(progress, len(places))
        for row, (ids, times), words in zip(rows, seen, possible, strict=True):
            if len(ids):
                row[:] = -np.inf
                law = laws[np.searchsorted(candidates, words)][:, ids].toarray()
                row[words] = law @ times
            count(1)
        return rows

    def _laws(self, words: IntArray) -> Any:
        """Log-probabilities inside the boxes of words, a sparse matrix (words, vocabulary)."""
        boxes: list[tuple[IntArray, Float64Array]] = []
        for start in range(0, len(words), WORDS_AT_A_TIME):
            boxes += self.mechanism.laws(words[start : start + WORDS_AT_A_TIME])
        edges = np.cumsum([0, *(len(box) for box, _ in boxes)])
        ids = np.concatenate([*(box for box, _ in boxes), np.empty(0, dtype=np.int64)])
        law = np.concatenate([*(inside for _, inside in boxes), np.empty(0)])
        return csr_matrix((law, ids, edges), shape=(len(words), self.mechanism.space.size))


def _holding_all(holders: Any, ids: IntArray) -> IntArray:
    """The words whose boxes hold all of these distinct ids."""
    if not len(ids):
        return ids
    lists = [holders.indices[holders.indptr[i] : holders.indptr[i + 1]] for i in ids.tolist()]
    words, times = np.unique(np.concatenate(lists), return_counts=True)
    return np.asarray(words[times == len(ids)], dtype=np.int64)


_kept: MutableMapping[Any, OrderedDict[str, Any]] = WeakKeyDictionary()
_keeping = Lock()


def box_holders(mechanism: BoxMechanism, progress: Progress | None = None) -> Any:
    """Which words' boxes hold each word: a sparse matrix, its columns the words held.

    It takes a pass over all pairs of words and is kept in memory; where boxes do not depend on
    epsilon, one pass serves every epsilon. It follows from space and parameters alone: nothing of
    a text is kept.
    """
    same = mechanism if mechanism.box_depends_on_epsilon else replace(mechanism, epsilon=1.0)
    with _keeping:
        kept = _kept.setdefault(mechanism.space, OrderedDict())
        if same.spec not in kept:
            kept[same.spec] = _box_holders(mechanism, progress)
        kept.move_to_end(same.spec)
        while len(kept) > BOXES_KEPT:
            kept.popitem(last=False)
        return kept[same.spec]


def _box_holders(mechanism: BoxMechanism, progress: Progress | None) -> Any:
    size = mechanism.space.size
    boxes: list[IntArray] = []
    count = count_up(progress, size)
    for start in range(0, size, WORDS_AT_A_TIME):
        words = np.arange(start, min(start + WORDS_AT_A_TIME, size))
        boxes += [box.astype(np.int32) for box, _ in mechanism.laws(words)]
        count(len(words))
    edges = np.cumsum([0, *map(len, boxes)])
    ids = np.concatenate(boxes)
    return csr_matrix((np.ones(len(ids), dtype=np.bool_), ids, edges), shape=(size, size)).tocsc()
