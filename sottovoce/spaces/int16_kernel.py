"""The compiled part of ``int16_scan.py``: products of 16-bit codes, and who comes near the best.

numba compiles it on this machine (extra ``fast``), once: the result is kept on disk. It runs
outside Python's lock, so that threads do not wait for each other. One instruction multiplies 16
pairs of codes (32 with AVX-512) and adds each two products: twice as many as of float32, and exact.
Where the processor can also add them to the sums (VNNI), LLVM makes one instruction of both.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_features = binding.get_host_cpu_features()
IS_WIDE = bool(_features.get("avx512bw"))
IS_SUPPORTED = IS_WIDE or bool(_features.get("avx2"))
"""Other processors do not multiply these codes faster than floats."""
if any(getattr(numba.config, name) for name in ("DISABLE_JIT", "CPU_NAME", "CPU_FEATURES")):
    IS_SUPPORTED = False  # What is compiled is not for the processor that was asked about.

LANES = 16 if IS_WIDE else 8
"""Words in a vector."""
VECTORS = 2
PANEL = VECTORS * LANES
"""Words that are multiplied at a time, ..."""
ROWS = 5
"""... with so many queries: as many sums as the registers hold."""
MULTIPLY_AND_ADD = "llvm.x86.avx512.pmaddw.d.512" if IS_WIDE else "llvm.x86.avx2.pmadd.wd"

PAIRS = ir.VectorType(ir.IntType(16), 2 * LANES)
SUMS = ir.VectorType(ir.IntType(32), LANES)
FLOATS = ir.VectorType(ir.FloatType(), LANES)


@intrinsic
def _tile_scores(context, words, queries, pairs, scales, half_norms, bars, scores):
    """Scores of a panel of words and ROWS queries; which queries' bars are reached, a bit each.

    Takes addresses: of packed codes, of the queries' scales, the words' half norms, the queries'
    bars, and of room for the scores. A score is scale * product - half norm.
    """

    def generate(_, builder, signature, arguments):
        words, queries, pairs, scales, half_norms, bars, scores = arguments
        size = pairs.type

        def vector_at(address, kind, place):
            pointer = builder.gep(builder.inttoptr(address, kind.as_pointer()), [place])
            return builder.load(pointer, align=2)

        def repeated(address, kind, place, vector):
            """One number in every lane."""
            number = vector_at(address, kind, place)
            undefined = ir.Constant(vector, ir.Undefined)
            first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return builder.shuffle_vector(first, undefined, everywhere)

        def number(value):
            return ir.Constant(size, value)

        multiply_and_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(SUMS, [PAIRS, PAIRS]), MULTIPLY_AND_ADD
        )
        # One round of the loop takes the next two codes of every word and query.
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("loop", "after"))
        builder.branch(loop)
        builder.position_at_end(loop)
        place = builder.phi(size)
        place.add_incoming(number(0), before)
        sums = [[builder.phi(SUMS) for _ in range(VECTORS)] for _ in range(ROWS)]
        next_place = builder.add(place, number(1))
        place.add_incoming(next_place, loop)
        first_word = builder.mul(place, number(VECTORS))
        first_query = builder.mul(place, number(ROWS))
        codes = [
            vector_at(words, PAIRS, builder.add(first_word, number(vector)))
            for vector in range(VECTORS)
        ]
        totals = []
        for row in range(ROWS):
            here = builder.add(first_query, number(row))
            query = builder.bitcast(repeated(queries, ir.IntType(32), here, SUMS), PAIRS)
            for vector in range(VECTORS):
                total = sums[row][vector]
                total.add_incoming(ir.Constant(SUMS, None), before)
                added = builder.add(total, builder.call(multiply_and_add, [codes[vector], query]))
                total.add_incoming(added, loop)
                totals.append(added)
        builder.cbranch(builder.icmp_signed("<", next_place, pairs), loop, after)
        # Sums to scores.
        builder.position_at_end(after)
        halves = [vector_at(half_norms, FLOATS, number(vector)) for vector in range(VECTORS)]
        target = builder.inttoptr(scores, FLOATS.as_pointer())
        reached = number(0)
        for row in range(ROWS):
            near = ir.Constant(ir.VectorType(ir.IntType(1), LANES), None)
            scale = repeated(scales, ir.FloatType(), number(row), FLOATS)
            bar = repeated(bars, ir.FloatType(), number(row), FLOATS)
            for vector in range(VECTORS):
                product = builder.sitofp(totals[row * VECTORS + vector], FLOATS)
                score = builder.fsub(builder.fmul(product, scale), halves[vector])
                pointer = builder.gep(target, [number(row * VECTORS + vector)])
                builder.store(score, pointer, align=4)
                near = builder.or_(near, builder.fcmp_ordered(">=", score, bar))
            bits = builder.bitcast(near, ir.IntType(LANES))
            is_near = builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
            reached = builder.or_(reached, builder.shl(builder.zext(is_near, size), number(row)))
        return reached

    return types.intp(*[types.intp] * 7), generate


@intrinsic
def _fetch(typing, address):
    """Bring the line of memory at an address into the cache, without waiting for it."""

    def generate(context, builder, signature, arguments):
        number = ir.IntType(32)
        byte = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte.type], ir.FunctionType(ir.VoidType(), [byte.type] + 3 * [number])
        )
        # To read, kept in the second level of the cache, data.
        builder.call(prefetch, [byte, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _compiled(function):
    """Compiled, and kept on disk where there is a folder to write to."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)


@_compiled
def _drop_left_behind(bars, rows, columns, scores, count):
    """Keep only the candidates that still reach the bars of their queries; how many they are."""
    kept = 0
    for i in range(count):
        if scores[i] >= bars[rows[i]]:
            rows[kept], columns[kept], scores[kept] = rows[i], columns[i], scores[i]
            kept += 1
    return kept


@_compiled
def race(words, half_norms, queries, scales, margins, best, bars, rows, columns, scores):
    """All pairs that come within the margin of the k-th best score of their query.

    words, queries
        Packed codes, (panels, pairs, PANEL, 2) and (groups, pairs, ROWS, 2).
    best, bars
        The k best scores of each query so far, ascending, and the least that is still of interest:
        both start at -inf, and the bars of padding at +inf.
    rows, columns, scores
        Room for candidates. Answers how many there are, or -1 if there is not enough room.
    """
    pairs, k, count = words.shape[1], best.shape[1], 0
    tile = np.empty((ROWS, PANEL), np.float32)
    lines = words.strides[0] // 64
    share = -(-lines // max(1, queries.shape[0]))
    for panel in range(words.shape[0]):
        word_codes = words.ctypes.data + panel * words.strides[0]
        halves = half_norms.ctypes.data + 4 * PANEL * panel
        for group in range(queries.shape[0]):
            first = group * ROWS
            # Meanwhile the next panel comes in, a share of it with each group; beyond the last one
            # nothing is read.
            for line in range(group * share, min((group + 1) * share, lines)):
                _fetch(word_codes + words.strides[0] + 64 * line)
            reached = _tile_scores(
                word_codes,
                queries.ctypes.data + group * queries.strides[0],
                pairs,
                scales.ctypes.data + 4 * first,
                halves,
                bars.ctypes.data + 4 * first,
                tile.ctypes.data,
            )
            if not reached:
                continue
            if count + ROWS * PANEL > len(rows):
                count = _drop_left_behind(bars, rows, columns, scores, count)
                if count > len(rows) // 2:
                    return -1
            for i in range(ROWS):
                if not reached >> i & 1:
                    continue
                row = first + i
                for j in range(PANEL):
                    score = tile[i, j]
                    if score < bars[row]:
                        continue
                    rows[count], columns[count], scores[count] = row, panel * PANEL + j, score
                    count += 1
                    if score <= best[row, 0]:
                        continue
                    # The worst of the k best leaves, those below this score move down to let it
                    # in, and the bar may rise.
                    place = 0
                    while place + 1 < k and best[row, place + 1] < score:
                        best[row, place] = best[row, place + 1]
                        place += 1
                    best[row, place] = score
                    bars[row] = best[row, 0] - margins[row]
    return _drop_left_behind(bars, rows, columns, scores, count)
