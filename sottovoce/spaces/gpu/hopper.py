"""``group_peaks`` for Hopper processors (H100, H200): queries stay where they are multiplied.

A block of threads keeps its queries in shared memory and streams the words past them, some chunks
of words ahead, so that the tensor cores hardly ever wait. Same arguments, same answer.
"""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

CHUNK = 64
"""Columns multiplied at a time: 128 bytes."""
STAGES = 4
WARPS = 8
SHARED_MEMORY = 227 * 1024 - 1024


@gluon.jit
def _multiply(q, w, scores, FIRST: gl.constexpr, WIDTH: gl.constexpr):
    """Begin to multiply one chunk; the chunk before it is done when this returns."""
    if WIDTH == 64:
        scores = warpgroup_mma(q, w.permute((1, 0)), scores, use_acc=not FIRST, is_async=True)
        scores = warpgroup_mma_wait(num_outstanding=1, deps=(scores,))
    elif WIDTH == 48:
        left, top = q.slice(0, 32, 1), w.slice(0, 32, 1).permute((1, 0))
        scores = warpgroup_mma(left, top, scores, use_acc=not FIRST, is_async=True)
        right, bottom = q.slice(32, 16, 1), w.slice(32, 16, 1).permute((1, 0))
        scores = warpgroup_mma(right, bottom, scores, use_acc=True, is_async=True)
        scores = warpgroup_mma_wait(num_outstanding=2, deps=(scores,))
    else:
        left, top = q.slice(0, WIDTH, 1), w.slice(0, WIDTH, 1).permute((1, 0))
        scores = warpgroup_mma(left, top, scores, use_acc=not FIRST, is_async=True)
        scores = warpgroup_mma_wait(num_outstanding=1, deps=(scores,))
    return warpgroup_mma_init(scores)


@gluon.jit
def group_peaks(
    queries,
    words,
    peaks,
    pitch,
    tiles,
    share,
    STEPS: gl.constexpr,
    CHUNKS: gl.constexpr,
    LAST_CHUNK: gl.constexpr,
    ROWS: gl.constexpr,
    TILE: gl.constexpr,
    STAGES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """The largest product of each query with the words of each group, (groups, queries)."""
    row = gl.program_id(0) * ROWS
    first = gl.program_id(1) * share
    last = gl.minimum(first + share, tiles)
    q = gl.allocate_shared_memory(gl.float16, [CHUNKS, ROWS, 64], queries.layout)
    w = gl.allocate_shared_memory(gl.float16, [STAGES, TILE, 64], words.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_ready, count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
    fence_async_shared()
    # All queries of this block, and the first chunks of words.
    mbarrier.expect(q_ready, CHUNKS * ROWS * 128)
    for i in gl.static_range(CHUNKS):
        tma.async_copy_global_to_shared(queries, [row, i * 64], q_ready, q.index(i))
    for i in gl.static_range(STAGES - 1):
        exists = first + i // CHUNKS < last
        mbarrier.expect(ready.index(i), TILE * 128, pred=exists)
        at = [(first + i // CHUNKS) * TILE, (i % CHUNKS) * 64]
        tma.async_copy_global_to_shared(words, at, ready.index(i), w.index(i), pred=exists)
    mbarrier.wait(q_ready, 0)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, TILE, 16])
    held: gl.constexpr = (
        gl.zeros([ROWS, TILE], gl.float32, layout).reshape([ROWS, TILE // 8, 4, 2]).type.layout
    )
    lane_layout: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(3, held))
    rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, lane_layout))
    lanes = gl.arange(0, 4, gl.SliceLayout(0, lane_layout))
    peak = gl.full([ROWS, 4], float("-inf"), gl.float32, lane_layout)
    running = warpgroup_mma_init(gl.zeros([ROWS, TILE], gl.float32, layout))
    stage = 0
    phase = 0
    for tile in range(first, last):
        for i in gl.static_range(CHUNKS):
            mbarrier.wait(ready.index(stage), phase)
            running = _multiply(
                q.index(i), w.index(stage), running, i == 0, 64 if i < CHUNKS - 1 else LAST_CHUNK
            )
            # The chunk before this one was read: its place takes the next that is missing.
            free = gl.where(stage == 0, STAGES - 1, stage - 1)
            ahead = tile + (i + STAGES - 1) // CHUNKS
            exists = ahead < last
            mbarrier.expect(ready.index(free), TILE * 128, pred=exists)
            at = [ahead * TILE, ((i + STAGES - 1) % CHUNKS) * 64]
            tma.async_copy_global_to_shared(
                words, at, ready.index(free), w.index(free), pred=exists
            )
            turns = stage == STAGES - 1
            phase = gl.where(turns, phase ^ 1, phase)
            stage = gl.where(turns, 0, stage + 1)
        scores = warpgroup_mma_wait(num_outstanding=0, deps=(running,))
        running = warpgroup_mma_init(scores)
        per_lane = gl.max(gl.max(scores.reshape([ROWS, TILE // 8, 4, 2]), axis=3), axis=1)
        peak = gl.maximum(peak, per_lane)
        group = (tile // STEPS * 4 + lanes).to(gl.int64)
        complete = (tile + 1) % STEPS == 0
        if complete:
            gl.store(peaks + group[None, :] * pitch + rows[:, None], peak)
            peak = gl.full([ROWS, 4], float("-inf"), gl.float32, lane_layout)
    mbarrier.invalidate(q_ready)
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(ready.index(i))


def rows_in_shared_memory(chunks: int, tile: int) -> int | None:
    """How many queries a block of threads can keep; None where even 128 are too large."""
    for rows in (256, 128):
        if 2 * CHUNK * (chunks * rows + STAGES * tile) <= SHARED_MEMORY:
            return rows
    return None


def descriptor(table: Any, rows: int) -> Any:
    """What the kernel reads chunks of this many rows by."""
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    return TensorDescriptor.from_tensor(table, [rows, CHUNK], layout)
