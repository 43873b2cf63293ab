"""Make pools: read public strings, clean them by one rule, embed them once, keep them by a name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain

import numpy as np

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError
from sottovoce.likeness import fit_likeness
from sottovoce.pool_making.cleaning import Cleaned, cleaned, reason_to_leave_out
from sottovoce.pool_making.sources import strings_of
from sottovoce.pool_store import PoolFacts, check_name, store_pool, strings_data
from sottovoce.pools import Pool
from sottovoce.types import Float64Array, Progress

__all__ = ["Cleaned", "cleaned", "make_pool", "popularity_like", "strings_of"]

BY_COUNT = "how often a string came in the sources"
BY_LIKENESS = "likeness to what is asked in {like}, learned from {texts:,} texts"


def make_pool(
    name: str,
    sources: Sequence[str],
    encoder: str | Encoder = "auto",
    *,
    least: int = 1,
    thin: int = 1,
    like: str | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> PoolFacts:
    """Make a pool of that name; ``load_pool(name)`` then opens it.

    sources
        See :func:`strings_of`. They must be public, and chosen without the private texts.
    least
        How often a string must come to be kept.
    thin
        Keep one string in so many, those with the smallest hashes. Of a pool that is a small part
        of what people ask each string stands for several queries: lists of these tell less.
    like
        A source of public texts of the kind that people ask, by which the popularity is learned:
        decoys then look as much like a query as the strings that stand for queries do.
    """
    if isinstance(sources, str) or not sources:
        raise UsageError("give a list of sources, at least one")
    check_name(name, replace=replace)
    strings = cleaned(chain.from_iterable(map(strings_of, sources)), least, thin)
    loaded = load_encoder(encoder) if isinstance(encoder, str) else encoder
    pool = Pool(strings.strings, loaded, weights=strings.counts)
    popularity, meaning = pool.popularity, BY_COUNT
    if like is not None:
        reference = [text for text in strings_of(like) if reason_to_leave_out(text) is None]
        popularity = popularity_like(reference, pool.prepare(progress))
        meaning = BY_LIKENESS.format(like=like, texts=len(reference))
    facts = PoolFacts(
        name=name,
        strings=len(strings.strings),
        sha256=hashlib.sha256(strings_data(strings.strings)).hexdigest(),
        encoder=loaded.name,
        encoder_fingerprint=loaded.fingerprint,
        dimension=loaded.dimension,
        popularity=None if popularity is None else meaning,
        sources=tuple(sources),
        read=strings.read,
        joined=strings.joined,
        left_out=strings.left_out,
    )
    store_pool(
        facts, pool.strings, popularity, pool.index, loaded, replace=replace, progress=progress
    )
    return facts


def popularity_like(reference: Sequence[str], pool: Pool) -> Float64Array:
    """How likely each string of a pool stands for a text like those of the reference, as shares.

    All strings alike, times the learned ratio of densities.
    """
    ratios = fit_likeness(reference, pool).log_ratio(pool.strings, pool.vectors)
    shares = np.exp(ratios - ratios.max())
    return np.asarray(shares / shares.sum())
