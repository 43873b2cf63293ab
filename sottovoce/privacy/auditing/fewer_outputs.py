"""A mechanism that releases fewer words, so that many draws in its own space are cheap.

It moves the same vectors by the same noise at the same epsilon; only the search is among fewer
words. What is promised does not depend on which words these are. Each of them comes out more
often: what is missing shows sooner for it, what is added by chance a little later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.word_samples import nearest_others
from sottovoce.randomness import is_secure
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.types import IntArray

Kind = TypeVar("Kind", bound=WordMechanism)

NEIGHBOURS, OTHERS = 8, 1024
"""Of each word that is looked at, and of the rest by chance."""
WORTH_IT = 8 * OTHERS
"""Among fewer words than this the search is cheap."""


def with_fewer_outputs(mechanism: Kind, words: IntArray, rng: Generator) -> Kind:
    """The same mechanism, releasing only ``words``, their neighbours, and others by chance.

    Where a law is known, few words are released, or a GPU draws, it is left as it is.
    """
    output, on_gpu = mechanism.space.output, mechanism.draws_on_gpu(is_secure(rng))
    if len(output) <= WORTH_IT or mechanism.has_law or on_gpu:
        return mechanism
    near = nearest_others(mechanism.space, words, range(1, NEIGHBOURS + 1))[0]
    others = rng.choice(output.ids, OTHERS, replace=False)
    kept = np.isin(output.ids, np.concatenate([words, near.ravel(), others]))
    popularity = None if output.popularity is None else output.popularity[kept]
    fewer = OutputVocabulary(f"some of {output.name}", output.ids[kept], popularity)
    try:
        return replace(mechanism, space=mechanism.space.with_output(fewer))
    except UsageError:  # It needs more words.
        return mechanism
