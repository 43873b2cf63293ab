"""How the words of a query are laid out for an engine: in which order, and how many."""

from __future__ import annotations

from sottovoce.engines.base import SearchEngine, uses_order
from sottovoce.mechanisms.base import Mechanism
from sottovoce.text import TextPipeline


def laid_out_for(
    engine: SearchEngine,
    pipeline: TextPipeline,
    mechanism: Mechanism,
    *,
    shuffle: bool | None = None,
    pad_to: int = 0,
) -> TextPipeline:
    """The pipeline for queries to this engine.

    Unless ``shuffle`` says otherwise, words go in random order to an engine that does not look at
    the order: there it tells something for nothing. Where texts are replaced as a whole there is
    nothing to lay out.
    """
    if not mechanism.by_word:
        return pipeline
    shuffle = not uses_order(engine) if shuffle is None else shuffle
    return pipeline.laid_out(shuffle=shuffle, pad_to=pad_to)
