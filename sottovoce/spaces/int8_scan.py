"""The scan in 8-bit integers: three times the arithmetic rate of float32, still missing nothing.

Words and queries are rounded to 8-bit codes, w = s w^ + e and q = r q^ + f, and the integer
products U = q^.w^ are exact. So |q.w - r s U| <= |f| |w| + |r q^| |e|, with every norm on the right
known: a bound as safe as that of float32, only wider. It leaves about ten candidates a query.

The half norm of the Euclidean metric is written in base 127 into a few more columns, and a
dimension with outliers is split over several, so that neither coarsens the step s for all.
The products are onnxruntime's (extra ``fast``): they are fast, and exact, on processors with 8-bit
dot products; a self-test decides, and without it the float32 scan is used.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import row_norms
from sottovoce.errors import SottovoceError
from sottovoce.spaces.scan import LANES, Candidates, FloatBound, block_width
from sottovoce.types import Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    import onnxruntime

TOP = 127
"""Largest code; words are stored as unsigned bytes around 128."""
WORDS = 2048
SCORES = 1 << 20
LOWEST = -(2**30)
FUZZ = 1e-9
"""Relative room for the rounding of the bounds themselves."""


@lru_cache(maxsize=1)
def integer_products() -> onnxruntime.InferenceSession | None:
    """A session that multiplies (words, codes) by (codes, queries), or None where it cannot."""
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnx") is None:
        return None
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["words", "queries", "zero"], ["scores"])],
        "products",
        [
            helper.make_tensor_value_info("words", TensorProto.UINT8, ["w", "c"]),
            helper.make_tensor_value_info("queries", TensorProto.INT8, ["c", "q"]),
        ],
        [helper.make_tensor_value_info("scores", TensorProto.INT32, ["w", "q"])],
        [numpy_helper.from_array(np.array(128, dtype=np.uint8), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session if _exact(session) else None


def _exact(session: onnxruntime.InferenceSession) -> bool:
    """Without 8-bit dot products some processors saturate at the extremes: try the extremes."""
    words = np.resize(np.array([255, 1, 255, 255, 1], dtype=np.uint8), (64, 80))
    queries = np.resize(np.array([127, 127, -127], dtype=np.int8), (80, 32))
    expected = (words.astype(np.int64) - 128) @ queries.astype(np.int64)
    scores = np.empty(expected.shape, dtype=np.int32)
    _multiply(session, words, queries, scores)
    return bool(np.array_equal(scores, expected))


def _multiply(
    session: onnxruntime.InferenceSession,
    words: NDArray[np.uint8],
    queries: NDArray[np.int8],
    out: NDArray[np.int32],
) -> None:
    """Exact integer products into ``out``, all three contiguous."""
    binding = session.io_binding()
    for name, array in (("words", words), ("queries", queries)):
        binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    binding.bind_output("scores", "cpu", 0, np.int32, out.shape, out.ctypes.data)
    session.run_with_iobinding(binding)


class Int8Scan:
    """Candidates by integer products; ``operand`` may hold -|w|^2 / 2 folded in."""

    def __init__(self, operand: Float32Array, folded: bool) -> None:
        session = integer_products()
        if session is None:
            raise SottovoceError(
                "the 8-bit scan needs onnxruntime and onnx (pip install 'sottovoce[fast]') and a "
                "processor with 8-bit dot products; use device 'blas'"
            )
        self.session, self.folded, self.size = session, folded, len(operand)
        self.operand, self.bound = operand, FloatBound(operand, folded)
        vectors = operand[:, :-1] if folded else operand
        self.reach = self.bound.reach
        if not self.reach:
            raise SottovoceError("vectors that are all zero cannot be coded; use device 'blas'")
        self.unit = self.reach / 2
        largest = np.maximum(vectors.max(axis=0), -vectors.min(axis=0))
        self._choose_step(largest.astype(np.float64))
        self._encode(vectors, -operand[:, -1] if folded else np.zeros(len(operand), np.float32))

    def _choose_step(self, largest: Float64Array) -> None:
        """The finest step that costs few columns for outliers and half norms.

        ``largest`` is the largest absolute value of each dimension. A dimension of which that
        exceeds ``limit`` takes several columns, its copies.
        """
        budget = max(6, len(largest) // 8)
        for limit in np.quantile(largest[largest > 0], np.linspace(0.3, 1, 15)):
            self.copies = np.maximum(1, np.ceil(largest / limit)).astype(np.int64)
            self.digits = int(np.ceil(self.reach / limit)) if self.folded else 0
            if self.copies.sum() - len(largest) + self.digits <= budget:
                break
        self.step = float(limit) / TOP
        self.source = np.repeat(np.arange(len(largest)), self.copies)

    def _encode(self, vectors: Float32Array, half_norms: Float32Array) -> None:
        """Codes of each word: its parts, its norm, the digits of its half norm."""
        # Rows are padded to whole lanes, columns to whole groups of four; 128 codes zero.
        split, width = len(self.source), len(self.source) + 1 + self.digits
        self.codes = np.full((-(-self.size // LANES) * LANES, -(-width // 4) * 4), 128, np.uint8)
        self.norm_unit = self.reach / TOP
        self.errors = self.half_errors = 0.0
        self.half_norm = float(half_norms.max())
        for start in range(0, self.size, 1 << 13):
            rows = slice(start, min(start + (1 << 13), self.size))
            exact = vectors[rows].astype(np.float64)
            # The parts, rounded to whole steps; |e| is the largest distance that this moves a word.
            whole = np.rint(exact / self.step)
            self.errors = max(self.errors, float(row_norms(exact - whole * self.step).max()))
            self.codes[rows, :split] = 128 + _split(whole[:, self.source], self.copies)
            # The norm, rounded up: it multiplies a query's own rounding error.
            self.codes[rows, split] = 128 + np.ceil(row_norms(exact) / self.norm_unit)
            if self.digits:
                # The half norm, in steps of step * unit, is subtracted: hence the sign.
                exact_halves = half_norms[rows].astype(np.float64)
                halves = np.rint(exact_halves / (self.step * self.unit))
                halves = np.minimum(halves, TOP * self.digits)
                missed = np.abs(exact_halves - halves * self.step * self.unit)
                self.half_errors = max(self.half_errors, float(missed.max()))
                spread = np.tile(halves[:, None], self.digits)
                self.codes[rows, split + 1 : width] = 128 - _split(spread, np.array([self.digits]))

    def candidates(self, points: Float32Array, k: int) -> Candidates:
        race = _Race(self, points, k)
        width = block_width(self.size, len(points), WORDS, SCORES)
        buffer = np.empty((width, len(points)), dtype=np.int32)
        for start in range(0, self.size, width):
            codes = self.codes[start : start + width]
            bounds = buffer[: len(codes)]
            _multiply(self.session, codes, race.codes, bounds)
            race.see(bounds, start, min(width, self.size - start))
        return race.candidates()


class _Race:
    """A block of queries against all words, block after block.

    The integer scores are upper bounds: true score <= scale * U + room. A word whose bound reaches
    the k-th best score so far is scored in float32 at once, which raises that bar for all
    that follow; so few words are ever scored.
    """

    def __init__(self, scan: Int8Scan, points: Float32Array, k: int) -> None:
        self.scan, self.k = scan, k
        self.queries = scan.bound.queries(points)
        self.doubt = scan.bound.slack(points).astype(np.float64)
        self._encode(points.astype(np.float64))
        self.best = np.full((len(points), k), -np.inf)
        self.bar = np.full(len(points), LOWEST, dtype=np.int32)
        self.scored: list[Candidates] = []

    def _encode(self, exact: Float64Array) -> None:
        """Codes of each query, and how far its integer scores can lie below the true ones."""
        scan = self.scan
        # The step r of each query: its largest part gets the largest code.
        rate = np.maximum(np.abs(exact).max(axis=1) / TOP, 1e-300)
        share = np.ones(len(exact))
        if scan.folded:
            # The half norm counts with weight unit / rate, which must be a whole number: where
            # the ratio is 1 or more, the rate is changed so that it is. ``share`` is what part of
            # the half norm the weight then stands for.
            ratio = np.minimum(scan.unit / rate, TOP)
            weight = np.where(ratio < 1, np.rint(ratio), np.floor(ratio))
            rate = np.where(ratio < 1, rate, scan.unit / np.maximum(weight, 1))
            share = weight * rate / scan.unit
        # The parts, rounded to whole steps; |f| is how far that moves the query.
        whole = np.rint(exact / rate[:, None])
        self.scale = rate * scan.step
        error = row_norms(exact - whole * rate[:, None])
        # |f| |w| enters by a column of its own, as far as a code can hold it.
        per_norm = np.minimum(np.ceil(error * scan.norm_unit / self.scale), TOP)
        beyond = np.maximum(error - per_norm * self.scale / scan.norm_unit, 0) * scan.reach
        # All other errors together: the rest of |f| |w|, |r q^| |e|, the rounding of the half
        # norms and what their share leaves out, and the doubt of float32 itself.
        self.room = (1 + FUZZ) * (
            beyond
            + row_norms(whole * rate[:, None]) * scan.errors
            + share * scan.half_errors
            + np.abs(1 - share) * scan.half_norm
        ) + self.doubt
        # Columns in the order of the words' codes: parts, norm, half norm.
        split, digits = len(scan.source), scan.digits
        self.codes = np.zeros((scan.codes.shape[1], len(exact)), dtype=np.int8)
        self.codes[:split] = whole.T[scan.source]
        self.codes[split] = per_norm
        if digits:
            self.codes[split + 1 : split + 1 + digits] = weight

    def see(self, bounds: NDArray[np.int32], start: int, count: int) -> None:
        """Take the upper bounds (words, queries) of the words from ``start`` on."""
        # Word i of the block lies in lane i % LANES; rows beyond ``count`` are padding.
        bounds[count:] = LOWEST
        lanes = bounds.reshape(-1, LANES, bounds.shape[1])
        peaks = np.maximum.reduce(lanes, axis=0)
        # The best of the block first: it raises the bar for the rest of the block.
        for _ in range(self.k if start == 0 else 1):
            row = np.flatnonzero(peaks.max(axis=0) >= self.bar)
            lane = peaks[:, row].argmax(axis=0)
            self._score(lanes, peaks, start, lane, row)
        # Then each lane whose peak reaches the bar, until no peak does.
        lane, row = np.nonzero(peaks >= self.bar)
        while len(row):
            self._score(lanes, peaks, start, lane, row)
            again = peaks[lane, row] >= self.bar[row]
            lane, row = lane[again], row[again]

    def _score(
        self,
        lanes: NDArray[np.int32],
        peaks: NDArray[np.int32],
        start: int,
        lane: IntArray,
        row: IntArray,
    ) -> None:
        """Score the peak of each of these lanes, and take it out of its lane."""
        # Lanes that are used up have nothing to score.
        real = peaks[lane, row] > LOWEST
        lane, row = lane[real], row[real]
        # Which word the peak is; without it, the lane has another peak.
        depth = lanes[:, lane, row].argmax(axis=0)
        columns = start + depth * LANES + lane
        lanes[depth, lane, row] = LOWEST
        peaks[lane, row] = lanes[:, lane, row].max(axis=0)
        # Its score in float32.
        values = np.einsum("ij,ij->i", self.queries[row], self.scan.operand[columns])
        self.scored.append(Candidates(row, columns, values))
        self._raise_bar(row, values)

    def _raise_bar(self, rows: IntArray, values: Float32Array) -> None:
        """Enter new scores among the k best of their queries, and raise the bars of these."""
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
        touched = rows[:1]
        # One score of each query at a time: it takes the place of the worst of the k best.
        while len(rows):
            first = np.concatenate([[True], rows[1:] != rows[:-1]])
            row, value = rows[first], values[first]
            touched = row if len(row) > len(touched) else touched
            worst = self.best[row].argmin(axis=1)
            self.best[row, worst] = np.maximum(self.best[row, worst], value)
            rows, values = rows[~first], values[~first]
        # The bar is the k-th best score as an integer score, rounded down by one step more.
        kth = self.best[touched].min(axis=1)
        steps = np.floor((kth - self.room[touched]) / self.scale[touched]) - 1
        self.bar[touched] = np.maximum(steps, LOWEST + 1)

    def candidates(self) -> Candidates:
        """The words that float32 cannot decide between."""
        scored = Candidates.join(self.scored)
        floor = self.best.min(axis=1) - self.doubt
        return scored.where(scored.scores >= floor[scored.rows])


def _split(whole: Float64Array, copies: IntArray) -> Float64Array:
    """Write each number, repeated ``copies`` times, as that many codes that add up to it."""
    place = np.concatenate([np.arange(count) for count in copies])
    return np.asarray(np.sign(whole) * np.clip(np.abs(whole) - TOP * place, 0, TOP))
