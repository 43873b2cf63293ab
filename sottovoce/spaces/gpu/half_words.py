"""Words as 16-bit floats, in the order in which the kernels read them, and what that may cost.

Words w are scaled by a power of two and rounded, w' = s w = w^ + e; queries x' = r x = q + f
likewise. Then |x'.w' - q.w^| <= |x'| |e| + |f| |w^|, with every norm on the right known. The half
norm h of the Euclidean metric is written as a sum of three halves into columns of its own, so that
the product already subtracts it. The products are added in float32: ``accumulation`` bounds that.

Words are kept in groups. Of each group a kernel tells the largest score only, so each has bounds of
its own: a few words of enormous length widen no bound but those of their groups.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sottovoce.errors import need

if TYPE_CHECKING:
    import torch

TILE = 128
"""Words that a block of threads multiplies at a time."""
LANES = 4
"""Groups that a tile takes part in: the neighbouring threads that share a row of scores."""
PIECES, FINER = 3, 10
"""Columns of a half norm, each in units 2^10 times as fine as the one before: so the half norms of
words that are a million times as long as others do not coarsen those of the others."""
WORD_EXPONENT, HALF_NORM_EXPONENT, QUERY_EXPONENT = 12, 14, 10
"""The largest numbers are scaled to these powers of two: far from overflow (2^16), and with room
for numbers that are a million times smaller."""
AT_ONCE = 1 << 22
"""Numbers coded at a time; bounds the memory in float64."""
ROUNDED_UP = 1 + 2.0**-20
"""More than the rounding of a bound itself."""
DERIVED = 2.0**-22
"""Relative error of operands that were themselves computed in float32, such as unit vectors."""


def accumulation(columns: int) -> float:
    """The relative error of ``columns`` exact products added up in float32, whatever the order.

    Tensor cores add with 24 bits and cut off what is below: each addition loses at most 2^-22 of
    the sum of the absolute values (products of 16-bit floats are exact in float32).
    """
    return (columns + 8) * 2.0**-22


def steps_for(size: int) -> int:
    """Tiles that a group stretches over: larger groups for more words, so there are fewer."""
    return 1 if size < 1 << 17 else 2 if size < 1 << 19 else 4


def exponent_of(largest: float) -> int:
    """The e with 2^(e - 1) <= largest < 2^e; 0 for 0."""
    return math.frexp(largest)[1]


class HalfWords:
    """Rows of float32 on a device, also as halves with bounds; the last column may be -h."""

    def __init__(self, rows: torch.Tensor, folded: bool, steps: int | None = None) -> None:
        torch = need("torch", "gpu")
        self.folded, self.size = folded, len(rows)
        self.dimension = rows.shape[1] - folded
        self.steps = steps or steps_for(self.size)
        self.group = TILE // LANES * self.steps
        self.groups = -(-self.size // self.group)
        self.tiles = -(-self.groups // LANES) * self.steps
        columns = self.dimension + PIECES * folded
        self.width = -(-columns // 16) * 16
        self.accumulation = accumulation(self.width)
        device = rows.device
        self.table = torch.zeros((self.tiles * TILE, self.width), dtype=torch.half, device=device)
        self.bounds = torch.zeros((3, self.groups), dtype=torch.float32, device=device)
        """For each group the largest |e|, the largest |w^|, and the error of its half norms."""
        self._choose_scales(rows)
        step = max(1, AT_ONCE // (self.group * self.dimension)) * self.group
        for start in range(0, self.size, step):
            self._encode(rows, start, min(start + step, self.groups * self.group))

    def _choose_scales(self, rows: torch.Tensor) -> None:
        """Powers of two that bring the largest numbers where halves are at ease."""
        largest = half_norm = 0.0
        for start in range(0, self.size, AT_ONCE // self.dimension + 1):
            block = rows[start : start + AT_ONCE // self.dimension + 1, : self.dimension]
            largest = max(largest, float(block.abs().max()))
            half_norm = max(half_norm, float(block.double().square().sum(dim=1).max()) / 2)
        self.word_power = WORD_EXPONENT - exponent_of(largest)
        self.half_norm_power = HALF_NORM_EXPONENT - exponent_of(half_norm)
        self.weight_power = self.word_power - self.half_norm_power
        """The half norms count 2^this times the scale of the query."""

    def places(self, words: torch.Tensor) -> torch.Tensor:
        """Where words stand in the table, so that the columns of one lane are one group."""
        group, rank = words // self.group, words % self.group
        per_tile = TILE // LANES
        tile = group // LANES * self.steps + rank // per_tile
        rank = rank % per_tile
        # A thread holds two neighbouring scores of every eight.
        return tile * TILE + rank // 2 * (2 * LANES) + group % LANES * 2 + rank % 2

    def _encode(self, rows: torch.Tensor, start: int, end: int) -> None:
        """Code the words ``start`` to ``end``; the last group is filled up with its last word."""
        import torch

        words = torch.arange(start, end, device=rows.device)
        exact = rows[words.clamp(max=self.size - 1), : self.dimension].double()
        scaled = exact * 2.0**self.word_power
        halves = scaled.half()
        coded = torch.zeros((end - start, self.width), dtype=torch.half, device=rows.device)
        coded[:, : self.dimension] = halves
        lengths = halves.double().norm(dim=1)
        errors = (scaled - halves.double()).norm(dim=1) + DERIVED * scaled.norm(dim=1)
        half_norm_errors = torch.zeros_like(lengths)
        if self.folded:
            rest = exact.square().sum(dim=1) / 2 * 2.0**self.half_norm_power
            # What adding up loses, also in the sum above.
            half_norm_errors = (self.accumulation + 2.0**-40) * rest * (1 + 2.0**-10)
            for piece in range(PIECES):
                part = (rest * 2.0 ** (FINER * piece)).half()
                coded[:, self.dimension + piece] = -part
                rest = rest - part.double() * 2.0 ** (-FINER * piece)
            half_norm_errors += rest.abs()
        self.table[self.places(words)] = coded
        groups = slice(start // self.group, end // self.group)
        for bound, values in enumerate((errors, lengths, half_norm_errors)):
            largest = values.reshape(-1, self.group).amax(dim=1) * ROUNDED_UP
            self.bounds[bound, groups] = largest.float() * ROUNDED_UP
