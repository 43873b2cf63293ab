"""Words that a space does not list, as an attacker knows them.

Where the encoder that made a space gives any word a vector, it gives the attacker the same vectors:
whatever words the attacker's log holds are candidates like those of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from sottovoce.encoders.word_spaces import word_vectors
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Progress


def knowing_words(
    mechanism: WordMechanism,
    pipeline: TextPipeline,
    log: QueryLog | None,
    originals: Iterable[str],
    progress: Progress | None = None,
) -> WordMechanism:
    """The mechanism on a space that has the words of the log and of the originals, too.

    Only listed words are released, as before. The originals' words are among the candidates, as
    the true query is in the attacker's log.
    """
    space = mechanism.space
    if space.encoder is None or pipeline.unknown != "encode":
        return mechanism
    if log is not None:
        space = log.extended(space, pipeline, lambda: _with_log(space, pipeline, log, progress))
    words = list(_encoded(originals, space, pipeline))
    if words:
        # A person's own words: their vectors stay in memory.
        vectors, readable = word_vectors(space, words)
        if readable.any():
            new = [words[row] for row in np.flatnonzero(readable)]
            space = with_words(space, new, vectors[readable])
    return mechanism if space is mechanism.space else replace(mechanism, space=space)


def _with_log(
    space: WordSpace, pipeline: TextPipeline, log: QueryLog, progress: Progress | None
) -> WordSpace:
    words = list(_encoded(["\n".join(log.queries)], space, pipeline))
    if not words:
        return space
    vectors, readable = word_vectors(space, words, public=True, progress=progress)
    words = [words[row] for row in np.flatnonzero(readable)]
    return with_words(space, words, vectors[readable])


def _encoded(texts: Iterable[str], space: WordSpace, pipeline: TextPipeline) -> Iterator[str]:
    """The distinct words of texts that the space does not list."""
    cutter = replace(pipeline, order="kept", pad_to=0)
    seen: dict[str, None] = {}
    for text in texts:
        prepared = cutter.prepare(text, space)
        seen |= dict.fromkeys(prepared.surfaces(prepared.encoded))
    yield from seen
