"""Exact nearest neighbours, blocked: a fast approximate scan, then an exact decision.

Every metric becomes "largest x.y": Euclidean by one more column (y = [w, -|w|^2 / 2],
x = [z, 1]), cosine by unit vectors. The scan computes x.y in low precision, block by block,
and keeps every candidate within twice the proven rounding error of the k-th best. Those few
are scored again in float64 from the original vectors. So the answer is exact, the same on
every device, for every batch size and number of threads, and ties go to the lowest id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, FloatArray, IntArray

Metric = Literal["euclidean", "cosine", "inner"]
METRICS: tuple[Metric, ...] = ("euclidean", "cosine", "inner")

ROWS = 1024
"""Queries in a block; with COLUMNS it bounds the memory of a thread."""
COLUMNS = 1024
"""Words in a block, for large batches; small batches take wider blocks."""
SCORES = ROWS * COLUMNS
MANY_CANDIDATES = 1 << 22
"""More than this (masses of ties) and a block of queries is split in two."""
FEW_ROWS = 16
"""Fewer queries than this are not worth a thread of their own."""

UNIT_ROUNDOFF = 2.0**-24
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

    def above(self, floor: Float32Array) -> Candidates:
        """Those whose score reaches the floor of their row."""
        good = self.scores >= floor[self.rows]
        return Candidates(self.rows[good], self.columns[good], self.scores[good])

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        """All pairs of several lists."""
        return Candidates(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )


class Scan(Protocol):
    """Finds candidates for blocks of queries; the only part that depends on the device."""

    relative_error: float
    """|computed - true x.y| <= relative_error * sum_i |x_i y_i|, proven, not measured."""

    def scan(self, queries: Float32Array, slack: Float32Array, k: int) -> Candidates:
        """Every pair whose score is within ``slack`` of its row's k-th best."""


def accumulated_error(length: int) -> float:
    """The classical bound n u / (1 - n u) of a float32 sum of ``length`` products, any order."""
    # A few more operations: rounding the operands that we derive (half norms, unit vectors).
    steps = length + 4
    return steps * UNIT_ROUNDOFF / (1 - steps * UNIT_ROUNDOFF)


class BlasScan:
    """The scan by float32 matrix products on the CPU."""

    def __init__(self, operand: Float32Array) -> None:
        self.operand = operand
        self.relative_error = accumulated_error(operand.shape[1])

    def scan(self, queries: Float32Array, slack: Float32Array, k: int) -> Candidates:
        """Scan all words for one block of queries."""
        tracker = _Tracker(len(queries), k, slack)
        width = max(COLUMNS, SCORES // max(1, len(queries)))
        buffer = np.empty((len(queries), min(width, len(self.operand))), dtype=np.float32)
        for start in range(0, len(self.operand), width):
            block = self.operand[start : start + width]
            scores = buffer[:, : len(block)]
            np.matmul(queries, block.T, out=scores)
            tracker.see(scores, start)
        return tracker.candidates()


class _Tracker:
    """Running k-th best of each row, and the candidates that come near it."""

    def __init__(self, rows: int, k: int, slack: Float32Array) -> None:
        self.k, self.slack = k, slack
        self.best = np.full((rows, k), -np.inf, dtype=np.float32)
        self.kth = np.full(rows, -np.inf, dtype=np.float32)
        self.found: list[Candidates] = []
        self.pending = 0

    def candidates(self) -> Candidates:
        """What is still near the k-th best now."""
        return Candidates.join(self.found).above(self.kth - self.slack)

    def see(self, scores: Float32Array, start: int) -> None:
        """Take note of the scores of the words from ``start`` on."""
        # argmax is several times faster than max along rows, and says the same.
        peak = np.take_along_axis(scores, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
        touched = np.flatnonzero(peak >= self.kth - self.slack)
        if not len(touched):
            return
        here = scores if len(touched) == len(scores) else scores[touched]
        if self.k == 1:
            self.kth[touched] = np.maximum(self.kth[touched], peak[touched])
        else:
            together = np.concatenate([self.best[touched], _largest(here, self.k)], axis=1)
            self.best[touched] = _largest(together, self.k)
            self.kth[touched] = self.best[touched].min(axis=1)
        near = here >= (self.kth[touched] - self.slack[touched])[:, None]
        rows, columns = np.nonzero(near)
        self.found.append(Candidates(touched[rows], columns + start, here[rows, columns]))
        self.pending += len(rows)
        if self.pending > MANY_CANDIDATES:
            self.found = [self.candidates()]
            self.pending = len(self.found[0])
            if self.pending > MANY_CANDIDATES // 2 and len(self.kth) > 1:
                raise TooManyCandidatesError


def _largest(scores: Float32Array, k: int) -> Float32Array:
    if scores.shape[1] <= k:
        return scores
    return np.partition(scores, scores.shape[1] - k, axis=1)[:, -k:]


class Nearest:
    """Exact top-k search over a fixed set of vectors.

    ``top(queries, k)`` answers ids and values: Euclidean distances (ascending), or cosine
    similarities or inner products (descending). Memory is bounded by the block sizes.
    """

    def __init__(
        self, vectors: FloatArray, metric: Metric = "euclidean", device: str = "auto"
    ) -> None:
        if metric not in METRICS:
            raise UsageError(f"unknown metric '{metric}': use one of {', '.join(METRICS)}")
        self.metric = metric
        self.vectors = np.asarray(vectors, dtype=np.float32)
        if self.vectors.ndim != 2 or not self.vectors.size:
            raise UsageError(f"need a table of vectors, got shape {self.vectors.shape}")
        self._prepare(self._operand(), device)

    @classmethod
    def from_folded(cls, folded: Float32Array, device: str = "auto") -> Nearest:
        """Euclidean search on rows [w, -|w|^2 / 2], used as they are (they may be mapped)."""
        search = cls.__new__(cls)
        search.metric = "euclidean"
        search.vectors = folded[:, :-1]
        search._prepare(folded, device)
        return search

    def _operand(self) -> Float32Array:
        if self.metric == "inner":
            return self.vectors
        exact = self.vectors.astype(np.float64)
        squares = (exact * exact).sum(axis=1)
        if self.metric == "euclidean":
            return np.concatenate([self.vectors, -0.5 * squares[:, None]], axis=1, dtype=np.float32)
        norms = np.sqrt(squares)
        norms[norms == 0] = 1.0
        return np.asarray(exact / norms[:, None], dtype=np.float32)

    def _prepare(self, operand: Float32Array, device: str) -> None:
        dimension = self.vectors.shape[1]
        squares = np.zeros(1)
        for start in range(0, len(operand), ROWS * 16):
            block = operand[start : start + ROWS * 16, :dimension]
            squares = np.maximum(squares, np.einsum("ij,ij->i", block, block).max(initial=0.0))
        # The largest norm, rounded up: the float32 sum above has its own rounding error.
        self._reach = float(np.sqrt(squares[0])) * (1 + accumulated_error(dimension))
        self._scan = choose_scan(operand, device)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def top(self, queries: FloatArray, k: int = 1) -> tuple[IntArray, Float64Array]:
        """Ids and values of the k nearest vectors of each query, each of shape (queries, k)."""
        points = np.ascontiguousarray(queries, dtype=np.float32)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise UsageError(f"queries must have shape (n, {self.dimension}), got {points.shape}")
        if not 1 <= k <= len(self):
            raise UsageError(f"k must be between 1 and the {len(self)} vectors, got {k}")
        if not np.isfinite(points).all():
            raise UsageError("queries must be finite")
        ids = np.empty((len(points), k), dtype=np.int64)
        values = np.empty((len(points), k), dtype=np.float64)

        def answer(start: int) -> None:
            block = slice(start, start + step)
            ids[block], values[block] = self._block(points[block], k)

        if len(points):
            step = min(ROWS, max(FEW_ROWS, -(-len(points) // threads())))
            parallel_map(answer, range(0, len(points), step))
        return ids, values

    def _block(self, points: Float32Array, k: int) -> tuple[IntArray, Float64Array]:
        exact = points.astype(np.float64)
        norms = np.sqrt((exact * exact).sum(axis=1))
        magnitude = norms * self._reach
        queries = points
        if self.metric == "euclidean":
            magnitude += self._reach**2 / 2
            queries = np.concatenate([points, np.ones((len(points), 1), np.float32)], axis=1)
        # Both the candidate and the k-th best may be off by the error: hence twice. The factor
        # covers the rounding of the slack itself and of "kth - slack".
        slack = (2.001 * self._scan.relative_error * magnitude).astype(np.float32)
        slack += np.float32(2.0**-22) * magnitude.astype(np.float32)
        slack += np.float32(2 * (self.dimension + 1) * SMALLEST_NORMAL)
        try:
            found = self._scan.scan(queries, slack, k)
        except TooManyCandidatesError:
            half = len(points) // 2
            parts = [self._block(part, k) for part in (points[:half], points[half:])]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return self._decide(exact, norms, found, k)

    def _decide(
        self, points: Float64Array, norms: Float64Array, found: Candidates, k: int
    ) -> tuple[IntArray, Float64Array]:
        """The k best candidates of each row by their float64 scores, lowest id first on ties."""
        costs = np.empty(len(found.rows), dtype=np.float64)
        for start in range(0, len(costs), 16 * ROWS):
            part = slice(start, start + 16 * ROWS)
            costs[part] = self._costs(points, norms, found.rows[part], found.columns[part])
        order = np.lexsort((found.columns, costs, found.rows))
        rows = found.rows[order]
        first = np.searchsorted(rows, np.arange(len(points)))
        chosen = order[first[:, None] + np.arange(k)]
        return found.columns[chosen], self._values(costs[chosen])

    def _costs(
        self, points: Float64Array, norms: Float64Array, rows: IntArray, columns: IntArray
    ) -> Float64Array:
        words = self.vectors[columns].astype(np.float64)
        if self.metric == "euclidean":
            return np.asarray(((points[rows] - words) ** 2).sum(axis=1))
        products = (points[rows] * words).sum(axis=1)
        if self.metric == "cosine":
            lengths = norms[rows] * np.sqrt((words * words).sum(axis=1))
            products = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(-products)

    def _values(self, costs: Float64Array) -> Float64Array:
        return np.sqrt(costs) if self.metric == "euclidean" else -costs


def choose_scan(operand: Float32Array, device: str) -> Scan:
    """The scan for ``cpu``, ``cuda``, ``torch:NAME``, or ``auto`` (a GPU where there is one)."""
    if device == "cpu":
        return BlasScan(operand)
    from sottovoce.spaces import torch_scan

    if device == "auto":
        return torch_scan.TorchScan(operand) if torch_scan.gpu_present() else BlasScan(operand)
    return torch_scan.TorchScan(operand, device.removeprefix("torch:"))
