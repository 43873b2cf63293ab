"""The scan on a GPU, through torch: same candidates, so the same answers as on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.errors import need
from sottovoce.spaces.scan import MANY_CANDIDATES, Candidates, FloatBound, TooManyCandidatesError
from sottovoce.types import Float32Array

if TYPE_CHECKING:
    import torch

SCORES_ON_DEVICE = 1 << 26
"""Scores held at a time on the device (256 MiB)."""


def gpu_present() -> bool:
    """Whether a CUDA device can be used; torch is imported only where a driver shows one."""
    if not Path("/dev/nvidiactl").exists() or importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


class TorchScan:
    """Blocks of float32 products on ``device``; only candidates travel back."""

    def __init__(self, operand: Float32Array, folded: bool, device: str = "cuda") -> None:
        torch = need("torch", "gpu", f"device '{device}' needs torch", ", or use device 'cpu'")
        self.torch = torch
        self.device = torch.device(device)
        self.operand = torch.from_numpy(np.array(operand)).to(self.device)
        self.bound = FloatBound(operand, folded)

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        torch = self.torch
        queries = torch.from_numpy(self.bound.queries(points)).to(self.device)
        room = torch.from_numpy(self.bound.slack(points)).to(self.device)
        best = torch.full((len(queries), k), -torch.inf, device=self.device)
        kept: list[Candidates] = []
        pending = 0
        width = max(k, SCORES_ON_DEVICE // max(1, len(queries)))
        for start in range(0, len(self.operand), width):
            scores = self._products(queries, self.operand[start : start + width])
            # The k best of this block and of all before it.
            block_best = scores.topk(min(k, scores.shape[1]), dim=1).values
            best = torch.cat([best, block_best], dim=1).topk(k, dim=1).values
            # Words of this block that come near the k-th best so far.
            near = scores >= (best[:, -1] - room)[:, None]
            rows, columns = near.nonzero(as_tuple=True)
            pending += len(rows)
            if pending > MANY_CANDIDATES and len(queries) > 1:
                raise TooManyCandidatesError
            kept.append(
                Candidates(
                    rows.cpu().numpy(),
                    (columns + start).cpu().numpy(),
                    scores[rows, columns].cpu().numpy(),
                )
            )
        # Of these, the words that come near the k-th best of all.
        floor = (best[:, -1] - room).cpu().numpy()
        together = Candidates.join(kept)
        return together.where(together.scores >= floor[together.rows])

    def _products(self, queries: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
        """Full float32 products: the error bound does not allow for TF32."""
        matmul = self.torch.backends.cuda.matmul
        allowed, matmul.allow_tf32 = matmul.allow_tf32, False
        try:
            return queries @ block.T
        finally:
            matmul.allow_tf32 = allowed
