"""What of a query is sent to an engine: which words, in which order, how many, out of which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sottovoce import defaults
from sottovoce.engines.base import SearchEngine, language_of, uses_order
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.text.protection import content_of


def laid_out_for(
    engine: SearchEngine,
    pipeline: TextPipeline,
    mechanism: Mechanism,
    *,
    shuffle: bool | None = None,
    pad_to: int = 0,
    drop_function_words: bool = False,
) -> TextPipeline:
    """The pipeline for queries to this engine.

    Unless ``shuffle`` says otherwise, words go in random order to an engine that does not look at
    the order: there it tells something for nothing. So do function words, which find nothing:
    ``drop_function_words`` leaves them out, for such engines and where all words are protected.
    Where texts are replaced as a whole there is nothing to lay out.
    """
    if not mechanism.by_word:
        return pipeline
    ordered = uses_order(engine)
    if drop_function_words and not ordered and pipeline.protect == "all":
        content = content_of(language_of(engine))
        pipeline = replace(pipeline, protect=content, unprotected="drop")
    return pipeline.laid_out(shuffle=not ordered if shuffle is None else shuffle, pad_to=pad_to)


def fitted_to(
    engine: SearchEngine, mechanism: Mechanism, space: Callable[[], WordSpace]
) -> Mechanism:
    """The mechanism for a search by words, where it reads them off a noisy point.

    ``space`` gives its word space with what a search releases as output vocabulary
    (``output_vocabularies.of_search``). Of the words near the noisy point the popular ones are
    preferred, since they are likelier to be meant: on this machine those that many documents hold.
    All of it is public and done afterwards, and changes nothing of what is promised. For engines
    that look at the order, and where a prior or a vocabulary was chosen, nothing is changed.
    """
    if (
        not uses_order(engine)
        and isinstance(mechanism, NoiseMechanism)
        and mechanism.takes_prior
        and mechanism.prior == 0
        and mechanism.space.output.name == "all"
    ):
        return replace(mechanism, space=space(), prior=defaults.PRIOR)
    return mechanism
