"""Exact nearest neighbours: a fast scan that misses nothing, then an exact decision.

Every metric becomes "largest x.y - h": Euclidean with h = |w|^2 / 2, cosine with unit vectors.
A scan (``scan.py``) finds the few words that may be among the k best; those are scored again in
float64 from the original vectors. So the answer is exact, the same on every device, for every
batch size and number of threads, and ties go to the lowest id.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from sottovoce.arrays import row_norms
from sottovoce.devices import device as device_in_use
from sottovoce.errors import UsageError
from sottovoce.spaces.scan import (
    QUERIES,
    BlasScan,
    Candidates,
    Scan,
    TooManyCandidatesError,
    TorchScan,
)
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, FloatArray, IntArray

if TYPE_CHECKING:
    from sottovoce.spaces.gpu.fused_scan import FusedScan

Metric = Literal["euclidean", "cosine", "inner"]
METRICS: tuple[Metric, ...] = ("euclidean", "cosine", "inner")

FEW_QUERIES = 16
"""Fewer queries than this are not worth a thread of their own."""
DECIDED_AT_ONCE = 256
WARM_AFTER = 1 << 37
"""Products (three seconds of them) after which codes are made: that and loading their kernel takes
one or two seconds, which codes must save first."""
MANY_WINNERS = 256
"""For more neighbours than this codes do not pay: too many words come near."""
WORTH_CODING = 1 << 20
"""Smaller tables of vectors are not worth it."""


class Nearest:
    """Exact top-k search over a fixed set of vectors.

    ``top(queries, k)`` answers ids and values: Euclidean distances (ascending), or cosine
    similarities or inner products (descending). Memory is bounded by the block sizes.

    coded
        Whether 16-bit codes may be used. They are slower where a few columns are much larger than
        the others: then they tell hardly any words apart.
    """

    def __init__(
        self,
        vectors: FloatArray,
        metric: Metric = "euclidean",
        device: str = "auto",
        coded: bool = True,
    ) -> None:
        if metric not in METRICS:
            raise UsageError(f"unknown metric '{metric}': use one of {', '.join(METRICS)}")
        self.metric = metric
        self.vectors = np.asarray(vectors, dtype=np.float32)
        if self.vectors.ndim != 2 or not self.vectors.size:
            raise UsageError(f"need a table of vectors, got shape {self.vectors.shape}")
        self.scan = choose_scan(self._operand(), metric == "euclidean", device, coded)

    @classmethod
    def from_folded(cls, folded: Float32Array, device: str = "auto") -> Nearest:
        """Euclidean search on rows [w, -|w|^2 / 2], used as they are (they may be mapped)."""
        search = cls.__new__(cls)
        search.metric = "euclidean"
        search.vectors = folded[:, :-1]
        search.scan = choose_scan(folded, True, device)
        return search

    def _operand(self) -> Float32Array:
        """The rows that a scan multiplies queries with: the largest product is the nearest."""
        if self.metric == "inner":
            return self.vectors
        norms = row_norms(self.vectors)[:, None]
        if self.metric == "euclidean":
            return np.concatenate([self.vectors, -0.5 * norms**2], axis=1, dtype=np.float32)
        norms[norms == 0] = 1.0
        return np.asarray(self.vectors / norms, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
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

        fused = self.fused
        if fused is not None:
            step = fused.queries_at_once
            for start in range(0, len(points), step):
                answer(start)
        elif len(points):
            step = min(QUERIES, max(FEW_QUERIES, -(-len(points) // threads())))
            parallel_map(answer, range(0, len(points), step))
        return ids, values

    def warm_up(self) -> None:
        """Make now what many queries are answered with, and few are not worth."""
        if isinstance(self.scan, _WarmingScan):
            self.scan.warm_up()

    @property
    def fused(self) -> FusedScan | None:
        """The scan that can also decide on the device, where that is what searches."""
        return cast("FusedScan", self.scan) if hasattr(self.scan, "queries_at_once") else None

    def _block(self, points: Float32Array, k: int) -> tuple[IntArray, Float64Array]:
        """The answer for one block of queries; in two halves if too many words come near."""
        try:
            candidates = self.scan.candidates(points, k)
        except TooManyCandidatesError:
            half = len(points) // 2
            left, right = self._block(points[:half], k), self._block(points[half:], k)
            return np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]])
        return self.decide(points.astype(np.float64), candidates.rows, candidates.columns, k)

    def decide(
        self, points: Float64Array, rows: IntArray, columns: IntArray, k: int
    ) -> tuple[IntArray, Float64Array]:
        """The k best of some words for each point, by float64 scores, lowest id first on ties.

        Word ``columns[i]`` is one of those for point ``rows[i]``; each point has k or more.
        """
        costs = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(costs), DECIDED_AT_ONCE):
            part = slice(start, start + DECIDED_AT_ONCE)
            costs[part] = self._costs(points[rows[part]], columns[part])
        # Sorted by row, then cost, then id: the first k of each row are its answer.
        order = np.lexsort((columns, costs, rows))
        first = np.searchsorted(rows[order], np.arange(len(points)))
        best = order[first[:, None] + np.arange(k)]
        values = costs[best]
        return columns[best], np.sqrt(values) if self.metric == "euclidean" else -values

    def _costs(self, points: Float64Array, columns: IntArray) -> Float64Array:
        """What is least for the nearest: squared distances, negative cosines or products."""
        words = self.vectors[columns].astype(np.float64)
        if self.metric == "euclidean":
            words -= points
            words *= words
            return np.asarray(words.sum(axis=1))
        products = (points * words).sum(axis=1)
        if self.metric == "cosine":
            lengths = row_norms(points) * row_norms(words)
            products = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(-products)


class _WarmingScan:
    """Float32 for the first queries, then 16-bit codes, which take a moment to make.

    Both find the true neighbours, so answers do not depend on when it changes.
    """

    def __init__(self, operand: Float32Array, folded: bool) -> None:
        self.operand, self.folded = operand, folded
        self.first = BlasScan(operand, folded)
        self.work = 0
        """Products so far."""
        self._coding = Lock()
        self._coded: Scan | None = None

    @property
    def then(self) -> Scan:
        """The scan by codes, where it can be had; made once."""
        from sottovoce.spaces.int16_scan import Int16Scan, codable, kernel

        with self._coding:
            if self._coded is None:
                possible = codable(self.first.bound) and kernel() is not None
                self._coded = Int16Scan(self.operand, self.folded) if possible else self.first
            return self._coded

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        self.work += len(points) * self.operand.size
        codes_pay = self.work > WARM_AFTER and k <= MANY_WINNERS
        scan = self.then if codes_pay else self.first
        return scan.candidates(points, k)

    def warm_up(self) -> None:
        """Use codes from now on."""
        self.work += WARM_AFTER
        _ = self.then


def choose_scan(operand: Float32Array, folded: bool, device: str, coded: bool = True) -> Scan:
    """The scan by its name: ``blas``, ``int16``, ``torch:NAME``; or the best there is.

    ``cpu`` is the best without a GPU, ``cuda`` the best with one, ``auto`` that of the device in
    use (``devices.py``). 16-bit codes are taken without being named only where ``coded``.
    """
    if device == "auto":
        device = device_in_use()
    if device == "blas":
        return BlasScan(operand, folded)
    if device == "int16":
        from sottovoce.spaces.int16_scan import Int16Scan

        return Int16Scan(operand, folded)
    if device == "cuda":
        from sottovoce.spaces.gpu import fused_scan

        if fused_scan.usable(len(operand)):
            return fused_scan.FusedScan(operand, folded)
    if device != "cpu":
        return TorchScan(operand, folded, device.removeprefix("torch:"))
    in_floats = operand.size < WORTH_CODING or not coded
    return BlasScan(operand, folded) if in_floats else _WarmingScan(operand, folded)
