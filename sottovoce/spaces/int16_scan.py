"""The scan in 16-bit whole numbers: twice the arithmetic rate of float32, still missing nothing.

Words and queries are rounded to codes, w = s w^ + e and q = r q^ + f, and the products q^.w^ are
exact. So |q.w - r s q^.w^| <= |f| |w| + |r q^| |e|, with every norm on the right known: a bound as
safe as that of float32, and narrow enough to leave hardly more words than float32 does.

Steps are chosen so that no row of codes is longer than 2^15: then neither a code nor, by
Cauchy-Schwarz, any sum of products can overflow.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import UNIT_ROUNDOFF, row_norms
from sottovoce.errors import SottovoceError
from sottovoce.spaces.scan import BlasScan, Candidates, FloatBound, TooManyCandidatesError
from sottovoce.types import Float32Array, Float64Array

LENGTH = 32000.0
"""The longest row before it is rounded, which adds half a square root of the dimension."""
QUERIES = 160
"""Queries at a time: their codes stay in the processor's cache while all words pass by."""
ROOM = 1 << 20
"""Candidates of these queries that memory is reserved for."""
FUZZ = 1e-6
"""Relative room for the rounding of the bounds themselves."""
SMALLEST, LARGEST = 2.0**-80, 2.0**120
"""Scores of other sizes are left to the float32 scan."""


@lru_cache(maxsize=1)
def kernel() -> Any:
    """The compiled products, or None where they cannot be had."""
    if importlib.util.find_spec("numba") is None:
        return None
    from sottovoce.spaces import int16_kernel

    return int16_kernel if int16_kernel.IS_SUPPORTED else None


def codable(bound: FloatBound) -> bool:
    """Whether words of this length have codes."""
    return bool(SMALLEST < bound.reach**2 < LARGEST)


class Int16Scan:
    """Candidates by products of codes; ``operand`` may hold -|w|^2 / 2 folded in."""

    def __init__(self, operand: Float32Array, folded: bool) -> None:
        self.kernel = kernel()
        if self.kernel is None:
            raise SottovoceError(
                "the 16-bit scan needs numba (pip install 'sottovoce[fast]') and a processor with "
                "AVX2; use device 'blas'"
            )
        self.in_floats = BlasScan(operand, folded)
        self.bound = self.in_floats.bound
        if not codable(self.bound):
            raise SottovoceError("vectors of this length have no codes; use device 'blas'")
        self.size = len(operand)
        self.dimension = operand.shape[1] - folded
        self._encode(operand[:, : self.dimension])
        # Padding is infinitely far away.
        self.half_norms = np.full(len(self.codes) * self.kernel.PANEL, np.inf, dtype=np.float32)
        self.half_norms[: self.size] = -operand[:, -1] if folded else 0.0

    def _encode(self, vectors: Float32Array) -> None:
        """Codes of the words, a panel of them together; the largest error of one."""
        panel, pairs = self.kernel.PANEL, -(-self.dimension // 2)
        self.codes = np.zeros((-(-self.size // panel), pairs, panel, 2), dtype=np.int16)
        self.step = self.bound.reach / LENGTH
        self.error = 0.0
        for first in range(0, len(self.codes), 256):
            rows = vectors[first * panel : (first + 256) * panel].astype(np.float64)
            whole = np.rint(rows / self.step)
            self.error = max(self.error, float(row_norms(rows - whole * self.step).max()))
            packed = _packed(whole, panel)
            self.codes[first : first + len(packed)] = packed

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        sizes = row_norms(points) * self.bound.reach
        if sizes.max(initial=0.0) > LARGEST or (sizes[sizes > 0] < SMALLEST).any():
            return self.in_floats.candidates(points, k)
        # All the words can be candidates of a single query.
        room = max(ROOM, 2 * len(self.half_norms) + self.kernel.PANEL * self.kernel.ROWS)
        rows, columns = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        scores = np.empty(room, dtype=np.float32)
        parts = []
        for start in range(0, len(points), QUERIES):
            block = points[start : start + QUERIES]
            count = self._race(block, k, rows, columns, scores)
            if count < 0:
                raise TooManyCandidatesError
            near = slice(0, count)
            where = rows[near].astype(np.int64) + start
            parts.append(Candidates(where, columns[near].astype(np.int64), scores[near].copy()))
        return Candidates.join(parts)

    def _race(
        self,
        points: Float32Array,
        k: int,
        rows: NDArray[np.int32],
        columns: NDArray[np.int32],
        scores: Float32Array,
    ) -> int:
        """Enter the candidates of a block of queries; how many they are."""
        group = self.kernel.ROWS
        count = -(-len(points) // group) * group
        exact = points.astype(np.float64)
        norms = row_norms(points)
        rates = np.where(norms > 0, norms, 1.0) / LENGTH
        whole = np.rint(exact / rates[:, None])
        coded = whole * rates[:, None]
        # The errors of the codes, of both scores that are compared; then those of float32.
        reach = self.bound.reach
        errors = row_norms(exact - coded) * reach + row_norms(coded) * self.error
        errors += 8 * UNIT_ROUNDOFF * (norms * reach + reach**2)
        scales, margins = np.zeros((2, count), dtype=np.float32)
        scales[: len(points)] = rates * self.step
        margins[: len(points)] = (1 + FUZZ) * (2 * errors + self.bound.slack(points))
        best = np.full((count, k), -np.inf, dtype=np.float32)
        bars = np.full(count, np.inf, dtype=np.float32)
        bars[: len(points)] = -np.inf
        return int(
            self.kernel.race(
                self.codes,
                self.half_norms,
                _packed(whole, group),
                scales,
                margins,
                best,
                bars,
                rows,
                columns,
                scores,
            )
        )


def _packed(whole: Float64Array, together: int) -> NDArray[np.int16]:
    """Rows of codes so that the kernel reads them in order: (groups, pairs, ``together``, 2)."""
    groups, pairs = -(-len(whole) // together), -(-whole.shape[1] // 2)
    codes = np.zeros((groups * together, 2 * pairs), dtype=np.int16)
    codes[: len(whole), : whole.shape[1]] = whole
    in_order = codes.reshape(groups, together, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(in_order)
