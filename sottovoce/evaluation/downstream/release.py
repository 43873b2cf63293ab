"""A data set obfuscated once: all models and both regimes then read the same release."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sottovoce.mechanisms.base import Mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.text import TextPipeline

Advance = Callable[[int], None]
"""Called with the number of texts that were obfuscated since the last call."""


def release(
    texts: Sequence[str],
    mechanism: Mechanism,
    seed: int,
    advance: Advance | None = None,
    *,
    first: int = 0,
    pipeline: TextPipeline | None = None,
) -> tuple[list[str], float | None]:
    """One variant of each text, and the mean share of what came back unchanged.

    A text for which the mechanism finds nothing comes out empty.
    """
    out: list[str] = []
    shares: list[float] = []
    cut = pipeline or TextPipeline(protect=mechanism.protects)
    for result in Obfuscator(mechanism, rng=seed, pipeline=cut).obfuscate(texts, first=first):
        out.append(result.variants[0] if result.variants else "")
        if result.unchanged is not None:
            shares.append(result.unchanged)
        if advance is not None:
            advance(1)
    return out, float(np.mean(shares)) if shares else None
