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
ROOM = 1 << 20
"""Candidates of a block of queries that there is room for."""
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
        norms, reach = row_norms(points), self.bound.reach
        sizes = norms * reach
        if sizes.max(initial=0.0) > LARGEST or (sizes[sizes > 0] < SMALLEST).any():
            return self.in_floats.candidates(points, k)
        exact = points.astype(np.float64)
        rates = np.where(norms > 0, norms, 1.0) / LENGTH
        whole = np.rint(exact / rates[:, None])
        coded = whole * rates[:, None]
        # The errors of the codes, of both scores that are compared; then those of float32.
        errors = row_norms(exact - coded) * reach + row_norms(coded) * self.error
        errors += 8 * UNIT_ROUNDOFF * (sizes + reach**2)
        margins = (1 + FUZZ) * (2 * errors + self.bound.slack(points))
        # All the words can be candidates of a single query.
        room = max(ROOM, 2 * len(self.half_norms) + self.kernel.PANEL * self.kernel.ROWS)
        rows, columns = np.empty((2, room), dtype=np.int32)
        scores = np.empty(room, dtype=np.float32)
        queries = _packed(whole, self.kernel.ROWS)
        padding = len(queries) * self.kernel.ROWS - len(points)
        count = self.kernel.race(
            self.codes,
            self.half_norms,
            queries,
            np.pad(rates * self.step, (0, padding)).astype(np.float32),
            np.pad(margins, (0, padding)).astype(np.float32),
            np.full((len(points) + padding, k), -np.inf, dtype=np.float32),
            np.repeat(np.array([-np.inf, np.inf], dtype=np.float32), [len(points), padding]),
            rows,
            columns,
            scores,
        )
        if count < 0:
            raise TooManyCandidatesError
        near = slice(0, count)
        return Candidates(rows[near].astype(np.int64), columns[near].astype(np.int64), scores[near])


def _packed(whole: Float64Array, together: int) -> NDArray[np.int16]:
    """Rows of codes so that the kernel reads them in order: (groups, pairs, ``together``, 2)."""
    groups, pairs = -(-len(whole) // together), -(-whole.shape[1] // 2)
    codes = np.zeros((groups * together, 2 * pairs), dtype=np.int16)
    codes[: len(whole), : whole.shape[1]] = whole
    in_order = codes.reshape(groups, together, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(in_order)
