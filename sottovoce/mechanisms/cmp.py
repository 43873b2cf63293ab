"""CMP, the calibrated multivariate perturbation of Feyisetan et al. (WSDM 2020), 2.4 and 2.6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.gpu_release import GpuNoise
from sottovoce.mechanisms.noise import NOISE_CAVEATS, NoiseMechanism, SphericalNoise
from sottovoce.randomness import Draws
from sottovoce.types import Float64Array


@register
@dataclass(frozen=True, repr=False, eq=False)
class CMP(NoiseMechanism):
    """Spherical noise of density proportional to exp(-epsilon |x|), then the nearest word."""

    name: ClassVar[str] = "cmp"
    summary: ClassVar[str] = "adds spherical noise to a word's vector, releases the nearest word"
    paper: ClassVar[str] = (
        "Feyisetan, Balle, Drake, Diethe: Privacy- and Utility-Preserving Textual Analysis via "
        "Calibrated Multivariate Perturbations, WSDM 2020"
    )

    @property
    def noise_law(self) -> SphericalNoise:
        return SphericalNoise(self.space.dimension, self.epsilon)

    @property
    def gpu_noise(self) -> GpuNoise:
        return GpuNoise(self.space.dimension, self.epsilon)

    def noise(self, draws: Draws) -> Float64Array:
        return self.noise_law.noise(draws)

    def log_density(self, noise: Float64Array) -> Float64Array:
        return self.noise_law.log_density(noise)

    @property
    def noise_covariance(self) -> Float64Array:
        """The same variance in every direction."""
        return self.noise_law.variance * np.eye(self.space.dimension)

    @property
    def noise_guarantee(self) -> Guarantee:
        """Metric privacy in Euclidean distance; the paper's proof holds."""
        return Guarantee("metric", self.epsilon, "euclidean", caveats=NOISE_CAVEATS)
