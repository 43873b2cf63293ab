"""Beliefs of one who has a list of what may have been asked, with all that was asked on it.

What is believed of a string is the sum over the texts that it stands for. Who knows more weighs the
texts: some look like what people of the kind ask, some are near to what the pool has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sottovoce.likeness import LEAST_REFERENCE
from sottovoce.privacy.attacks.company.nearness import Learned, Nearness
from sottovoce.privacy.attacks.company.public_texts import LEARNED_FROM, PublicTexts, some_of
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.types import Float64Array, IntArray

HARDLY = 1e-12
"""How much less is believed of a string that stands for nothing on a list than of any that does."""
BY_COSINE = 20.0
"""How much likelier a text is, in log-odds for each unit of the cosine, that is near to something
in the pool: people ask where there is an answer."""
MOSTLY = 0.5
"""With a larger share of a list among the strings of the pool, or among the texts of the kind, to
be near to these says nothing of a text on it."""

FEW = 8
"""Weights that are kept: for two references those of a list, of what is beside it, and of what is
learned from."""

MOST_IN_POOL = "the pool holds most of the list"
IS_THE_KIND = "the list is no more than the texts of the kind that are known"

Weights: TypeAlias = Callable[[PublicTexts], Float64Array]
"""The log-weights of texts."""


class Listed:
    """A belief: one of these texts was asked, each as likely as its weight."""

    def __init__(
        self,
        listed: PublicTexts,
        beside: PublicTexts | None = None,
        weights: Weights | None = None,
    ) -> None:
        """``beside``: texts that the list lacks, and that are put beside it."""
        parts = [texts.different for texts in (listed, beside) if texts]
        standing = np.concatenate([texts.standing for texts in parts])
        logs = np.zeros(len(standing))
        if weights is not None:
            logs = np.concatenate([weights(texts) for texts in parts])
        # Sums of logs: one odd text, however likely, takes nothing from what others stand for.
        believed = np.full(len(listed.pool), -np.inf)
        np.logaddexp.at(believed, standing, logs)
        for_nothing = np.isneginf(believed)
        believed[for_nothing] = believed[~for_nothing].min() + np.log(HARDLY)
        self._pool, self._logs = listed.pool, believed

    def __call__(self, seen: SeenSet) -> Float64Array:
        """The log of what is believed of each string of a set, up to a constant."""
        places = [self._pool.place(string) for string in seen.strings]
        least = self._logs.min()
        return np.array([least if at is None else self._logs[at] for at in places])


def list_beliefs(
    listed: PublicTexts,
    beside: PublicTexts,
    reference: PublicTexts | None,
    not_tried: dict[str, str],
) -> Iterator[tuple[str, str, Listed]]:
    """Each way to weigh the texts: a name, what one must know for it beside the list, the belief.

    reference
        Public texts of the kind that people ask, if any are known.
    """
    listed = listed.different
    yield "list", "", Listed(listed, beside)
    if LEAST_REFERENCE <= len(listed) + len(beside) <= LEARNED_FROM:
        together = PublicTexts([*listed.texts, *beside.texts], listed.pool)
        yield "list, itself", "", Listed(together, weights=near_each_other)
    near_pool = listed.in_pool <= MOSTLY
    if near_pool:
        yield "list, near the pool", "", Listed(listed, beside, by_nearness_to_pool)
    else:
        not_tried["list, near the pool"] = MOST_IN_POOL
    if reference is None:
        return
    of_kind = ", and public texts of the person's kind"

    def by_looks(texts: PublicTexts) -> Float64Array:
        return weights_by_looks(texts, reference)

    yield "list, classifier", of_kind, Listed(listed, beside, by_looks)
    others = not_in(listed, reference)
    if len(others) < max(LEAST_REFERENCE, (1 - MOSTLY) * len(listed)):
        not_tried["list, kind"] = IS_THE_KIND
        return

    def by_kind(texts: PublicTexts) -> Float64Array:
        return weights_by_kind(texts, listed, reference)

    def by_both(texts: PublicTexts) -> Float64Array:
        return by_kind(texts) + by_nearness_to_pool(texts)

    yield "list, kind", of_kind, Listed(listed, beside, by_kind)
    if near_pool:
        yield "list, kind near the pool", of_kind, Listed(listed, beside, by_both)


def by_nearness_to_pool(texts: PublicTexts) -> Float64Array:
    """Texts near to some string of the pool are likelier."""
    return BY_COSINE * texts.to_pool


def near_each_other(texts: PublicTexts) -> Float64Array:
    """Texts near to others of a short list, which was made of what is near to what was asked."""
    pool, measure = texts.pool, Nearness(texts)
    strangers = some_of(len(pool))
    strings = [pool.strings[at] for at in strangers.tolist()]
    rows = measure.rows(texts.texts, texts.vectors)
    return Learned(rows, measure.rows(strings, pool.vectors[strangers]))(rows)


def not_in(listed: PublicTexts, reference: PublicTexts) -> IntArray:
    """The places of the texts of a list that are not among others."""
    others = [at for at, text in enumerate(listed.texts) if text not in reference.first]
    return np.array(others, dtype=np.int64)


@lru_cache(maxsize=FEW)
def weights_by_looks(texts: PublicTexts, reference: PublicTexts) -> Float64Array:
    """How much likelier texts are of the kind than strings of the pool, as a classifier says."""
    return reference.kind.log_ratio(texts.texts, texts.vectors)


@lru_cache(maxsize=FEW)
def weights_by_kind(
    texts: PublicTexts, listed: PublicTexts, reference: PublicTexts
) -> Float64Array:
    """How much likelier texts are of the kind than of the rest of the list, as a regression says.

    It reads how near they are to texts of the kind, what shows of them, and how near the pool is.
    """
    known = reference.different.sample
    nearness = Nearness(known)

    def rows(read: PublicTexts) -> Float64Array:
        near, kind = nearness.rows(read.texts, read.vectors), weights_by_looks(read, reference)
        return np.column_stack([near, kind, read.to_pool])

    rest = listed.some(not_in(listed, reference)).sample
    return Learned(rows(known), rows(rest))(rows(texts))
