"""Evidence by an exact law, written down in the plainest way, and releases to try it on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.releases import Released


class PlainLaw(Evidence):
    """Sums the log-probabilities of all that was seen, for every word."""

    kind = "exact law"

    def __init__(self, mechanism: WordMechanism) -> None:
        self.mechanism = mechanism
        self.law = mechanism.log_probabilities(np.arange(mechanism.space.size))

    def log_likelihood(self, places, progress=None) -> np.ndarray:
        rows = [self.law[:, seen].sum(axis=1) for seen in places]
        return np.array(rows, dtype=np.float32).reshape(len(places), -1)


class NoEvidence(PlainLaw):
    """What a mechanism shows that releases the same word for all."""

    def log_likelihood(self, places, progress=None) -> np.ndarray:
        return np.zeros((len(places), self.mechanism.space.size), dtype=np.float32)


def released(
    mechanism: WordMechanism, texts: Sequence[np.ndarray], n: int, seed: int
) -> list[Released]:
    """Texts of words of the space, with ``n`` variants drawn afresh."""
    rng = Generator(PCG64(seed))
    spell = mechanism.space.words
    return [
        Released(
            str(number),
            " ".join(spell(ids)),
            tuple(" ".join(spell(row)) for row in mechanism.sample(ids, n, rng)),
        )
        for number, ids in enumerate(texts)
    ]
