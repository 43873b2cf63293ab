"""Noise mechanisms on a GPU, from word ids to word ids: noise, search and choice on the device.

Only without a seed: then any secure numbers do, and these come from ChaCha20 with a key of the
operating system, new for each call. A seeded run draws the CPU's numbers and searches on the GPU,
so it gives the same words on every device.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sottovoce.spaces.gpu.fallback import if_it_runs
from sottovoce.types import Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    import torch

    from sottovoce.spaces.gpu.fused_scan import FusedScan
    from sottovoce.spaces.space import WordSpace

ROWS_AT_A_TIME = 1 << 18
"""Words released in one call."""
VALUES_PER_BLOCK = 6
"""Normal variates that a block of the keystream makes."""


@dataclass(frozen=True, eq=False)
class GpuNoise:
    """Spherical noise, stretched by a matrix if there is one: what a device has to know of a law.

    renormalized
        Whether stretched noise gets its Euclidean length back.
    """

    dimension: int
    epsilon: float
    root: Float64Array | None = None
    renormalized: bool = False

    def draw(
        self, rows: int, device: torch.device, key: bytes | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Noise (rows, dimension) in float32, and a uniform variate for each row.

        ``key`` has 32 bytes; without it a new one comes from the operating system.
        """
        import torch

        from sottovoce.mechanisms import gpu_noise_kernels as kernels

        secret = np.frombuffer(key or secrets.token_bytes(32), dtype="<i4").copy()
        on_device = torch.from_numpy(secret).to(device)
        noise = torch.empty((rows, self.dimension), dtype=torch.float32, device=device)
        uniforms = torch.empty((rows,), dtype=torch.float64, device=device)
        blocks = max(2, -(-self.dimension // VALUES_PER_BLOCK))
        if rows:
            kernels.spherical_noise[(rows,)](
                on_device,
                noise,
                uniforms,
                float(self.epsilon),
                DIMENSION=self.dimension,
                BLOCKS=1 << (blocks - 1).bit_length(),
                num_warps=1,
            )
        return self._shaped(noise), uniforms

    def runs_on(self, device: torch.device) -> bool:
        """Whether the kernel runs there; if not, people are warned that the processor draws."""
        noise = if_it_runs(
            lambda: self.draw(1, device), "the kernel for noise", "the processor draws"
        )
        return noise is not None

    def _shaped(self, noise: torch.Tensor) -> torch.Tensor:
        if self.root is None:
            return noise
        import torch

        root = torch.from_numpy(self.root).to(noise.device)
        shaped = noise.double() @ root
        if self.renormalized:
            shaped *= noise.double().norm(dim=1, keepdim=True) / shaped.norm(dim=1, keepdim=True)
        return shaped.float()


class Chooses(Protocol):
    """What a mechanism decides after the noise."""

    @property
    def space(self) -> WordSpace: ...

    @property
    def candidates(self) -> int: ...

    def arranged(
        self, ids: torch.Tensor, distances: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor: ...


class GpuRelease:
    """Releases words of one mechanism on the device that its space is searched on."""

    def __init__(self, mechanism: Chooses, noise: GpuNoise, scan: FusedScan) -> None:
        self.mechanism, self.noise, self.scan = mechanism, noise, scan

    @cached_property
    def _everything(self) -> bool:
        """Whether the device has the vectors of all words, not of those alone to be released."""
        return len(self.mechanism.space.output) == self.mechanism.space.size

    def words(self, ids: IntArray, k: int) -> IntArray:
        """``k`` different substitutes for each word, (ids, k)."""
        if not self._everything:
            return self.vectors(self.mechanism.space.vectors[ids], k)
        import torch

        on_device = torch.from_numpy(np.ascontiguousarray(ids)).to(self.scan.device)
        return self._released(self.scan.table[on_device, : self.scan.dimension], k)

    def vectors(self, vectors: Float32Array, k: int) -> IntArray:
        """The same for vectors."""
        import torch

        return self._released(torch.from_numpy(np.array(vectors)).to(self.scan.device), k)

    def _released(self, points: torch.Tensor, k: int) -> IntArray:
        space = self.mechanism.space
        noise, uniforms = self.noise.draw(len(points), self.scan.device)
        points = noise.add_(points)
        near = self.scan.nearest(points, max(k, self.mechanism.candidates))
        ids, distances = near.ids.long(), near.costs.sqrt()
        left = near.undecided.nonzero()[:, 0]
        if len(left):
            exact = space.nearest_output.top(points[left].cpu().numpy(), ids.shape[1])
            for kept, decided in zip((ids, distances), exact, strict=True):
                kept[left] = self.scan.torch.from_numpy(decided).to(kept.device)
        arranged = self.mechanism.arranged(ids, distances, uniforms)[:, :k]
        placed: IntArray = arranged.cpu().numpy()
        return placed if self._everything else space.output.ids[placed]
