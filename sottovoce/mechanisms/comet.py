"""DP-COMET (De Faveri, Faggioli, Ferro, CIKM 2025): noise on a whole text's sentence vector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sottovoce.arrays import row_norms
from sottovoce.devices import Device
from sottovoce.devices import device as device_in_use
from sottovoce.errors import SottovoceError
from sottovoce.guarantees import MANY_RELEASES, Guarantee
from sottovoce.mechanisms.base import ROWS_AT_A_TIME, PoolMechanism, parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.mahalanobis import (
    PER_EUCLIDEAN_DISTANCE,
    Mahalanobis,
    MahalanobisNoise,
    shape_like,
)
from sottovoce.mechanisms.noise import NoiseLaw, SphericalNoise
from sottovoce.randomness import Draws, Streams
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float32Array, Float64Array, IntArray

PAPER = (
    "De Faveri, Faggioli, Ferro: DP-COMET: A Differential Privacy Contextual Obfuscation MEchanism "
    "for Texts in Natural Language Processing, CIKM 2025"
)
LONGEST = 1.0001
"""A unit vector, with room for rounding."""

PUBLIC_POOL = (
    "the pool must be public, and fixed without looking at the texts; a text that stands in it may "
    "come back as it is"
)
NEAR_TEXTS = "how close two texts are is the encoder's opinion, not a reader's"
SHARED = (
    "compat draws one noise vector for all texts of a batch, as the published code does: equal "
    "texts come out equal, and together the texts tell how they differ from each other"
)
RENORMALIZED = (
    "compat re-normalises the noise to Euclidean length, as the published code does: the log-ratio "
    "does not vanish as two texts come closer, so no metric guarantee holds for one text either"
)
NOT_EUCLIDEAN = (
    "the metric is not Euclidean: per unit of Euclidean distance the bound is larger, by up to 1 "
    "over the square root of 1 - lambda, so do not compare epsilons with comet-cmp's"
)
ANY_LENGTH = (
    "vectors of this encoder have any length, so distances have no bound, and none holds for every "
    "two texts: the promise is that of the metric alone, and the same epsilon protects less where "
    "vectors are longer"
)
ANY_TWO = "most nats between any two texts"


@dataclass(frozen=True, repr=False, eq=False)
class Comet(PoolMechanism):
    """z = vector of the text + noise; the string of the pool with the largest product with z.

    The noise is that of a word mechanism with the radius shrunk by the square root of the
    dimension d, so its true budget is epsilon * sqrt(d). What comes after z looks at z alone.
    A blank text has the vector 0: pure noise decides, and nothing tells that it was blank.
    """

    paper: ClassVar[str] = PAPER
    has_density: ClassVar[bool] = True

    epsilon: float = parameter(
        5.0, "the noise; the budget of a text and release is this times the root of the dimension"
    )
    compat: Literal["none", "authors"] = parameter(
        "none", "'authors' shares noise between texts as the published code does (no guarantee)"
    )

    @property
    def device(self) -> Device:
        """Where strings are searched."""
        return device_in_use()

    @property
    def budget(self) -> float:
        """The true epsilon of a release, per unit of distance: epsilon * sqrt(d)."""
        return float(self.epsilon * np.sqrt(self.pool.dimension))

    @property
    @abstractmethod
    def noise_law(self) -> NoiseLaw:
        """The noise that a word mechanism with the true budget would add."""

    def noise(self, draws: Draws) -> Float64Array:
        """One noise vector for each row of ``draws``; the mean radius is sqrt(d) / epsilon."""
        return self.noise_law.noise(draws)

    def log_density(self, noise: Float64Array) -> Float64Array:
        return self.noise_law.log_density(noise)

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """The vectors of texts, by the tower for queries where there are two.

        None is longer than 1 where the encoder says so: the bound between any two texts needs it.
        """
        vectors = self.pool.vectors_of_texts(texts)
        longest = LONGEST if self.pool.unit_length else np.inf
        norms = row_norms(vectors)
        if not (np.isfinite(norms) & (norms <= longest)).all():
            raise SottovoceError(
                "the encoder gave a vector longer than 1, or no numbers: nothing was released"
            )
        return vectors

    def release(
        self, texts: Sequence[str], n: int, once: bool, first: int, streams: Streams
    ) -> IntArray:
        """Places in the pool, (len(texts), n); a generator of its own for each text and variant."""
        points, strings = (1, n) if once else (n, 1)
        shared = self._noise(_draws(streams, [0], points), 1) if self.shares_noise else None
        vectors = self.encode(texts)
        out = np.empty((len(texts), n), dtype=np.int64)
        step = max(1, ROWS_AT_A_TIME // n)
        for start in range(0, len(texts), step):
            block = vectors[start : start + step]
            noise = shared
            if noise is None:
                numbers = range(first + start, first + start + len(block))
                noise = self._noise(_draws(streams, numbers, points), len(block))
            places = self.pool.best(self.perturb(block, noise), strings)
            out[start : start + step] = places.reshape(len(block), n)
        return out

    def sample(self, texts: Sequence[str], n: int, rng: Generator) -> IntArray:
        """Places of ``n`` independent substitutes for each text, (n, len(texts))."""
        require(n >= 0, f"the number of variants cannot be negative, got {n}")
        vectors = self.encode(texts)
        out = np.empty((n, len(vectors)), dtype=np.int64)
        step = max(1, ROWS_AT_A_TIME // max(1, len(vectors)))
        for start in range(0, n if len(vectors) else 0, step):
            count = min(step, n - start)
            noisy_texts = 1 if self.shares_noise else len(vectors)
            noise = self._noise(Draws([(rng, noisy_texts * count)]), noisy_texts)
            places = self.pool.best(self.perturb(vectors, noise), 1)
            out[start : start + count] = places.reshape(len(vectors), count).T
        return out

    def perturb(self, vectors: Float32Array, noise: Float64Array) -> Float32Array:
        """The noisy points z, (t * m, d), of vectors (t, d) and noise (t, m, d) or (1, m, d)."""
        points = vectors[:, None, :] + noise
        return points.reshape(-1, vectors.shape[1]).astype(np.float32)

    def _noise(self, draws: Draws, texts: int) -> Float64Array:
        return self.noise(draws).reshape(texts, -1, self.pool.dimension)

    @property
    def shares_noise(self) -> bool:
        """Whether all texts of a batch are moved by the same noise."""
        return self.compat == "authors"

    @property
    def guarantee(self) -> Guarantee:
        """The promise of independent noise with its true budget; none for shared noise."""
        if self.compat != "none":
            return Guarantee("none", None, scope="text", caveats=self._broken)
        return Guarantee("metric", self.budget, self._metric, scope="text", caveats=self._caveats)

    @property
    def published(self) -> Guarantee:
        """Section 3 of the paper: differential privacy with epsilon, whatever the dimension."""
        return Guarantee("local", self.epsilon, scope="text")

    @abstractmethod
    def distances(self, texts: Sequence[str], partners: Sequence[str]) -> Float64Array:
        """How far each text is from its partner, in the metric of the guarantee."""

    @property
    @abstractmethod
    def _metric(self) -> str: ...

    @property
    def _encoder(self) -> str:
        """The encoder's name without folders, which could name somebody."""
        return Path(self.pool.encoder.name).name

    @property
    def _caveats(self) -> tuple[str, ...]:
        root = np.sqrt(self.pool.dimension)
        return (
            f"the noise is shrunk by the root of the {self.pool.dimension} dimensions: the budget "
            f"is {root:.4g} times the parameter epsilon",
            PUBLIC_POOL,
            NEAR_TEXTS,
            MANY_RELEASES,
            *(() if self.pool.unit_length else (ANY_LENGTH,)),
        )

    @property
    def _broken(self) -> tuple[str, ...]:
        return SHARED, PUBLIC_POOL

    def facts(self) -> dict[str, float]:
        """The bound that holds for every two texts, where vectors have length 1."""
        bounded = self.compat == "none" and self.pool.unit_length
        return {ANY_TWO: 2 * self.budget} if bounded else {}


@register
@dataclass(frozen=True, repr=False, eq=False)
class CometCMP(Comet):
    """Spherical noise, of density proportional to exp(-epsilon sqrt(d) |x|)."""

    name: ClassVar[str] = "comet-cmp"
    summary: ClassVar[str] = (
        "adds spherical noise to a text's sentence vector, releases a string of a public pool"
    )

    @property
    def noise_law(self) -> SphericalNoise:
        return SphericalNoise(self.pool.dimension, self.budget)

    def on_words(self, space: WordSpace) -> CMP:
        """``cmp`` with the true budget."""
        return CMP(space, self.budget)

    @property
    def metric_space(self) -> tuple[str, str]:
        """The encoder; the pool does not decide distances."""
        return self._encoder, self.pool.encoder.fingerprint

    @property
    def _metric(self) -> str:
        return f"euclidean({self._encoder})"

    def distances(self, texts: Sequence[str], partners: Sequence[str]) -> Float64Array:
        """|t - t'| of each text and its partner."""
        return row_norms(self.encode(texts).astype(np.float64) - self.encode(partners))

    @property
    def _caveats(self) -> tuple[str, ...]:
        if not self.pool.unit_length:
            return super()._caveats
        everywhere = (
            f"sentence vectors have length 1, so a release tells any two texts apart by at most "
            f"{2 * self.budget:.4g} nats"
        )
        return (*super()._caveats, everywhere)


@register
@dataclass(frozen=True, repr=False, eq=False)
class CometMahalanobis(Comet):
    """Noise of density proportional to exp(-epsilon sqrt(d) |x|_M), shaped like the pool.

    lambda is 0.75 as in the authors' code; the paper does not name it.
    """

    name: ClassVar[str] = "comet-mahalanobis"
    summary: ClassVar[str] = "like comet-cmp, with noise shaped like the pool's spread"

    lambda_: float = parameter(0.75, "how much the noise follows the pool's shape, 0 to 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lambda_ <= 1, f"lambda must be between 0 and 1, got {self.lambda_}")

    @cached_property
    def noise_law(self) -> MahalanobisNoise:
        """That of ``mahalanobis`` with the true budget, re-normalized for compat."""
        shape = shape_like(self.pool, self.lambda_)
        return MahalanobisNoise(shape, self.budget, renormalized=self.compat != "none")

    def on_words(self, space: WordSpace) -> Mahalanobis:
        """``mahalanobis`` with the true budget."""
        compat: Literal["none", "pypantera"] = "none" if self.compat == "none" else "pypantera"
        return Mahalanobis(space, self.budget, lambda_=self.lambda_, compat=compat)

    @property
    def metric_space(self) -> tuple[str, str]:
        """The pool with its encoder: both decide the shape."""
        return f"{self._encoder}, {self.pool.name}", self.pool.sha256

    @property
    def _metric(self) -> str:
        return f"mahalanobis({self._encoder}, lambda={self.lambda_:g})"

    def distances(self, texts: Sequence[str], partners: Sequence[str]) -> Float64Array:
        """|t - t'|_M of each text and its partner."""
        return self.noise_law.norms(self.encode(texts).astype(np.float64) - self.encode(partners))

    @property
    def _caveats(self) -> tuple[str, ...]:
        return (*super()._caveats, NOT_EUCLIDEAN)

    @property
    def _broken(self) -> tuple[str, ...]:
        return (RENORMALIZED, *super()._broken)

    def facts(self) -> dict[str, float]:
        """The bound per unit of Euclidean distance, and for every two texts, on this pool."""
        if self.compat != "none":
            return {}
        bound = self.noise_law.euclidean_epsilon
        any_two = {ANY_TWO: 2 * bound} if self.pool.unit_length else {}
        return {PER_EUCLIDEAN_DISTANCE: bound, **any_two}


def _draws(streams: Streams, texts: Sequence[int], variants: int) -> Draws:
    """A row for each variant of each text, from a generator of its own unless one is shared."""
    if streams.shared:
        return Draws([(streams.generator(0, 0, Streams.WORDS, 0), len(texts) * variants)])
    return Draws(
        [
            (streams.generator(text, variant, Streams.WORDS, 0), 1)
            for text in texts
            for variant in range(variants)
        ]
    )
