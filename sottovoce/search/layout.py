"""What of a query is sent to an engine: which words, in which order, how many, out of which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sottovoce import defaults
from sottovoce.engines.base import SearchEngine, uses_order
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline


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
        pipeline = replace(pipeline, protect="content", unprotected="drop")
    return pipeline.laid_out(shuffle=not ordered if shuffle is None else shuffle, pad_to=pad_to)


def can_be_fitted(engine: SearchEngine, mechanism: Mechanism) -> bool:
    """Whether a mechanism is better fitted to the documents of an engine: nothing was chosen.

    It must read words off a noisy point, the engine search documents on this machine, and neither
    a prior nor an output vocabulary have been chosen.
    """
    return (
        not engine.remote
        and isinstance(mechanism, NoiseMechanism)
        and mechanism.takes_prior
        and mechanism.prior == 0
        and mechanism.space.output.name == "all"
    )


def fitted_to(
    engine: SearchEngine, mechanism: Mechanism, space: Callable[[], WordSpace]
) -> Mechanism:
    """The mechanism for a search of documents on this machine, which are public.

    ``space`` gives its word space with the words of the documents as output vocabulary: only they
    can find anything, and a word that many documents hold is likelier to be meant. That is read
    off the noisy point afterwards, and changes nothing of what is promised.
    """
    if can_be_fitted(engine, mechanism) and isinstance(mechanism, NoiseMechanism):
        return replace(mechanism, space=space(), prior=defaults.PRIOR)
    return mechanism
