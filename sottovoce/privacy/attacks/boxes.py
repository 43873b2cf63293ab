"""Which words the box of each word holds, kept in memory: it takes a pass over all pairs of words.

Where boxes do not depend on epsilon, one pass serves a whole grid of epsilons. Boxes follow from
space and parameters alone: nothing of a text is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import MutableMapping
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.types import IntArray, Progress

WORDS_AT_A_TIME = 512
KEPT = 2
"""Sets of boxes kept for each space: some 20 MB each."""

_kept: MutableMapping[Any, OrderedDict[str, Any]] = WeakKeyDictionary()
_keeping = Lock()


def contents(mechanism: BoxMechanism, progress: Progress | None = None) -> Any:
    """A sparse matrix (words, words): 1 where the box of the first holds the second."""
    same = mechanism if mechanism.box_depends_on_epsilon else replace(mechanism, epsilon=1.0)
    with _keeping:
        kept = _kept.setdefault(mechanism.space, OrderedDict())
        if same.spec not in kept:
            kept[same.spec] = _contents(mechanism, progress)
        kept.move_to_end(same.spec)
        while len(kept) > KEPT:
            kept.popitem(last=False)
        return kept[same.spec]


def _contents(mechanism: BoxMechanism, progress: Progress | None) -> Any:
    size = mechanism.space.size
    boxes: list[IntArray] = []
    for start in range(0, size, WORDS_AT_A_TIME):
        words = np.arange(start, min(start + WORDS_AT_A_TIME, size))
        boxes += [box.astype(np.int32) for box, _ in mechanism.laws(words)]
        if progress:
            progress(len(boxes), size)
    edges = np.cumsum([0, *map(len, boxes)])
    ids = np.concatenate(boxes)
    return csr_matrix((np.ones(len(ids)), ids, edges), shape=(size, size))
