"""Fast, approximate scans that provably miss nothing: the first half of an exact search.

A scan computes scores in low precision, block by block, and keeps every word whose score comes
within the proven error of the k-th best. What it keeps, a few words a query, is decided exactly
by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import accumulated_error, row_norms
from sottovoce.errors import need
from sottovoce.types import Float32Array, IntArray

if TYPE_CHECKING:
    import torch

QUERIES = 512
"""Queries in a block; with WORDS it bounds the memory of a thread."""
WORDS = 4096
"""Words in a block, for large batches; small batches take more."""
SCORES = QUERIES * WORDS
LANES = 64
"""Words of a block are grouped by number modulo this; only groups with a good peak are read."""
MANY_CANDIDATES = 1 << 22
"""More than this (masses of ties) and a block of queries is split in two."""
SCORES_ON_DEVICE = 1 << 26
"""Scores held at a time on a GPU (256 MiB)."""
ROWS_SENT = 1 << 15
"""Rows that travel to a GPU at a time."""

SMALLEST_NORMAL = 2.0**-126


class TooManyCandidatesError(Exception):
    """A block of queries has more near-ties than memory should hold."""


@dataclass(frozen=True)
class Candidates:
    """Pairs (query row, word column) that may be among the k best, with their scan scores."""

    rows: IntArray
    columns: IntArray
    scores: Float32Array

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: NDArray[np.bool_]) -> Candidates:
        return Candidates(self.rows[kept], self.columns[kept], self.scores[kept])

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        return Candidates(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )


class Scan(Protocol):
    """What depends on the device and the precision."""

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        """All pairs that may be among the k largest ``point . word - half_norm`` of their row."""


def block_width(words: int, queries: int, least: int, scores: int) -> int:
    """How many of ``words`` to take at a time: whole lanes, ``least``, or more for few queries."""
    return min(max(least, scores // queries), words + LANES - 1) // LANES * LANES


class FloatBound:
    """The error of float32 products x.y - h with |y| and h bounded."""

    def __init__(self, operand: Float32Array, folded: bool) -> None:
        self.folded = folded
        self.length = operand.shape[1]
        largest = 0.0
        for start in range(0, len(operand), 1 << 14):
            block = operand[start : start + (1 << 14), : self.length - folded]
            largest = max(largest, float(np.einsum("ij,ij->i", block, block).max(initial=0.0)))
        # The largest norm, rounded up: the float32 sum above has its own rounding error.
        self.reach = np.sqrt(largest) * (1 + accumulated_error(self.length))

    def queries(self, points: Float32Array) -> Float32Array:
        """The points as they are multiplied."""
        if not self.folded:
            return points
        return np.concatenate([points, np.ones((len(points), 1), np.float32)], axis=1)

    def slack(self, points: Float32Array) -> Float32Array:
        """How far below the k-th best score a word may lie and still be among the k best."""
        size = row_norms(points) * self.reach + (self.reach**2 / 2 if self.folded else 0.0)
        # Both scores may be off by the error, hence twice; the rest covers the rounding of
        # "kth - slack" itself, and underflow.
        error = 2 * accumulated_error(self.length) + 2.0**-21
        return np.asarray(error * size + 2 * self.length * SMALLEST_NORMAL, dtype=np.float32)


class BlasScan:
    """The scan by float32 matrix products on the CPU; ``operand`` may hold -|w|^2 / 2 folded in."""

    def __init__(self, operand: Float32Array, folded: bool) -> None:
        self.operand = operand
        self.bound = FloatBound(operand, folded)

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        queries = np.ascontiguousarray(self.bound.queries(points).T)
        tracker = Tracker(k, self.bound.slack(points))
        width = block_width(len(self.operand), len(points), WORDS, SCORES)
        buffer = np.empty((width, len(points)), dtype=np.float32)
        for start in range(0, len(self.operand), width):
            block = self.operand[start : start + width]
            np.matmul(block, queries, out=buffer[: len(block)])
            tracker.see(buffer, start, len(block))
        return tracker.candidates()


class Tracker:
    """The running k-th best of each query, and the candidates that come near it."""

    def __init__(self, k: int, slack: Float32Array) -> None:
        self.k, self.slack = k, slack
        self.best = np.full((len(slack), k), -np.inf, dtype=np.float32)
        self.kth = self.best[:, 0].copy()
        self.kept: list[Candidates] = []
        self.pending = 0

    def candidates(self) -> Candidates:
        """The candidates that are still near the k-th best now."""
        kept = Candidates.join(self.kept)
        return kept.where(kept.scores >= (self.kth - self.slack)[kept.rows])

    def see(self, scores: Float32Array, start: int, count: int) -> None:
        """Take note of ``count`` words from ``start`` on; ``scores`` has room for whole lanes."""
        # Word i of the block lies in lane i % width, at depth i // width; the rest is padding.
        width = min(LANES, count)
        used = -(-count // width) * width
        scores[count:used] = -np.inf
        lanes = scores[:used].reshape(-1, width, scores.shape[1])
        # The best score of each lane raises the k-th best, and tells which lanes to read.
        peaks = np.maximum.reduce(lanes, axis=0)
        highest = np.maximum.reduce(peaks, axis=0)
        self._raise_kth(peaks, highest)
        floor = self.kth - self.slack
        near = np.flatnonzero(highest >= floor)
        if not len(near):
            return
        lane, place = np.nonzero(peaks[:, near] >= floor[near])
        row = near[place]
        # In those lanes, keep each word that comes near enough, and leave the padding out.
        members = lanes[:, lane, row]
        depth, pair = np.nonzero(members >= floor[row])
        columns = start + depth * width + lane[pair]
        real = columns < start + count
        self.kept.append(Candidates(row[pair], columns, members[depth, pair]).where(real))
        self.pending += len(self.kept[-1])
        # Too many: drop those that the k-th best has left behind since; if that is not enough,
        # the caller asks for fewer queries.
        if self.pending > MANY_CANDIDATES:
            self.kept = [self.candidates()]
            self.pending = len(self.kept[0])
            if self.pending > MANY_CANDIDATES // 2 and len(self.kth) > 1:
                raise TooManyCandidatesError

    def _raise_kth(self, peaks: Float32Array, highest: Float32Array) -> None:
        if self.k == 1:
            np.maximum(self.kth, highest, out=self.kth)
            return
        # The peaks of different lanes are different words: their k-th best is a lower bound.
        better = np.flatnonzero(highest > self.kth)
        together = np.concatenate([self.best[better], peaks.T[better]], axis=1)
        k_best = np.partition(together, together.shape[1] - self.k, axis=1)[:, -self.k :]
        self.best[better] = k_best
        self.kth[better] = k_best.min(axis=1)


# The scan on a GPU, through torch: same candidates, so the same answers as on the CPU.


def table_on(device: torch.device, operand: Float32Array) -> torch.Tensor:
    """The rows on a device, sent a block at a time: they may be mapped, and larger than memory."""
    import torch

    table = torch.empty(operand.shape, dtype=torch.float32, device=device)
    for start in range(0, len(operand), ROWS_SENT):
        block = np.array(operand[start : start + ROWS_SENT])
        table[start : start + ROWS_SENT] = torch.from_numpy(block).to(device)
    return table


class TorchScan:
    """Blocks of float32 products on ``device``; only candidates travel back."""

    def __init__(
        self,
        operand: Float32Array,
        folded: bool,
        device: str = "cuda",
        table: torch.Tensor | None = None,
    ) -> None:
        torch = need("torch", "gpu", f"device '{device}' needs torch", ", or use device 'cpu'")
        self.torch = torch
        self.device = torch.device(device)
        self.operand = table_on(self.device, operand) if table is None else table
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
