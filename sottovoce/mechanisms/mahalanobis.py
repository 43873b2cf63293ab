"""The Mahalanobis mechanism of Xu et al. (PrivateNLP 2020): noise shaped like the vocabulary."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.gpu_release import GpuNoise
from sottovoce.mechanisms.noise import (
    NOISE_CAVEATS,
    NoiseMechanism,
    SphericalNoise,
    spherical_noise,
)
from sottovoce.randomness import Draws
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float64Array, IntArray

PAIRS_AT_A_TIME = 4096
PER_EUCLIDEAN_DISTANCE = "epsilon per unit of Euclidean distance"

NOT_EUCLIDEAN = (
    "the metric is not Euclidean: per unit of Euclidean distance the bound is epsilon divided by "
    "the square root of the shape's smallest eigenvalue, so do not compare epsilons with cmp's"
)
RENORMALIZED = (
    "compat reproduces noise as published code draws it, re-normalised to Euclidean length; its "
    "log-ratio does not vanish as two words come closer, so no metric guarantee holds"
)


class HasCovariance(Protocol):
    """What noise is shaped like: a space or a pool."""

    @property
    def covariance(self) -> Float64Array: ...


@dataclass(frozen=True, eq=False)
class NoiseShape:
    """S = lambda * covariance + (1 - lambda) * identity, with what is made of it.

    On one thread of BLAS: several round differently, and seeded noise would be other noise.
    """

    covariance: Float64Array
    lambda_: float

    @cached_property
    def matrix(self) -> Float64Array:
        """S."""
        identity = np.eye(len(self.covariance))
        return np.asarray(self.lambda_ * self.covariance + (1 - self.lambda_) * identity)

    @cached_property
    def root(self) -> Float64Array:
        """The symmetric square root of S."""
        values, axes = self.axes
        with single_threaded_blas():
            return np.asarray((axes * np.sqrt(values)) @ axes.T)

    @cached_property
    def axes(self) -> tuple[Float64Array, Float64Array]:
        """The eigenvalues of S, none below 0, and its eigenvectors as columns."""
        with single_threaded_blas():
            values, axes = np.linalg.eigh(self.matrix)
        return np.maximum(values, 0.0), axes


_shapes: MutableMapping[HasCovariance, NoiseShape] = WeakKeyDictionary()


def shape_like(vectors: HasCovariance, lambda_: float) -> NoiseShape:
    """The last one of this space or pool is kept: mechanisms at all epsilons share it."""
    kept = _shapes.get(vectors)
    if kept is None or kept.lambda_ != lambda_ or kept.covariance is not vectors.covariance:
        kept = _shapes[vectors] = NoiseShape(vectors.covariance, lambda_)
    return kept


@dataclass(frozen=True, eq=False)
class MahalanobisNoise:
    """Noise of density proportional to exp(-epsilon |x|_M), with |x|_M^2 = x' S^-1 x.

    renormalized
        Bring each noise vector back to the Euclidean length it had before it was stretched, as
        published code does.
    """

    shape: NoiseShape
    epsilon: float
    renormalized: bool = False

    def noise(self, draws: Draws) -> Float64Array:
        """Spherical noise, stretched by the root of S."""
        root = self.shape.root
        round_noise = spherical_noise(draws, len(root), self.epsilon)
        shaped = draws.times(round_noise, root)
        if self.renormalized:
            shaped *= np.sqrt(
                (round_noise**2).sum(axis=1, keepdims=True) / (shaped**2).sum(axis=1, keepdims=True)
            )
        return shaped

    def norms(self, vectors: Float64Array) -> Float64Array:
        """|x|_M of vectors, along the last axis."""
        values, axes = self.shape.axes
        along = vectors @ axes
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.where(along == 0, 0.0, along * along / values)
        return np.asarray(np.sqrt(squares.sum(axis=-1)))

    def log_density(self, noise: Float64Array) -> Float64Array:
        """-epsilon |x|_M; for re-normalized noise -epsilon |x| + d log(|x| / |x|_M)."""
        shaped = self.norms(noise)
        if not self.renormalized:
            return -self.epsilon * shaped
        length = np.sqrt((noise * noise).sum(axis=-1))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(length > 0, np.log(length) - np.log(shaped), 0.0)
        return np.asarray(-self.epsilon * length + noise.shape[-1] * ratio)

    @property
    def euclidean_epsilon(self) -> float:
        """The bound per unit of Euclidean distance: epsilon / sqrt(smallest eigenvalue of S)."""
        smallest = float(self.shape.axes[0][0])
        return float(self.epsilon / np.sqrt(smallest)) if smallest > 0 else float(np.inf)


@register
@dataclass(frozen=True, repr=False, eq=False)
class Mahalanobis(NoiseMechanism):
    """Noise of density proportional to exp(-epsilon |x|_M), then the Euclidean nearest word.

    |x|_M^2 = x' S^-1 x with S = lambda * covariance + (1 - lambda) * identity, the covariance of
    the space's vectors scaled to mean variance 1. lambda = 0 is CMP.
    """

    name: ClassVar[str] = "mahalanobis"
    summary: ClassVar[str] = "like cmp, with noise shaped like the vocabulary's spread"
    paper: ClassVar[str] = (
        "Xu, Aggarwal, Feyisetan, Teissier: A Differentially Private Text Perturbation Method "
        "Using a Regularized Mahalanobis Metric, PrivateNLP 2020"
    )

    lambda_: float = parameter(0.2, "how much the noise follows the vocabulary's shape, 0 to 1")
    compat: Literal["none", "pypantera"] = parameter(
        "none", "'pypantera' re-normalises the noise as public code does (no guarantee)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lambda_ <= 1, f"lambda must be between 0 and 1, got {self.lambda_}")

    @cached_property
    def noise_law(self) -> MahalanobisNoise:
        shape = shape_like(self.space, self.lambda_)
        return MahalanobisNoise(shape, self.epsilon, renormalized=self.compat == "pypantera")

    @property
    def gpu_noise(self) -> GpuNoise:
        law = self.noise_law
        return GpuNoise(self.space.dimension, self.epsilon, law.shape.root, law.renormalized)

    def noise(self, draws: Draws) -> Float64Array:
        return self.noise_law.noise(draws)

    def log_density(self, noise: Float64Array) -> Float64Array:
        """-epsilon |x|_M, or that of the compat noise."""
        return self.noise_law.log_density(noise)

    @property
    def noise_covariance(self) -> Float64Array | None:
        """That of spherical noise, times S; unknown for the compat noise."""
        if self.compat != "none":
            return None
        spherical = SphericalNoise(self.space.dimension, self.epsilon)
        return spherical.variance * self.noise_law.shape.matrix

    def distances(self, words: IntArray, partners: IntArray) -> Float64Array:
        """|w - w'|_M of each word and its partner."""
        out = np.empty(len(words))
        for start in range(0, len(words), PAIRS_AT_A_TIME):
            rows = slice(start, start + PAIRS_AT_A_TIME)
            left = self.space.vectors[words[rows]].astype(np.float64)
            with single_threaded_blas():  # Several threads would round differently.
                out[rows] = self.noise_law.norms(left - self.space.vectors[partners[rows]])
        return out

    @property
    def published(self) -> Guarantee | None:
        """Code with the compat noise claims what the paper proves for its own."""
        if self.compat == "none":
            return None
        return replace(self, compat="none").noise_guarantee

    @property
    def noise_guarantee(self) -> Guarantee:
        """Metric privacy in the Mahalanobis distance; none for the compat noise."""
        if self.compat != "none":
            return Guarantee("none", None, caveats=(RENORMALIZED, *NOISE_CAVEATS))
        metric = f"mahalanobis(lambda={self.lambda_:g})"
        return Guarantee("metric", self.epsilon, metric, caveats=(NOT_EUCLIDEAN, *NOISE_CAVEATS))

    def facts(self) -> dict[str, float]:
        """The bound per unit of Euclidean distance on this space."""
        if self.compat != "none":
            return {}
        return {PER_EUCLIDEAN_DISTANCE: self.noise_law.euclidean_epsilon}
