"""Make pools: read public strings, clean them by one rule, embed them once, keep them by a name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError
from sottovoce.pool_making.cleaning import Cleaned, cleaned
from sottovoce.pool_making.sources import strings_of
from sottovoce.pool_store import PoolFacts, check_name, store_pool, strings_data
from sottovoce.types import Progress

__all__ = ["Cleaned", "cleaned", "make_pool", "strings_of"]

BY_COUNT = "how often a string came in the sources"


def make_pool(
    name: str,
    sources: Sequence[str],
    encoder: str | Encoder = "auto",
    *,
    least: int = 1,
    replace: bool = False,
    progress: Progress | None = None,
) -> PoolFacts:
    """Make a pool of that name; ``load_pool(name)`` then opens it.

    sources
        See :func:`strings_of`. They must be public, and chosen without the private texts.
    least
        How often a string must come to be kept.
    """
    if isinstance(sources, str) or not sources:
        raise UsageError("give a list of sources, at least one")
    check_name(name, replace=replace)
    strings = cleaned(chain.from_iterable(map(strings_of, sources)), least)
    loaded = load_encoder(encoder) if isinstance(encoder, str) else encoder
    counted = bool((strings.counts != strings.counts[0]).any())
    facts = PoolFacts(
        name=name,
        strings=len(strings.strings),
        sha256=hashlib.sha256(strings_data(strings.strings)).hexdigest(),
        encoder=loaded.name,
        encoder_fingerprint=loaded.fingerprint,
        dimension=loaded.dimension,
        popularity=BY_COUNT if counted else None,
        sources=tuple(sources),
        read=strings.read,
        joined=strings.joined,
        left_out=strings.left_out,
    )
    popularity = strings.counts if counted else None
    store_pool(facts, strings.strings, popularity, loaded, replace=replace, progress=progress)
    return facts
