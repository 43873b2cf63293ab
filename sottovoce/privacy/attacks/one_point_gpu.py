"""``one_point.py`` on a GPU: all places of a block together, each with the same steps.

Points agree with the CPU's up to rounding, which is that of single precision on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.privacy.attacks.half_spaces import DAMPING, FLOOR, SAFE, SMALLEST, WORTH_DROPPING
from sottovoce.types import Float32Array, IntArray

if TYPE_CHECKING:
    import torch


class Edges(NamedTuple):
    """Half-spaces of each place, (places, words), and the factors that stand in for them."""

    words: torch.Tensor
    side: torch.Tensor
    """1 for words shown, -1 for rivals, 0 for padding."""
    widths: torch.Tensor
    shifts: torch.Tensor
    middle: torch.Tensor
    reach: torch.Tensor


class PointsOnGpu:
    """Where noisy points are believed to be, found on a device."""

    def __init__(
        self, slopes: Float32Array, levels: Float32Array, candidates: int, device: str = "cuda"
    ) -> None:
        """``slopes`` and ``levels`` as ``OnePoint`` has them; ``candidates`` of the mechanism."""
        import torch

        self._torch = torch
        self._slopes = torch.from_numpy(np.ascontiguousarray(slopes)).to(device)
        self._levels = torch.from_numpy(levels).to(device)
        self._candidates = candidates

    def settle(
        self,
        shown: Sequence[IntArray],
        guesses: Float32Array,
        rounds: Sequence[tuple[int, int]],
    ) -> Float32Array:
        """The x of each place, given the words shown there, from first guesses."""
        torch, device = self._torch, self._slopes.device
        most = max(map(len, shown), default=0)
        words = np.zeros((len(shown), most), dtype=np.int64)
        real = np.zeros((len(shown), most), dtype=np.float32)
        for row, ids in enumerate(shown):
            words[row, : len(ids)], real[row, : len(ids)] = ids, 1
        x = torch.from_numpy(guesses).to(device)
        seen, is_seen = torch.from_numpy(words).to(device), torch.from_numpy(real).to(device)
        matmul = torch.backends.cuda.matmul
        allowed, matmul.allow_tf32 = matmul.allow_tf32, False
        try:
            edges: Edges | None = None
            for rivals, sweeps in rounds:
                edges = self._edges(seen, is_seen, x, rivals, edges)
                x, edges = self._matched(edges, sweeps)
        finally:
            matmul.allow_tf32 = allowed
        return np.asarray(x.cpu().numpy())

    def _edges(
        self,
        seen: torch.Tensor,
        is_seen: torch.Tensor,
        x: torch.Tensor,
        rivals: int,
        before: Edges | None,
    ) -> Edges:
        """The words shown and the best ``rivals``, with factors carried over from before."""
        torch = self._torch
        scores = x @ self._slopes.T - self._levels
        # Of the words that are not shown, those with the highest scores; the first of them may be
        # what the mechanism could have shown (see ``OnePoint._rivals``).
        of_rivals = scores.clone()
        hidden = torch.full_like(is_seen, -torch.inf)
        hidden[is_seen == 0] = torch.inf  # amin leaves what padding points at.
        of_rivals.scatter_reduce_(1, seen, hidden, "amin")
        counts = is_seen.sum(dim=1, keepdim=True)
        unseen = (self._candidates - counts).clamp(min=0).long()
        most = min(rivals + int(unseen.max()), scores.shape[1])
        top, near = of_rivals.topk(most, dim=1)
        place = torch.arange(most, device=x.device)
        is_rival = (place >= unseen) & (place < unseen + rivals) & torch.isfinite(top)
        words = torch.cat([seen, near], dim=1)
        side = torch.cat([is_seen, -is_rival.to(x.dtype)], dim=1)
        widths = torch.full_like(side, float(FLOOR))
        shifts = torch.zeros_like(side)
        if before is None:
            of_shown = scores.gather(1, seen).where(is_seen > 0, torch.inf)
            any_shown = counts[:, 0] > 0
            least = (
                of_shown.amin(dim=1) if of_shown.shape[1] else torch.full_like(x[:, 0], torch.inf)
            )
            middle = least.where(any_shown, top.where(is_rival, torch.inf).amin(dim=1))
            squares = self._slopes.square().sum(dim=1)[words] * side.abs()
            reach = (squares.sum(dim=1) / side.abs().sum(dim=1)).sqrt()
            return Edges(words, side, widths, shifts, middle, reach)
        # Factors by word, to be found again by the words of this round.
        kept = before.side != 0
        spare = torch.zeros((len(x), scores.shape[1] + 1), device=x.device)
        at = before.words.where(kept, scores.shape[1])
        widths = spare.scatter(1, at, before.widths).gather(1, words).clamp(min=float(FLOOR))
        shifts = spare.scatter(1, at, before.shifts).gather(1, words)
        return Edges(words, side, widths, shifts, before.middle, before.reach)

    def _matched(self, edges: Edges, sweeps: int) -> tuple[torch.Tensor, Edges]:
        """Expectation propagation as ``half_spaces.cut_off`` does it, all places at once."""
        torch = self._torch
        normals = torch.cat(
            [
                self._slopes[edges.words],
                -edges.reach[:, None, None].expand(*edges.words.shape, 1),
            ],
            dim=2,
        )
        limits = (self._levels[edges.words] + edges.middle[:, None]) * edges.side
        side, widths, shifts = edges.side, edges.widths, edges.shifts
        normals *= side[:, :, None]
        for _ in range(sweeps):
            mean, lower = self._mean(normals, widths, shifts)
            half = torch.linalg.solve_triangular(lower, normals.mT.to(lower.dtype), upper=False)
            variances = half.square().sum(dim=1).double().where(side != 0, 1.0)
            along = (normals @ mean[:, :, None])[:, :, 0].double()
            inside, new_widths, new_shifts = self._moments(along, variances, widths, shifts, limits)
            widths = (widths + DAMPING * (new_widths - widths)).float()
            shifts = (shifts + DAMPING * (new_shifts - shifts)).float()
            # Half-spaces that x is safely inside of are dropped, once they are many.
            near = (inside < SAFE) & (side != 0)
            is_worth_it = near.sum(dim=1) < (1 - WORTH_DROPPING) * (side != 0).sum(dim=1)
            side = side.where(near | ~is_worth_it[:, None], 0.0)
            normals *= side.abs()[:, :, None]
            widths, shifts = widths.where(side != 0, FLOOR), shifts.where(side != 0, 0.0)
        mean, _ = self._mean(normals, widths, shifts)
        return mean[:, :-1], edges._replace(side=side, widths=widths, shifts=shifts)

    def _mean(
        self, normals: torch.Tensor, widths: torch.Tensor, shifts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean of x given the factors, and the lower Cholesky factors of its precisions."""
        torch = self._torch
        scaled = normals * widths.where(widths > FLOOR, 0.0).sqrt()[:, :, None]
        pull = normals.mT @ shifts[:, :, None]
        precision = scaled.mT @ scaled
        precision.diagonal(dim1=1, dim2=2).add_(1.0)
        lower, failed = torch.linalg.cholesky_ex(precision)
        if bool(failed.any()):  # Single precision loses factors beside much narrower ones.
            exact = scaled.double()
            precision = exact.mT @ exact
            precision.diagonal(dim1=1, dim2=2).add_(1.0)
            lower, pull = torch.linalg.cholesky(precision), pull.double()
        return torch.cholesky_solve(pull, lower)[:, :, 0].float(), lower

    def _moments(
        self,
        along: torch.Tensor,
        variances: torch.Tensor,
        widths: torch.Tensor,
        shifts: torch.Tensor,
        limits: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """How far inside x is, and the factors, as ``half_spaces._matched`` has them."""
        torch = self._torch
        rest = torch.maximum(1 / variances - widths, SMALLEST / variances)
        center = (along / variances - shifts) / rest
        deviation = rest.rsqrt()
        inside = (center - limits) / deviation
        hazard = np.sqrt(2 / np.pi) / torch.special.erfcx(-inside / np.sqrt(2))
        variance_left = (1 - hazard * (hazard + inside)).clamp(SMALLEST, 1.0)
        new_widths = (rest * (1 / variance_left - 1)).clamp(min=float(FLOOR))
        new_shifts = (center + deviation * hazard) * rest / variance_left - center * rest
        return inside, new_widths, new_shifts
