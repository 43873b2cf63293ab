"""Subjects that people would rather not be known for, and how much a string is about one of them.

Public, and a rough measure: attackers on company believe by it, and decoys can be drawn by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.arrays import row_blocks
from sottovoce.encoders import Encoder
from sottovoce.text.words import stems, words
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float32Array, Float64Array

_SENSITIVE = """
cancer tumour hiv std herpes pregnant abortion miscarriage infertility dementia diabetes epilepsy
depression anxiety suicide self-harm psychosis bulimia therapy medication addiction alcohol cocaine
opioid gambling debt bankruptcy benefits eviction fired dismissal harassment discrimination strike
whistleblower divorce custody affair paternity adoption abuse violence rape blackmail stalking
arrest police prison conviction lawyer lawsuit deportation asylum undocumented visa refugee
gay lesbian transgender sex porn erectile religion atheist headscarf conversion protest party
disability obesity scar tumour surgery
"""
SENSITIVE_WORDS = tuple(dict.fromkeys(_SENSITIVE.split()))
"""One word for each subject."""
FOR_WORD, FOR_COSINE = 3.0, 10.0
"""The log-odds in favour of a string with such a word, and of one near to it."""
ALIKE = 0.2
"""The share of the strings that are drawn alike, the most sensitive ones."""


def sensitivity(strings: Sequence[str], vectors: Float32Array, encoder: Encoder) -> Float64Array:
    """The log-odds that a string is one that people hide, up to a constant."""
    subjects = encoder.encode(SENSITIVE_WORDS)
    with single_threaded_blas():  # Several threads would round differently.
        largest = [(block @ subjects.T).max(axis=1) for block in row_blocks(vectors)]
    nearest = np.concatenate([np.empty(0), *largest])
    listed = _spoken_forms(strings)
    spoken = [not listed.isdisjoint(words(string)) for string in strings]
    return np.asarray(FOR_COSINE * nearest + FOR_WORD * np.array(spoken, dtype=np.float64))


def _spoken_forms(strings: Sequence[str]) -> frozenset[str]:
    """The words of some strings that are forms of listed ones; each word is stemmed once."""
    listed = frozenset(stems(SENSITIVE_WORDS))
    spoken = list({word for string in strings for word in words(string)})
    return frozenset(
        word for word, stem in zip(spoken, stems(spoken), strict=True) if stem in listed
    )


def sensitive_belief(odds: Float64Array) -> Float64Array:
    """How likely each string is for whoever believes just that; no string is ruled out.

    odds
        The :func:`sensitivity` of each string.
    """
    smallest = np.log(np.finfo(np.float64).tiny)
    return np.asarray(np.exp(np.maximum(odds - odds.max(), smallest)))


def sensitive_shares(odds: Float64Array) -> Float64Array:
    """How likely each string is drawn if strings on subjects that people hide are drawn rather.

    The most sensitive of them count alike. If the few with the very words had nearly all of the
    draws, whoever knows better than the list what people hide would find a query with other words.

    odds
        The :func:`sensitivity` of each string.
    """
    capped = np.minimum(odds, np.quantile(odds, 1 - ALIKE))
    weights = np.exp(capped - odds.max())
    if not weights.sum() > 0:  # Vectors that are long have odds far apart.
        weights = np.exp(capped - capped.max())
    return np.asarray(weights / weights.sum())
