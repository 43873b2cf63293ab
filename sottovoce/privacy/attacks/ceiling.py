"""What seeing the noisy point itself would give: a ceiling for attacks on one point.

A noise mechanism releases nothing but what follows from its noisy point z. Whoever saw z itself
would do best to guess the word with the largest prior times density at z, and is right as often as
this counts. Averaged over words that are drawn from the prior, every attack on the release
``once`` stays below; over the words of a file, which are not, it is a guide and no bound.
"""

from __future__ import annotations

import numpy as np

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.target import Target
from sottovoce.randomness import Draws
from sottovoce.types import UNKNOWN, BoolArray, IntArray

RIVALS = 200
"""Words near z that may have the largest density there. Fewer could only raise the ceiling."""
POINTS_AT_A_TIME = 16


def seen_through(target: Target, words: IntArray) -> BoolArray:
    """Whether each word, given a fresh noisy point of it, would be the best guess."""
    mechanism = target.mechanism
    assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - asked before
    right = np.zeros(len(words), dtype=np.bool_)
    known = np.flatnonzero(words != UNKNOWN)
    points = mechanism.perturb(words[known], Draws([(target.rng, len(known))]))
    for start in range(0, len(known), POINTS_AT_A_TIME):
        some = slice(start, start + POINTS_AT_A_TIME)
        near = target.search.top(points[some], min(RIVALS, target.space.size))[0]
        for place, point, rivals in zip(known[some], points[some], near, strict=True):
            candidates = np.append(rivals, words[place])
            noise = point.astype(np.float64) - target.space.vectors[candidates]
            scores = mechanism.log_density(noise) + target.prior(candidates)
            right[place] = candidates[scores.argmax()] == words[place]
    return right
