"""``separating_points.py`` on a GPU: the same steps, for many places together.

Points agree with the CPU's up to rounding, which is that of single precision on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sottovoce.types import Float32Array, IntArray

if TYPE_CHECKING:
    import torch

Place: TypeAlias = tuple[IntArray, IntArray, int, Float32Array]
"""What is known of a place: words, unsure, nearest, guess, as in ``separating_points.Shown``."""
SCORES_ON_GPU = 1 << 27
"""In a table there (0.5 GiB), of which a handful is held at a time."""


class SeparatingOnGpu:
    """Moves the points of some places, on a device.

    ``slopes`` and ``levels`` are the scores of all words as functions of x; the others are what
    ``SeparatingPoints`` makes of them.
    """

    def __init__(
        self,
        slopes: Float32Array,
        levels: Float32Array,
        widths: Float32Array,
        normals: Float32Array,
        step: Float32Array,
        device: str = "cuda",
    ) -> None:
        import torch

        self._torch, self._device = torch, device
        self._slopes, self._levels, self._widths, self._normals, self._step = (
            torch.from_numpy(np.ascontiguousarray(table, dtype=np.float32)).to(device)
            for table in (slopes, levels, widths, normals, step)
        )

    def of(self, places: Sequence[Place], steps: int) -> Float32Array:
        """The x of each place, (places, dimension)."""
        at_a_time = max(1, SCORES_ON_GPU // len(self._slopes))
        blocks = [places[at : at + at_a_time] for at in range(0, len(places), at_a_time)]
        matmul = self._torch.backends.cuda.matmul
        allowed, matmul.allow_tf32 = matmul.allow_tf32, False
        try:
            return np.concatenate([self._of_block(block, steps) for block in blocks])
        finally:
            matmul.allow_tf32 = allowed

    def _of_block(self, places: Sequence[Place], steps: int) -> Float32Array:
        words, unsure, nearest, guesses = zip(*places, strict=True)
        torch = self._torch
        first = torch.from_numpy(np.stack(guesses)).to(self._device)
        scores = first @ self._slopes.T - self._levels
        limits = (self._levels + self._thresholds(scores, nearest)) / self._widths
        # 1 for words shown, 0 for others; what may be either has no weight.
        targets, weights = torch.zeros_like(scores), torch.ones_like(scores)
        weights[self._entries(unsure)] = 0.0
        shown = self._entries(words)
        targets[shown] = weights[shown] = 1.0
        x = torch.cat([first, torch.zeros_like(first[:, :1])], dim=1)
        moved = torch.zeros_like(x)
        for step in range(steps):
            ahead = x + step / (step + 3) * moved
            residuals = (targets - torch.sigmoid(ahead @ self._normals.T - limits)) * weights
            after = ahead + (residuals @ self._normals - ahead) @ self._step
            x, moved = after, after - x
        return np.asarray(x[:, :-1].cpu().numpy())

    def _thresholds(self, scores: torch.Tensor, nearest: Sequence[int]) -> torch.Tensor:
        """What as many words reach as are shown in all, (places, 1)."""
        counts = np.clip(nearest, 1, scores.shape[1])
        ranked = scores.topk(int(counts.max()), dim=1).values
        last = self._torch.from_numpy(counts - 1).to(self._device)
        return ranked.gather(1, last[:, None])

    def _entries(self, words: Sequence[IntArray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and columns of a table that has a row for each place."""
        rows = np.repeat(np.arange(len(words)), [len(ids) for ids in words])
        both = (rows, np.concatenate(words).astype(np.int64))
        row, column = (self._torch.from_numpy(part).to(self._device) for part in both)
        return row, column
