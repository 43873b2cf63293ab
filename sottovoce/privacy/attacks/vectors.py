"""Inversion of noisy vectors against a log: the exact posterior of every query in it.

Whoever sees q' = v(query) + z and knows the encoder and epsilon believes of each query of a log

    P(query | q')  proportional to  prior(query) exp(-epsilon |q' - v(query)|),

and nobody who has this log and this prior can do better: it is Bayes' rule with the very density
of the noise. Rounding to the grid moves a distance by less than the grid's diagonal, and is left
out. With vectors of length 1 and all queries alike, the order is that of the products with q'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sottovoce.encoders.base import query_side
from sottovoce.errors import UsageError
from sottovoce.obfuscation.vectors import VectorNoise
from sottovoce.privacy.attacks.cosine import originals_in
from sottovoce.privacy.attacks.headline import Headline
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.types import Float32Array, Float64Array, Progress

TIE = 1e-6
"""Distances no farther apart are equal: encoders round to float32."""
RELEASES_AT_A_TIME, LOG_AT_A_TIME = 64, 8192


class SeenVector(NamedTuple):
    """What a store saw of one search, and the text behind it, to judge the guess by."""

    id: str
    text: str
    vector: Float32Array

    def __repr__(self) -> str:
        return f"SeenVector({len(self.vector)} dimensions)"


@dataclass(frozen=True, repr=False)
class Inversion:
    """What became of all searches that were attacked."""

    inference: Inference
    posteriors: tuple[float, ...]
    """The belief in the true query, after its vector was seen."""
    named: tuple[str, ...]
    """The likeliest query of the log."""
    nearest_others: tuple[str, ...]
    """The likeliest query that is not the true one: what is guessed where the log lacks it."""

    @property
    def headline(self) -> Headline:
        """The share that was named at the first guess, and what it took."""
        risk = self.inference.lazy
        return Headline(
            "queries", "inversion", 1, risk.value, risk.low, risk.high, self.inference.knows
        )

    def __repr__(self) -> str:
        return f"Inversion({self.inference!r})"


def invert(
    seen: Sequence[SeenVector],
    log: QueryLog,
    mechanism: VectorNoise,
    *,
    prior: Float64Array | None = None,
    add_originals: bool = False,
    progress: Progress | None = None,
) -> Inversion:
    """Attack every noisy vector by itself.

    prior
        How likely each query of the log is beforehand, in its order; all alike by default.
    add_originals
        Put originals that the log lacks beside it. They are encoded in memory: a person's own
        queries never come to the vectors on disk.
    """
    if not seen:
        raise UsageError("there is nothing to attack: no vector was seen")
    targets, beside = originals_in(log, [one.text for one in seen], add_originals)
    encoder = query_side(mechanism.encoder)
    parts = [log.vectors(encoder, progress), encoder.encode(beside)]
    beliefs = _beliefs(prior, len(log), len(beside))
    points = np.stack([one.vector for one in seen]).astype(np.float64)
    ranks, ties, posteriors, best, second = [], [], [], [], []
    for start in range(0, len(points), RELEASES_AT_A_TIME):
        block = slice(start, start + RELEASES_AT_A_TIME)
        scores = beliefs - mechanism.epsilon * _distances(points[block], parts)
        truth = targets[block]
        rows = np.arange(len(scores))
        lead = (scores - scores[rows, truth][:, None]) / mechanism.epsilon
        tied = (np.abs(lead) <= TIE).sum(axis=1) - 1
        ranks += (1 + (lead > TIE).sum(axis=1) + tied / 2).tolist()
        ties += tied.tolist()
        posteriors += np.exp(scores[rows, truth] - logsumexp(scores, axis=1)).tolist()
        best += scores.argmax(axis=1).tolist()
        scores[rows, truth] = -np.inf
        second += scores.argmax(axis=1).tolist()
    queries = [*log.queries, *beside]
    believed = "" if prior is None else ", how likely each is beforehand"
    inference = Inference(
        attack="inversion",
        knows=f"the encoder and epsilon; a log of {len(queries):,} queries with the true one in "
        f"it{believed}",
        log=len(queries),
        added=len(beside),
        unreleased=0,
        depth=DEPTH,
        queries=tuple(
            Attacked(one.id, 1, rank, tied)
            for one, rank, tied in zip(seen, ranks, ties, strict=True)
        ),
    )
    return Inversion(
        inference,
        posteriors=tuple(posteriors),
        named=tuple(queries[at] for at in best),
        nearest_others=tuple(queries[at] for at in second),
    )


def _beliefs(prior: Float64Array | None, log: int, beside: int) -> Float64Array:
    """Log-probabilities up to a constant; queries put beside the log are as likely as the mean."""
    if prior is None:
        return np.zeros(log + beside)
    if prior.shape != (log,) or not (np.isfinite(prior) & (prior > 0)).all():
        raise UsageError("a prior has a positive number for each query of the log")
    return np.asarray(np.log(np.concatenate([prior, np.full(beside, prior.mean())])))


def _distances(points: Float64Array, parts: Sequence[Float32Array]) -> Float64Array:
    """|q' - v| of each point and each row of the parts, taken together."""
    out = np.empty((len(points), sum(map(len, parts))))
    lengths = (points * points).sum(axis=1)[:, None]
    first = 0
    for part in parts:
        for start in range(0, len(part), LOG_AT_A_TIME):
            rows = part[start : start + LOG_AT_A_TIME].astype(np.float64)
            squares = lengths - 2 * points @ rows.T + (rows * rows).sum(axis=1)
            out[:, first : first + len(rows)] = np.sqrt(np.maximum(squares, 0.0))
            first += len(rows)
    return out
