"""The audit's own randomness, and how its chance of a false alarm is shared out."""

from __future__ import annotations

from numpy.random import PCG64, Generator

from sottovoce.randomness import Randomness, as_seed, secure_generator

LEVEL = 1e-3
"""The chance, at most, that a whole audit refutes a sound mechanism by sampling."""
SAMPLED_CHECKS = 16
"""More checks than this never sample in one audit; each has an equal share of the level."""
SHARE = LEVEL / SAMPLED_CHECKS


def generator(rng: Randomness) -> Generator:
    """Secure without a seed."""
    if rng is None:
        return secure_generator()
    return rng if isinstance(rng, Generator) else Generator(PCG64(as_seed(rng)))
