"""How much must be wrong with a noise mechanism in a large space until the audit sees it.

    python benchmarks/audit_power.py [--all] [--seeds 5]

CMP is broken on purpose, more and more, on the default space; printed is in how many of the seeds a
check refutes it. With ``--all`` all words are released in every check, which takes long.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sottovoce import mechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy.auditing import DRAWS, WORDS, fewer_outputs, sampled_bounds, word_checks
from sottovoce.privacy.auditing.findings import Check, Subject, claims
from sottovoce.privacy.auditing.outside_words import with_outside_words
from sottovoce.privacy.word_samples import sample_words
from sottovoce.randomness import Draws, as_generator
from sottovoce.types import Float64Array, IntArray

MANY = 50_000
CHANCE = [0.0]
"""That something is wrong with a row."""


@dataclass(frozen=True, repr=False, eq=False)
class ComesBack(CMP):
    """Some words are released as they are."""

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        drawn = super().draw(ids, draws)
        return np.where(draws.uniform() < CHANCE[0], ids, drawn)


@dataclass(frozen=True, repr=False, eq=False)
class ComesBackAmongMany(ComesBack):
    """The same, but only as long as very many words are released."""

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        many = len(self.space.output) > MANY
        return super().draw(ids, draws) if many else CMP.draw(self, ids, draws)


@dataclass(frozen=True, repr=False, eq=False)
class AnotherInstead(CMP):
    """Some words that would come back are replaced by the second nearest."""

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        near, _ = self.near(self.perturb(ids, draws), 2)
        wrong = (near[:, 0] == ids) & (draws.uniform() < CHANCE[0])
        return np.where(wrong, near[:, 1], near[:, 0])


@dataclass(frozen=True, repr=False, eq=False)
class SharesNoise(CMP):
    """Some rows have the noise of the row before."""

    def noise(self, draws: Draws) -> Float64Array:
        noise = super().noise(draws)
        rows = 1 + np.flatnonzero(draws.uniform()[1:] < CHANCE[0])
        noise[rows] = noise[rows - 1]
        return noise


CASES: list[tuple[type[CMP], Check, tuple[float, ...]]] = [
    (ComesBack, word_checks.returned_originals, (0.01, 0.02, 0.03)),
    (ComesBackAmongMany, word_checks.returned_originals, (0.04, 0.08, 0.12)),
    (ComesBack, sampled_bounds.on_close_pairs, (0.02, 0.03, 0.05)),
    (AnotherInstead, sampled_bounds.on_close_pairs, (0.5, 0.75, 1.0)),
    (SharesNoise, word_checks.batch_independence, (0.05, 0.1, 0.2)),
]


@contextmanager
def all_words(released: bool) -> Iterator[None]:
    """Release all words in every check, or not."""
    usual = fewer_outputs.WORTH_IT
    fewer_outputs.WORTH_IT = 1 << 62 if released else usual
    yield
    fewer_outputs.WORTH_IT = usual


def is_refuted(chosen: CMP, check: Check, seed: int) -> bool:
    """What a check says, with the words and draws that an audit gives it."""
    rng = as_generator(seed)
    known, outside = with_outside_words(chosen, WORDS // 2, rng)
    words = np.concatenate([sample_words(known.space, WORDS - len(outside), rng), outside])
    subject = Subject(known, claims(known), words, WORDS, DRAWS, False, rng)
    return any(finding.verdict == "REFUTED" for finding in check(subject, lambda _: None))


def main() -> None:
    """Break, check and count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    space = mechanism("cmp").space
    with all_words(options.all):
        for kind, check, chances in CASES:
            for CHANCE[0] in chances:
                chosen = kind(space, 10.0)
                hits = sum(is_refuted(chosen, check, seed) for seed in range(options.seeds))
                print(f"{kind.__name__} {CHANCE[0]:.0%}, {check.__name__}: {hits}", flush=True)


if __name__ == "__main__":
    main()
