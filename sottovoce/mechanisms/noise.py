"""Noise mechanisms: move a word's vector by random noise, release a word near where it lands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from sottovoce.arrays import row_norms
from sottovoce.devices import Device
from sottovoce.devices import device as device_in_use
from sottovoce.guarantees import FIXED_LENGTH, MANY_RELEASES, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import (
    ROWS_AT_A_TIME,
    WordMechanism,
    parameter,
    require,
    require_enough,
)
from sottovoce.mechanisms.gpu_release import ROWS_AT_A_TIME as ROWS_ON_A_GPU
from sottovoce.mechanisms.gpu_release import GpuNoise, GpuRelease
from sottovoce.randomness import Draws
from sottovoce.spaces.gpu.fused_scan import MOST_NEIGHBOURS
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    import torch

WRITTEN_TOGETHER = {
    "gpu_noise": ("noise", "noise_law"),
    "arranged": ("settle", "settle_many"),
    "_on_gpu": ("perturb", "move", "near"),
}
"""What a GPU does instead of these methods; a class that changes one must write both."""
IN_CACHE = 64
"""Rows at a time of what is done to every number: they stay in the processor's cache."""
FEWEST_ROWS = 16
"""Fewer rows than this are not worth a thread of their own."""
NOISE_CAVEATS = (WORD_BY_WORD, FIXED_LENGTH, MANY_RELEASES)


class NoiseLaw(Protocol):
    """A law of noise vectors, whatever they are added to: the vectors of words or of texts."""

    def noise(self, draws: Draws) -> Float64Array:
        """One noise vector for each row of ``draws``."""
        ...

    def log_density(self, noise: Float64Array) -> Float64Array:
        """The log-density of noise vectors, up to a constant."""
        ...


@dataclass(frozen=True)
class SphericalNoise:
    """Noise with the same scale in every direction: density proportional to exp(-epsilon |x|)."""

    dimension: int
    epsilon: float

    def noise(self, draws: Draws) -> Float64Array:
        """Uniform directions, Gamma radii."""
        return spherical_noise(draws, self.dimension, self.epsilon)

    def log_density(self, noise: Float64Array) -> Float64Array:
        """-epsilon |x|."""
        return np.asarray(-self.epsilon * np.sqrt((noise * noise).sum(axis=-1)))

    @property
    def variance(self) -> float:
        """Of each coordinate: the radius is Gamma, so that E |x|^2 = d (d + 1) / epsilon^2."""
        return (self.dimension + 1) / self.epsilon**2


def spherical_noise(draws: Draws, dimension: int, epsilon: float) -> Float64Array:
    """Noise of density proportional to exp(-epsilon |x|): uniform direction, Gamma radius."""
    directions = draws.normal(dimension)
    radii = draws.gamma(dimension)[:, None] / epsilon
    for start in range(0, len(directions), IN_CACHE):
        rows = directions[start : start + IN_CACHE]
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        rows *= radii[start : start + IN_CACHE]
    return directions


@dataclass(frozen=True, repr=False, eq=False)
class NoiseMechanism(WordMechanism):
    """z = vector of the word + noise; everything after z must look at z alone.

    That is what makes the release post-processing of the noisy point, and so what carries the
    guarantee of the noise over to the words.
    """

    supports_once: ClassVar[bool] = True
    has_density: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    """Whether popular words can be preferred."""

    prior: float = parameter(
        0.0, "how much popular words are preferred near the noisy point: 0 not, 1 by Bayes' rule"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            np.isfinite(self.prior) and self.prior >= 0,
            f"prior must be a number from 0 on, got {self.prior}",
        )
        require(
            not _all_equal(self.space.vectors),
            "all words of this space have the same vector: wherever the noise leads, the same word "
            "is the nearest. Use vectors that tell words apart",
        )

    @property
    def releases_nearest(self) -> bool:
        """Whether the word nearest to the noisy point is the one released."""
        return self.prior == 0

    @property
    def head_start(self) -> float:
        """What a unit of log popularity counts for beside w.z - |w|^2 / 2.

        By Bayes' rule a word w is as likely as exp(-epsilon |z - w|) times its popularity. Noise
        has a length of about r = d / epsilon, and there -epsilon |z - w| grows like
        (epsilon / r) (w.z - |w|^2 / 2): so the log of the popularity counts r / epsilon times.
        """
        return self.prior * self.space.dimension / self.epsilon**2

    def check_once(self, n: int) -> None:
        """The output vocabulary must have as many words."""
        require_enough(n, len(self.space.output), "words", "output vocabulary")

    @abstractmethod
    def noise(self, draws: Draws) -> Float64Array:
        """One noise vector for each row of ``draws``."""

    @abstractmethod
    def log_density(self, noise: Float64Array) -> Float64Array:
        """The log-density of noise vectors, up to a constant: what ``noise`` draws from."""

    @property
    def noise_covariance(self) -> Float64Array | None:
        """The exact covariance of the noise, whose mean is 0; None where nobody worked it out."""
        return None

    @property
    def gpu_noise(self) -> GpuNoise | None:
        """The same law for a GPU; None where only the CPU can draw from it."""
        return None

    @property
    def device(self) -> Device:
        """Where words are searched."""
        return device_in_use()

    @cached_property
    def _on_gpu(self) -> GpuRelease | None:
        """What releases words on a GPU, where that can be done."""
        if not same_on_gpu(type(self)) or self.prior != 0 or self.candidates > MOST_NEIGHBOURS:
            return None
        noise, scan = self.gpu_noise, self.space.nearest_output.fused
        if noise is None or scan is None or not noise.runs_on(scan.device):
            return None
        return GpuRelease(self, noise, scan)

    def draws_on_gpu(self, secure: bool) -> bool:
        """Where a GPU does all of it: noise, search and choice."""
        return secure and self._on_gpu is not None

    def rows_at_a_time(self, secure: bool) -> int:
        """More where a GPU does all of it."""
        return ROWS_ON_A_GPU if self.draws_on_gpu(secure) else ROWS_AT_A_TIME

    def arranged(
        self, ids: torch.Tensor, distances: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """The nearest words in the order of their release, on a GPU: ``settle_many`` there."""
        return ids

    @property
    def candidates(self) -> int:
        """Among how many of the nearest words the released one is chosen."""
        return 1

    @property
    @abstractmethod
    def noise_guarantee(self) -> Guarantee:
        """What the noise promises."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the noise: the rest is post-processing."""
        return self.noise_guarantee

    def perturb(self, ids: IntArray, draws: Draws) -> Float32Array:
        """The noisy points z of words."""
        return self.move(self.space.vectors[ids], draws)

    def move(self, vectors: Float32Array, draws: Draws) -> Float32Array:
        """The noisy points z of vectors, of listed words or of any others."""
        noise = self.noise(draws)
        points = np.empty(noise.shape, dtype=np.float32)
        for start in range(0, len(noise), IN_CACHE):
            rows = slice(start, start + IN_CACHE)
            np.add(noise[rows], vectors[rows], out=points[rows])
        return points

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        """One substitute for each id."""
        if draws.secure and self._on_gpu is not None:
            return self._on_gpu.words(ids, 1)[:, 0]
        return self._in_parts(
            lambda rows, part: self.settle(self.perturb(ids[rows], part), part), draws
        )

    def draw_at(self, vectors: Float32Array, draws: Draws) -> IntArray:
        """One substitute for each vector."""
        if draws.secure and self._on_gpu is not None:
            return self._on_gpu.vectors(vectors, 1)[:, 0]
        return self._in_parts(
            lambda rows, part: self.settle(self.move(vectors[rows], part), part), draws
        )

    def _in_parts(self, release: Callable[[slice, Draws], IntArray], draws: Draws) -> IntArray:
        """What ``release`` answers for all rows, on all threads: noise and search alike.

        A row's words depend on its own generator, so not on how many threads there are.
        """
        at_once = threads() if self.device == "cpu" else 1
        parts = draws.parts(min(at_once, draws.size // FEWEST_ROWS))
        return np.concatenate(parallel_map(lambda part: release(*part), parts))

    def settle(self, points: Float32Array, draws: Draws) -> IntArray:
        """The word released for each noisy point: the nearest one."""
        return self.choose(*self.near(points, self.candidates), draws)

    def choose(self, ids: IntArray, distances: Float64Array, draws: Draws) -> IntArray:
        """The word released out of the ``candidates`` nearest to each noisy point."""
        return ids[:, 0]

    @property
    def only_adds_noise(self) -> bool:
        """Whether a release is noise, the nearest words and a choice of them, as written here.

        Then many words can be moved by the same noise at once (``spaces/moved_words.py``).
        """
        return self.prior == 0 and written_as_here(type(self))

    def draw_once(self, ids: IntArray, k: int, draws: Draws) -> IntArray:
        """``k`` distinct substitutes for each id, read off a single noisy point, (len(ids), k).

        However large ``k``, this costs one release.
        """
        if draws.secure and self._on_gpu is not None and 1 <= k <= MOST_NEIGHBOURS:
            self.check_once(k)
            return self._on_gpu.words(ids, k)
        return self.draw_once_at(self.space.vectors[ids], k, draws)

    def draw_once_at(self, vectors: Float32Array, k: int, draws: Draws) -> IntArray:
        """The same for vectors, of listed words or of any others."""
        require(k >= 1, f"ask for at least one variant, not {k}")
        self.check_once(k)
        if draws.secure and self._on_gpu is not None and k <= MOST_NEIGHBOURS:
            return self._on_gpu.vectors(vectors, k)
        return self._in_parts(
            lambda rows, part: self.settle_many(self.move(vectors[rows], part), k, part), draws
        )

    def settle_many(self, points: Float32Array, k: int, draws: Draws) -> IntArray:
        """``k`` distinct words for each noisy point: the nearest ones."""
        return self.near(points, k)[0]

    def near(self, points: Float32Array, k: int) -> tuple[IntArray, Float64Array]:
        """Ids and distances of the ``k`` words of the output vocabulary nearest to each point.

        With a ``prior``, those that are near and popular.
        """
        if self.prior == 0:
            positions, distances = self.space.nearest_output.top(points, k)
            return self.space.output.ids[positions], distances
        ones = np.ones((len(points), 1), dtype=np.float32)
        queries = np.concatenate([points, ones, self.head_start * ones], axis=1)
        ids = self.space.output.ids[self.space.likely_output.top(queries, k)[0]]
        apart = [self.space.vectors[column] - points.astype(np.float64) for column in ids.T]
        return ids, np.stack([row_norms(difference) for difference in apart], axis=1)


def _all_equal(vectors: Float32Array) -> bool:
    """Whether all vectors are the same; the first that differs ends it."""
    return all(
        (vectors[start : start + IN_CACHE] == vectors[0]).all()
        for start in range(0, len(vectors), IN_CACHE)
    )


def same_on_gpu(kind: type[NoiseMechanism]) -> bool:
    """Whether a class draws on a GPU what it draws on the CPU.

    A subclass with noise of its own, or a choice of its own, inherits the GPU's of its parent: it
    must not be used, or the words would be those of another mechanism.
    """
    return all(
        _written_in(kind, name) in (None, _written_in(kind, on_gpu))
        for on_gpu, names in WRITTEN_TOGETHER.items()
        for name in names
    )


def written_as_here(kind: type[NoiseMechanism]) -> bool:
    """Whether a class changes nothing but the noise and, together with ``settle``, the choice."""
    changed = (_written_in(kind, name) for name in ("draw", "perturb", "move", "near"))
    together = _written_in(kind, "settle") is _written_in(kind, "choose")
    return together and all(parent is NoiseMechanism for parent in changed)


def _written_in(kind: type, name: str) -> type | None:
    return next((parent for parent in kind.__mro__ if name in vars(parent)), None)
