"""Releases that an attacker makes of queries of a log, to learn from: their words are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.denoiser import Seen
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.places import line_up
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.words import evidence_rows
from sottovoce.types import UNKNOWN, Float32Array, IntArray

QUERIES_AT_A_TIME = 32


@dataclass(frozen=True)
class Maker:
    """Releases queries as the mechanism does, and asks the evidence about them."""

    evidence: Evidence
    obfuscator: Obfuscator
    rng: Generator | None

    def make(self, queries: Sequence[str]) -> Iterator[tuple[IntArray, Float32Array]]:
        """The true words and the rows of evidence of each query that lines up."""
        space, setup = self.evidence.mechanism.space, replace(self.obfuscator, rng=self.rng)
        results = setup.obfuscate(queries)
        releases = [Released("", result.text, result.variants) for result in results]
        texts, _ = line_up(releases, space, release=setup.release, pipeline=setup.pipeline)
        for text, rows in evidence_rows(self.evidence, texts):
            if text.aligned and len(rows):
                ids = np.array([text.truth[place].id for place in text.replaced])
                yield np.where(ids == UNKNOWN, space.size, ids), rows


@dataclass(frozen=True, repr=False)
class SelfMade:
    """Places of releases whose words are known."""

    seen: Seen
    truth: IntArray
    """The true word of each place."""
    lengths: IntArray
    """How many places each text has."""

    @classmethod
    def of(cls, parts: Sequence[tuple[IntArray, Seen]]) -> SelfMade:
        """From the true words of texts and what was seen of them."""
        if not parts:
            raise UsageError("no release of the log's queries can be lined up: give another log")
        truths, seen = [truth for truth, _ in parts], [part for _, part in parts]
        inputs = [part.inputs[:-1] for part in seen]
        return cls(
            Seen(
                np.concatenate([part.words for part in seen]),
                np.concatenate([part.scores for part in seen]),
                np.concatenate([*inputs, seen[0].inputs[-1:]]),
            ),
            np.concatenate(truths),
            np.array([len(truth) for truth in truths]),
        )

    @cached_property
    def right(self) -> IntArray:
        """The column of the true word among the candidates; -1 where it is not among them."""
        same = self.seen.words == self.truth[:, None]
        return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def drawn_queries(log: CutLog, rng: Generator) -> list[str]:
    """Queries to be released, in random order, those with rare words rather early.

    A word that is in the log c times is drawn about as often as the square root of c says.
    """
    counts = np.bincount(log.words, minlength=log.size + 1)
    text = np.repeat(np.arange(len(log)), log.lengths)
    weights = np.bincount(text, weights=counts[log.words] ** -0.5, minlength=len(log))
    # The order of draws without replacement: Efraimidis and Spirakis 2006.
    keys = rng.standard_exponential(len(log)) / np.maximum(weights, 1e-9)
    return [log.queries[number] for number in np.argsort(keys)[: np.count_nonzero(weights)]]


def in_blocks(queries: Sequence[str]) -> Iterator[Sequence[str]]:
    """Queries that are released together."""
    for start in range(0, len(queries), QUERIES_AT_A_TIME):
        yield queries[start : start + QUERIES_AT_A_TIME]
