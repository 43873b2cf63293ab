"""Query inference against mechanisms that replace whole texts by strings of a public pool (COMET).

The attacker has the mechanism's own encoder and pool. Released ``once``, the strings are the
nearest of one noisy point of the text: where that point is believed to be is found as for words
(``one_point.py``), the strings being the words of a space. Drawn afresh, each string lies near a
noisy point of its own, and their mean stands for the text. Log queries are then sorted by
q' S^-1 z, S the covariance of the noise: their log-density up to terms that hardly differ between
sentence vectors, which all have length 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.choices import Release
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import PoolMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.cosine import mid_ranks, originals_in
from sottovoce.privacy.attacks.covariances import noise_covariance
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.randomness import Randomness, as_generator
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float64Array, IntArray, Progress


def infer_sentences(
    releases: Sequence[Released],
    log: QueryLog,
    mechanism: PoolMechanism,
    release: Release,
    *,
    variants: int | None = None,
    add_originals: bool = False,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Inference:
    """Attack every release by itself, knowing the mechanism."""
    attacked = [released for released in releases if released.variants]
    encoder = mechanism.pool.encoder
    targets, beside = originals_in(log, [released.text for released in attacked], add_originals)
    parts = (log.vectors(encoder, progress), encoder.encode(beside))
    places = _places(mechanism.pool, [released.variants[:variants] for released in attacked])
    points = _points(mechanism, release, places, rng)
    ranks, _, ties = mid_ranks(points, targets, parts)
    return Inference(
        attack="aligned",
        knows=f"the mechanism with its parameters, its encoder and its pool; a log of "
        f"{len(log) + len(beside):,} queries with the true one in it",
        log=len(log) + len(beside),
        added=len(beside),
        unreleased=len(releases) - len(attacked),
        depth=DEPTH,
        queries=tuple(
            Attacked(released.id, len(shown), float(rank), int(tied))
            for released, shown, rank, tied in zip(attacked, places, ranks, ties, strict=True)
        ),
    )


def _places(pool: Pool, variants: Sequence[Sequence[str]]) -> list[IntArray]:
    """Where the released strings stand in the pool."""
    numbers = {string: number for number, string in enumerate(pool.strings)}
    try:
        return [np.array([numbers[string] for string in shown]) for shown in variants]
    except KeyError:
        raise UsageError(
            "some of what was released is no string of this pool: name the pool that was used "
            "with --pool"
        ) from None


def _points(
    mechanism: PoolMechanism, release: Release, places: Sequence[IntArray], rng: Randomness
) -> Float64Array:
    """The directions to sort log queries by: S^-1 z at the believed noisy point, of length 1."""
    strings = _as_words(mechanism)
    generator = as_generator(rng)
    if release == "once":
        points = OnePoint.of(strings, rng=generator).points(places)
    else:
        vectors = mechanism.pool.vectors
        points = np.stack([vectors[shown].mean(axis=0, dtype=np.float64) for shown in places])
    pulls = np.linalg.solve(noise_covariance(strings, generator), points.T).T.astype(np.float64)
    lengths = np.sqrt((pulls * pulls).sum(axis=1, keepdims=True))
    return np.asarray(pulls / np.where(lengths > 0, lengths, 1.0))


def _as_words(mechanism: PoolMechanism) -> NoiseMechanism:
    """A word mechanism that moves the strings of the pool as this one moves texts.

    Vectors have length 1, so the nearest string is that of the largest product.
    """
    pool = mechanism.pool
    space = WordSpace.from_arrays(list(map(str, range(len(pool)))), pool.vectors, pool.name)
    on_words = mechanism.on_words(space)
    if not isinstance(on_words, NoiseMechanism):
        raise UsageError(f"no attack here knows how '{mechanism.name}' moves texts")
    return on_words
