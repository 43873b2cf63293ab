"""The kernels of the exact search on a GPU, in Triton; ``hopper.py`` has a faster one for Hopper.

1. ``code_queries``: points become halves, with what the bounds need to know of them.
2. ``group_peaks``: the largest score of each query in each group of words.
3. ``near_groups``: the groups that may hold one of the k best, by the bounds.
4. ``group_costs``: the exact costs of the words of these groups, in float64.
5. ``pick``: the k best of these, and whether float64 was sure of their order.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from sottovoce.spaces.gpu import half_words

QUERY_EXPONENT = tl.constexpr(half_words.QUERY_EXPONENT)
SLACK = tl.constexpr(2.0**-20)
"""Relative room for the rounding of the bounds and of the comparisons with them."""
UNCODED = tl.constexpr(-1.0)
"""In place of a query's length: its numbers do not fit into halves."""


@triton.jit
def code_queries(
    points,
    stride,
    halves,
    facts,
    padded,
    rows,
    weight_power,
    accumulation,
    DIMENSION: tl.constexpr,
    PIECES: tl.constexpr,
    FINER: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Scale a query by a power of two and round it; facts: |x'|, error per |w^|, weight of h."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    point = tl.load(
        points + row * stride + column, mask=(column < DIMENSION) & (row < rows), other=0.0
    )
    largest = tl.max(tl.abs(point), axis=0)
    power = QUERY_EXPONENT - ((largest.to(tl.int32, bitcast=True) >> 23) - 127)
    weight = 0.0
    fits = True
    if PIECES > 0:
        # The weights of the half norms must be powers of two that a half can hold, all of them.
        power = tl.minimum(power, 15 - weight_power)
        fits = (power + weight_power >= FINER * (PIECES - 1) - 24) & (power >= -126)
    power = tl.minimum(tl.maximum(power, -126), 127)
    shift = tl.minimum(tl.maximum(power + weight_power, FINER * (PIECES - 1) - 24), 15)
    if PIECES > 0:
        weight = ((shift + 127) << 23).to(tl.float32, bitcast=True)
    scaled = point * ((power + 127) << 23).to(tl.float32, bitcast=True)
    coded = scaled.to(tl.float16)
    rounded = coded.to(tl.float32)
    rest = scaled - rounded
    length = tl.sqrt(tl.sum(scaled * scaled, axis=0)) * (1 + SLACK * 256) + 1e-18
    error = tl.sqrt(tl.sum(rest * rest, axis=0)) * (1 + SLACK * 256) + 1e-18
    tl.store(facts + row, tl.where(fits, length, UNCODED))
    tl.store(facts + padded + row, error + accumulation * length * (1 + 2.0**-9))
    tl.store(facts + 2 * padded + row, weight)
    half_norms = (column >= DIMENSION) & (column < DIMENSION + PIECES)
    piece = tl.where(half_norms, column - DIMENSION, 0)
    weights = ((shift - FINER * piece + 127) << 23).to(tl.float32, bitcast=True)
    coded = tl.where(half_norms, weights.to(tl.float16), coded)
    tl.store(halves + row * WIDTH + column, coded, mask=column < WIDTH)


@triton.jit
def group_peaks(
    queries,
    words,
    peaks,
    pitch,
    tiles,
    share,
    STEPS: tl.constexpr,
    CHUNKS: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """The largest product of each query with the words of each group, (groups, queries)."""
    row = tl.program_id(0) * ROWS
    first = tl.program_id(1) * share
    last = tl.minimum(first + share, tiles)
    rows = row + tl.arange(0, ROWS)
    lanes = tl.arange(0, 4)
    peak = tl.full([ROWS, 4], float("-inf"), tl.float32)
    for tile in tl.range(first, last, flatten=True):
        scores = tl.zeros([ROWS, TILE], tl.float32)
        for chunk in range(CHUNKS):
            q = queries.load([row, chunk * CHUNK])
            w = words.load([tile * TILE, chunk * CHUNK])
            scores = tl.dot(q, w.T, scores)
        # Scores that one thread holds belong to one group: no thread needs its neighbour here.
        held = tl.reshape(scores, [ROWS, TILE // 8, 4, 2])
        peak = tl.maximum(peak, tl.max(tl.max(held, axis=3), axis=1))
        complete = (tile + 1) % STEPS == 0
        group = (tile // STEPS * 4 + lanes).to(tl.int64)
        at = peaks + group[None, :] * pitch + rows[:, None]
        tl.store(at, peak, mask=complete & (rows >= 0)[:, None])
        peak = tl.where(complete, float("-inf"), peak)


@triton.jit
def _doubt(bounds, pitch, group, present, length, error, weight):
    """How far scores of these groups may be off, (groups, rows)."""
    rounding = tl.load(bounds + group, mask=present, other=0.0)
    size = tl.load(bounds + pitch + group, mask=present, other=0.0)
    half_norm = tl.load(bounds + 2 * pitch + group, mask=present, other=0.0)
    return (
        rounding[:, None] * length[None, :]
        + size[:, None] * error[None, :]
        + half_norm[:, None] * weight[None, :]
    ) * (1 + SLACK)


@triton.jit
def near_groups(
    peaks,
    pitch,
    facts,
    bounds,
    lists,
    counts,
    groups,
    k,
    ROOM: tl.constexpr,
    SLOTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """List the groups that may hold one of the k best words of a row; counts begin at 0.

    A peak less its doubt is a score that some word of the group reaches. The k-th best of these
    over different groups is the bar: what cannot reach it is not among the k best.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    length = tl.load(facts + row)
    error = tl.load(facts + pitch + row)
    weight = tl.load(facts + 2 * pitch + row)
    slot = tl.arange(0, SLOTS)
    best = tl.full([SLOTS, ROWS], float("-inf"), tl.float32)
    for start in range(0, groups, SLOTS):
        group = start + slot
        present = group < groups
        at = peaks + group[:, None].to(tl.int64) * pitch + row[None, :]
        peak = tl.load(at, mask=present[:, None], other=float("-inf"))
        doubt = _doubt(bounds, groups, group, present, length, error, weight)
        best = tl.maximum(best, peak - doubt - SLACK * tl.abs(peak))
    for _ in range(k - 1):
        highest = tl.argmax(best, axis=0)
        best = tl.where(slot[:, None] == highest[None, :], float("-inf"), best)
    bar = tl.max(best, axis=0)
    for start in range(0, groups, SLOTS):
        group = start + slot
        present = group < groups
        at = peaks + group[:, None].to(tl.int64) * pitch + row[None, :]
        peak = tl.load(at, mask=present[:, None], other=float("-inf"))
        doubt = _doubt(bounds, groups, group, present, length, error, weight)
        reaches = peak + doubt + SLACK * tl.abs(peak) >= bar[None, :]
        near = (reaches | (length < 0)[None, :]) & present[:, None]
        place = tl.atomic_add(counts + row[None, :] + 0 * group[:, None], 1, mask=near)
        to = lists + row[None, :].to(tl.int64) * ROOM + place
        tl.store(to, group[:, None] + 0 * place, mask=near & (place < ROOM))


@triton.jit
def group_costs(
    points,
    stride,
    words,
    word_stride,
    lists,
    counts,
    costs,
    size,
    DIMENSION: tl.constexpr,
    EUCLIDEAN: tl.constexpr,
    ROOM: tl.constexpr,
    GROUP: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Squared distances, or negative products, of a point and the words of its groups."""
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(counts + row)
    rank = tl.arange(0, GROUP)
    for place in range(tl.where(count > ROOM, 0, count)):
        word = tl.load(lists + row * ROOM + place) * GROUP + rank
        present = word < size
        cost = tl.zeros([GROUP, CHUNK], tl.float64)
        for start in range(0, DIMENSION, CHUNK):
            column = start + tl.arange(0, CHUNK)
            inside = column < DIMENSION
            x = tl.load(points + row * stride + column, mask=inside, other=0.0).to(tl.float64)
            at = words + word[:, None].to(tl.int64) * word_stride + column[None, :]
            w = tl.load(at, mask=present[:, None] & inside[None, :], other=0.0).to(tl.float64)
            if EUCLIDEAN:
                apart = w - x[None, :]
                cost += apart * apart
            else:
                cost -= w * x[None, :]
        total = tl.where(present, tl.sum(cost, axis=1), float("inf"))
        tl.store(costs + (row * ROOM + place) * GROUP + rank, total)


@triton.jit
def pick(
    costs,
    counts,
    lists,
    ids,
    values,
    undecided,
    k,
    tolerance,
    ROOM: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The k least costs of a row with their words; undecided where two are too close to tell."""
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(counts + row)
    doubtful = count > ROOM
    place = tl.arange(0, BLOCK)
    written = place < tl.where(doubtful, 0, count * GROUP)
    cost = tl.load(costs + row * (ROOM * GROUP) + place, mask=written, other=float("inf"))
    before = tl.min(cost, axis=0)
    for rank in range(k + 1):
        least, at = tl.min(cost, axis=0, return_indices=True)
        taken = (rank < k) & (least < float("inf"))
        group = tl.load(lists + row * ROOM + at // GROUP, mask=taken, other=0)
        tl.store(ids + row * k + rank, group * GROUP + at % GROUP, mask=rank < k)
        tl.store(values + row * k + rank, least, mask=rank < k)
        doubtful = doubtful | ((rank < k) & (least == float("inf")))
        close = (least < float("inf")) & (least - before <= tolerance * least)
        doubtful = doubtful | ((rank > 0) & close)
        before = least
        cost = tl.where(place == at, float("inf"), cost)
    tl.store(undecided + row, doubtful.to(tl.int8))


def descriptor(table: Any, rows: int, columns: int) -> Any:
    """What a kernel reads blocks of (rows, columns) of a table by."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(table, [rows, columns])
