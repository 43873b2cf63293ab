"""The exact search on a GPU, in a few kernels: no scores travel, and no table of them is kept.

Each query gets the largest 16-bit score of each group of words; by the proven bounds only a group
or two can hold the nearest words, and those are scored again in float64. What float64 cannot tell
apart, and queries near too many groups, go the way of ``TorchScan`` and the decision on the CPU:
so the ids are those of the CPU, always. Where kernels do not run everything goes that way.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.errors import need
from sottovoce.spaces.gpu.fallback import if_it_runs
from sottovoce.spaces.gpu.half_words import FINER, PIECES, TILE, HalfWords
from sottovoce.spaces.scan import Candidates, TorchScan, table_on
from sottovoce.types import Float32Array

if TYPE_CHECKING:
    import torch

FEWEST_WORDS = 4096
"""Smaller vocabularies are not worth the groups."""
MOST_NEIGHBOURS = 64
"""Of a query; for more there is ``TorchScan``."""
PEAKS_AT_ONCE = 1 << 28
"""Largest scores of groups held at a time (1 GiB)."""
ROWS = 256
"""Queries that a block of threads keeps; batches are padded to a multiple."""
PEAKS_IN_FLIGHT, NUMBERS_IN_FLIGHT = 2048, 1024
"""Largest scores that a block of threads compares at a time, and numbers that it subtracts."""
TELLS_APART = 2.0**-40
"""Costs in float64 that differ by less, relative to the lengths, are left to the CPU."""


def usable(words: int) -> bool:
    """Whether the kernels can be had, and are worth it for so many words."""
    if words < FEWEST_WORDS or importlib.util.find_spec("triton") is None:
        return False
    return importlib.util.find_spec("triton.tools.tensor_descriptor") is not None  # From 3.4 on.


@dataclass(frozen=True)
class Decided:
    """The nearest words on the device, (queries, k): ids, costs, and the rows left to the CPU."""

    ids: torch.Tensor
    costs: torch.Tensor
    undecided: torch.Tensor


@dataclass(frozen=True)
class _Near:
    """The groups near each row, the costs of their words, and the best of these."""

    room: int
    lists: torch.Tensor
    counts: torch.Tensor
    costs: torch.Tensor
    decided: Decided


class FusedScan:
    """Exact nearest words on ``device``; ``operand`` may hold -|w|^2 / 2 folded in."""

    def __init__(self, operand: Float32Array, folded: bool, device: str = "cuda") -> None:
        self.torch = need("torch", "gpu", f"device '{device}' needs torch", ", or use device 'cpu'")
        self.folded = folded
        self.operand = operand
        self.device = self.torch.device(device)
        self.table = table_on(self.device, operand)
        self.words = HalfWords(self.table, folded)
        self.dimension = self.words.dimension
        self._runs = self._hopper_runs = True
        """Whether kernels run here, as far as is known."""

    @cached_property
    def simple(self) -> TorchScan:
        """For what the kernels leave over; it uses the same table."""
        return TorchScan(self.operand, self.folded, str(self.device), self.table)

    @property
    def queries_at_once(self) -> int:
        """Queries in a block: as many as fill the processors, with bounded memory."""
        processors = _processors(self.device)
        most = max(1, PEAKS_AT_ONCE // self.words.groups // ROWS)
        return ROWS * max(1, processors // -(-processors // most))

    # The device decides

    def nearest(self, points: torch.Tensor, k: int) -> Decided:
        """The k nearest words of points on the device; needs a folded operand."""
        step = self.queries_at_once
        parts = [
            self._decided(points[start : start + step], k) for start in range(0, len(points), step)
        ]
        if len(parts) == 1:
            return parts[0]
        cat = self.torch.cat
        return Decided(
            cat([part.ids for part in parts]),
            cat([part.costs for part in parts]),
            cat([part.undecided for part in parts]),
        )

    def _decided(self, points: torch.Tensor, k: int) -> Decided:
        """What the kernels decide; nothing where they do not run."""
        near = self._near(points, k)
        if near is not None:
            return near.decided
        shape = (len(points), k)
        return Decided(
            self._new(shape, self.torch.int32).zero_(),
            self._new(shape, self.torch.float64).zero_(),
            self._new(shape[:1], self.torch.int8).fill_(1),
        )

    # The device finds candidates, the CPU decides

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        """All pairs that may be among the k best; the float64 scores tell most apart already."""
        if k > min(MOST_NEIGHBOURS, self.words.groups):
            return self.simple.candidates(points, k)
        on_device = self.torch.from_numpy(np.ascontiguousarray(points)).to(self.device)
        near = self._near(on_device, k)
        if near is None:
            return self.simple.candidates(points, k)
        kept = self._candidates(on_device, near, k)
        crowded = (near.counts[: len(points)] > near.room).cpu().numpy()
        if not crowded.any():
            return kept
        rows = np.flatnonzero(crowded)
        more = self.simple.candidates(points[rows], k)
        return Candidates.join([kept, Candidates(rows[more.rows], more.columns, more.scores)])

    def _candidates(self, points: torch.Tensor, near: _Near, k: int) -> Candidates:
        torch = self.torch
        group = self.words.group
        kth = near.decided.costs[:, k - 1]
        # What float64 is not sure of: more than its rounding by far.
        reach = self.words.bounds[1].max().double() * 2.0**-self.words.word_power
        doubt = TELLS_APART * (points.double().norm(dim=1) + reach).square()
        rows, places = (near.costs[: len(points)] <= (kth + doubt)[:, None]).nonzero(as_tuple=True)
        listed = places // group
        real = (listed < near.counts[rows]) & (near.counts[rows] <= near.room)
        rows, places, listed = rows[real], places[real], listed[real]
        columns = near.lists[rows, listed].long() * group + places % group
        scores = -near.costs[rows, places]
        return Candidates(
            rows.cpu().numpy(), columns.cpu().numpy(), scores.to(torch.float32).cpu().numpy()
        )

    # The kernels, one after the other

    def _near(self, points: torch.Tensor, k: int) -> _Near | None:
        """What is near each point; None from the first time on that the kernels fail."""
        near = None
        if self._runs:
            near = if_it_runs(
                partial(self._launched, points, k),
                "the fused search",
                "products in float32 find the same words",
            )
            self._runs = near is not None
        return near

    def _launched(self, points: torch.Tensor, k: int) -> _Near:
        from sottovoce.spaces.gpu import kernels

        torch, words = self.torch, self.words
        count = len(points)
        padded = -(-max(count, 1) // ROWS) * ROWS
        halves = self._new((padded, words.width), torch.half)
        facts = self._new((3, padded), torch.float32)
        kernels.code_queries[(padded,)](
            points,
            points.stride(0),
            halves,
            facts,
            padded,
            count,
            words.weight_power,
            words.accumulation,
            DIMENSION=words.dimension,
            PIECES=PIECES if self.folded else 0,
            FINER=FINER,
            WIDTH=words.width,
            BLOCK=_power_of_two(words.width),
            num_warps=1,
        )
        peaks = self._new((words.tiles // words.steps * 4, padded), torch.float32)
        self._peaks(halves, peaks)
        room = 8 if k == 1 else max(16, _power_of_two(2 * k))
        lists = self._new((padded, room), torch.int32)
        counts = self._new((padded,), torch.int32).zero_()
        slots = max(64, _power_of_two(4 * k))
        kernels.near_groups[(padded // (PEAKS_IN_FLIGHT // slots),)](
            peaks,
            padded,
            facts,
            words.bounds,
            lists,
            counts,
            words.groups,
            k,
            ROOM=room,
            SLOTS=slots,
            ROWS=PEAKS_IN_FLIGHT // slots,
        )
        costs = self._new((padded, room * words.group), torch.float64)
        kernels.group_costs[(count,)](
            points,
            points.stride(0),
            self.table,
            self.table.stride(0),
            lists,
            counts,
            costs,
            words.size,
            DIMENSION=words.dimension,
            EUCLIDEAN=self.folded,
            ROOM=room,
            GROUP=words.group,
            CHUNK=NUMBERS_IN_FLIGHT // words.group,
        )
        decided = Decided(
            self._new((count, k), torch.int32),
            self._new((count, k), torch.float64),
            self._new((count,), torch.int8),
        )
        kernels.pick[(count,)](
            costs,
            counts,
            lists,
            decided.ids,
            decided.costs,
            decided.undecided,
            k,
            TELLS_APART,
            ROOM=room,
            GROUP=words.group,
            BLOCK=room * words.group,
            num_warps=1 if room * words.group <= 1024 else 8,
        )
        return _Near(room, lists, counts, costs, decided)

    def _peaks(self, halves: torch.Tensor, peaks: torch.Tensor) -> None:
        """The largest score of each row in each group."""
        words = self.words
        chunks = -(-words.width // 64)
        hopper = _hopper(self.device) if self._hopper_runs else None
        rows = None if hopper is None else hopper.rows_in_shared_memory(chunks, TILE)
        if rows is not None:
            largest = if_it_runs(
                partial(self._hopper_peaks, hopper, halves, peaks, rows, chunks),
                "the kernel for Hopper",
                "a plainer one finds the same words",
            )
            self._hopper_runs = largest is not None
            if self._hopper_runs:
                return
        from sottovoce.spaces.gpu import kernels

        rows = 128
        grid, share = self._grid(len(halves) // rows)
        kernels.group_peaks[grid](
            kernels.descriptor(halves, rows, 64),
            kernels.descriptor(words.table, TILE, 64),
            peaks,
            peaks.stride(0),
            words.tiles,
            share,
            STEPS=words.steps,
            CHUNKS=chunks,
            ROWS=rows,
            TILE=TILE,
            CHUNK=64,
            num_warps=8,
            num_stages=3,
        )

    def _hopper_peaks(
        self, hopper: Any, halves: torch.Tensor, peaks: torch.Tensor, rows: int, chunks: int
    ) -> torch.Tensor:
        words = self.words
        grid, share = self._grid(len(halves) // rows)
        hopper.group_peaks[grid](
            hopper.descriptor(halves, rows),
            hopper.descriptor(words.table, TILE),
            peaks,
            peaks.stride(0),
            words.tiles,
            share,
            STEPS=words.steps,
            CHUNKS=chunks,
            LAST_CHUNK=words.width - 64 * (chunks - 1),
            ROWS=rows,
            TILE=TILE,
            STAGES=hopper.STAGES,
            num_warps=hopper.WARPS,
        )
        return peaks

    def _grid(self, blocks: int) -> tuple[tuple[int, int], int]:
        """Blocks of threads, and the tiles of words that each multiplies with its queries."""
        words = self.words
        # Where there are few queries, several blocks of threads share out the words.
        splits = min(max(1, _processors(self.device) // blocks), words.tiles // words.steps)
        return (blocks, splits), -(-words.tiles // words.steps // splits) * words.steps

    def _new(self, shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
        made: torch.Tensor = self.torch.empty(shape, dtype=kind, device=self.device)
        return made


@lru_cache(maxsize=8)
def _processors(device: torch.device) -> int:
    """The multiprocessors of a device; a few for the interpreter on a CPU."""
    import torch

    if device.type != "cuda":
        return 4
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@lru_cache(maxsize=8)
def _hopper(device: torch.device) -> Any:
    """The kernel for Hopper where that is what the device is, and this Triton can compile it."""
    import torch

    if device.type != "cuda" or torch.cuda.get_device_capability(device)[0] != 9:
        return None
    try:
        from sottovoce.spaces.gpu import hopper
    except (ImportError, AttributeError):  # Gluon is experimental, and its names change.
        return None
    return hopper


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
