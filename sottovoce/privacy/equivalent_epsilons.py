"""Which epsilon of one word space does to words what an epsilon of another one does.

An epsilon of metric privacy counts for each unit of distance, and distances of two spaces have
nothing in common. Feyisetan et al. (WSDM 2020, section 4.2 and figure 3) compare spaces by N_w, the
probability that a word is released for itself: epsilons are equivalent where its mean over the same
words is the same. That says nothing about the worst word, nor about the guarantees.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.privacy.plausible_deniability import Deniability, deniability, word_mechanism
from sottovoce.privacy.word_samples import sample_words
from sottovoce.randomness import as_seed
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, IntArray

WORDS = 100
DRAWS = 200
"""Words compared unless told otherwise, and draws of each: the mean N_w is known within .01."""
FINENESS = 1.01
"""How close the search comes, as a factor of epsilon."""
DOUBLINGS = 12
"""How often an epsilon is doubled, or halved, before the search gives up."""


@dataclass(frozen=True, repr=False)
class EpsilonMatch:
    """The epsilon whose mean N_w is ``wanted``, as measured again on draws of their own."""

    wanted: float
    measured: Deniability

    @property
    def epsilon(self) -> float:
        return self.measured.mechanism.epsilon

    @property
    def unchanged(self) -> float:
        """The mean N_w at this epsilon."""
        return float(self.measured.unchanged.mean())

    @property
    def standard_error(self) -> float:
        """Of ``unchanged``, for these words: by the number of draws, 0 where the law is exact."""
        if self.measured.exact:
            return 0.0
        shares = self.measured.unchanged
        variance = float((shares * (1 - shares)).sum()) / self.measured.draws
        return math.sqrt(variance) / len(shares)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": self.measured.mechanism.spec,
            "space": self.measured.mechanism.space.name,
            "epsilon": self.epsilon,
            "wanted": self.wanted,
            "unchanged": self.unchanged,
            "standard_error": self.standard_error,
            "words": len(self.measured.words),
        }


def equivalent_epsilon(
    mechanism: Mechanism,
    other: Mechanism,
    *,
    words: int = WORDS,
    draws: int = DRAWS,
    rng: int | SeedSequence | None = None,
) -> EpsilonMatch:
    """The epsilon at which ``other`` has the mean N_w that ``mechanism`` has at its own.

    Both are measured on words that both spaces have: a sample of the smaller space. The epsilon of
    ``other`` does not matter, except that the search starts there.
    """
    first, second = word_mechanism(mechanism), word_mechanism(other)
    seed = _seed(rng)
    shared = shared_words(first.space, second.space, words)
    level = deniability(first, shared[0], draws=draws, rng=_part(seed, 2)).unchanged.mean()
    return epsilon_with_unchanged(second, float(level), shared[1], draws=draws, rng=seed)


def epsilon_with_unchanged(
    mechanism: Mechanism,
    unchanged: float,
    words: IntArray | None = None,
    *,
    draws: int = DRAWS,
    rng: int | SeedSequence | None = None,
) -> EpsilonMatch:
    """The epsilon at which words come back with probability ``unchanged``, on average.

    Every epsilon is tried on the same noise, scaled, so that for noise and the nearest word the
    mean N_w never falls as epsilon grows. With a mechanism for which it does, there may be several
    such epsilons: this is one of them.
    """
    tried = word_mechanism(mechanism)
    if not 0 < unchanged < 1:
        raise UsageError(
            "words must come back sometimes and not always for epsilons to be compared: N_w lies "
            "between 0 and 1, take an epsilon where it does"
        )
    ids = sample_words(tried.space, WORDS) if words is None else tried.checked(words)
    seed = _seed(rng)
    low, high = _bracket(tried, unchanged, ids, draws, _part(seed, 0))
    while high > low * FINENESS:
        middle = math.sqrt(low * high)
        if _mean(tried, middle, ids, draws, _part(seed, 0)) < unchanged:
            low = middle
        else:
            high = middle
    match = replace(tried, epsilon=float(f"{math.sqrt(low * high):.3g}"))
    return EpsilonMatch(unchanged, deniability(match, ids, draws=draws, rng=_part(seed, 1)))


def shared_words(first: WordSpace, second: WordSpace, count: int) -> tuple[IntArray, IntArray]:
    """Ids, in both spaces, of words that both have: of ``count`` words of the smaller one."""
    smaller, larger = sorted((first, second), key=lambda space: space.size)
    sampled = sample_words(smaller, count)
    in_larger = larger.ids(smaller.words(sampled))
    known = in_larger != UNKNOWN
    if not known.any():
        raise UsageError("the two spaces share none of the words sampled: compare others")
    pair = sampled[known], np.asarray(in_larger)[known]
    return pair if smaller is first else pair[::-1]


def _bracket(
    mechanism: WordMechanism, unchanged: float, ids: IntArray, draws: int, seed: SeedSequence
) -> tuple[float, float]:
    """Two epsilons, one double the other, with the level between them."""
    epsilon = mechanism.epsilon
    upwards = _mean(mechanism, epsilon, ids, draws, seed) < unchanged
    for _ in range(DOUBLINGS):
        following = epsilon * (2 if upwards else 0.5)
        if (_mean(mechanism, following, ids, draws, seed) < unchanged) != upwards:
            return min(epsilon, following), max(epsilon, following)
        epsilon = following
    raise UsageError(
        f"{mechanism.name} reaches no epsilon at which its words come back that often: its "
        "releases cannot be compared with these by N_w"
    )


def _mean(
    mechanism: WordMechanism, epsilon: float, ids: IntArray, draws: int, seed: SeedSequence
) -> float:
    tried = replace(mechanism, epsilon=epsilon)
    return float(deniability(tried, ids, draws=draws, rng=seed).unchanged.mean())


def _seed(rng: int | SeedSequence | None) -> SeedSequence:
    """A seed for all epsilons of a search; without one given, one that nobody knows."""
    return SeedSequence(secrets.randbits(128)) if rng is None else as_seed(rng)


def _part(seed: SeedSequence, purpose: int) -> SeedSequence:
    """Independent draws for each purpose, and the same ones whenever it is asked for."""
    return SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, purpose))
