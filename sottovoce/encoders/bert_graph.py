"""BERT as an ONNX graph, from embedded tokens to the states of the last layer.

Dense maps run over all tokens of a batch at once. All texts of a batch have the same number of
tokens, so that nothing is padded and no mask is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.encoders.bert_names import RELATIVE_BIAS
from sottovoce.encoders.onnx_file import FLOAT, UINT8, OnnxFile
from sottovoce.types import Float32Array

Weights = Mapping[str, Float32Array]

TOKENS, STATES = "tokens", "states"
"""Input: embedded tokens (texts, places, width); output: states of the same shape."""
BIAS = "bias"
"""Input of models that have one: what two places add to attention, (1, heads, places, places)."""
_FUSED = "com.microsoft"
"""The domain of the operators that onnxruntime adds to the standard: attention in one piece."""

_STATE_STEPS, _MIDDLE = 127, 128
"""States become whole numbers from 1 to 255, 128 for zero."""
_WEIGHT_STEPS = 63
"""Weights become whole numbers of 7 bits: older processors add two products in 16 bits."""
_LAST_AXIS, _PER_STEP, _MIDDLE_AND_HALF, _ZERO_POINT = "axis", "per_step", "half", "zero"


class BertSession:
    """A session of one thread: batches run side by side on our own threads.

    ``int8``: dense maps are products of whole numbers; quicker, and not quite the same.
    """

    def __init__(
        self, weights: Weights, layers: int, heads: int, epsilon: float, *, int8: bool = False
    ) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Not all fusions: a sum fused with its normalization takes longer than the two of them.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        kind = _Int8Graph if int8 else _Graph
        model, arrays = bert_graph(kind, weights, layers, heads, epsilon)
        # The session reads the arrays where they are: they must not go before it does.
        self._arrays = arrays
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
        options.add_external_initializers(list(arrays), values)
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def states(self, inputs: dict[str, Float32Array]) -> Float32Array:
        """The states of the last layer, (texts, places, width)."""
        (states,) = self._session.run([STATES], inputs)
        return np.asarray(states, dtype=np.float32)


def bert_graph(
    kind: type[_Graph], weights: Weights, layers: int, heads: int, epsilon: float
) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """The model as a file of the format ONNX, and the arrays that it names."""
    graph = kind(weights, heads, epsilon)
    states = graph.normalized(TOKENS, "embeddings.LayerNorm")
    for number in range(layers):
        states = graph.layer(states, f"encoder.layer.{number}")
    graph.node("Identity", [states], STATES)
    shape = ("texts", "places", len(weights["embeddings.LayerNorm.weight"]))
    inputs: dict[str, Sequence[str | int]] = {TOKENS: shape}
    if graph.has_bias:
        inputs[BIAS] = (1, heads, "places", "places")
    return graph.file.finished(inputs, {STATES: shape}, {"": 18, _FUSED: 1}), graph.file.arrays


class _Graph:
    """Nodes and constants; every method adds some and answers the name of what they compute."""

    def __init__(self, weights: Weights, heads: int, epsilon: float) -> None:
        self.weights, self.heads, self.epsilon = weights, heads, epsilon
        self.has_bias = RELATIVE_BIAS in weights
        self.file = OnnxFile()

    def layer(self, states: str, name: str) -> str:
        """One layer: attention, then two dense maps, each added to what it started from."""
        attention = f"{name}.attention"
        seen = self.attention(states, f"{attention}.self")
        states = self.added(seen, states, f"{attention}.output")
        inner = self.product(states, f"{name}.intermediate.dense")
        bias = self.weight(f"{name}.intermediate.dense.bias")
        inner = self.node("BiasGelu", [inner, bias], f"{name}.gelu", domain=_FUSED)
        return self.added(inner, states, f"{name}.output")

    def attention(self, states: str, name: str) -> str:
        """Query, key and value in one product, then the heads."""
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self.weights[f"{part}.weight"] for part in parts])
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        joined = self.times(states, weight.T, f"{name}.product")
        joined = self.node(
            "Add", [joined, self.constant(f"{name}.joined.bias", bias)], f"{name}.joined"
        )
        self.node("Split", [joined], *parts, axis=-1, num_outputs=len(parts))
        # In between, the operator takes a second bias, and masks.
        inputs = [*parts, "", "", BIAS] if self.has_bias else parts
        return self.node("MultiHeadAttention", inputs, name, domain=_FUSED, num_heads=self.heads)

    def product(self, states: str, name: str) -> str:
        """A dense map without its bias."""
        return self.times(states, self.weights[f"{name}.weight"].T, name)

    def times(self, states: str, matrix: Float32Array, name: str) -> str:
        """The product of states and a matrix."""
        return self.node("MatMul", [states, self.constant(f"{name}.matrix", matrix)], name)

    def added(self, new: str, states: str, name: str) -> str:
        """The dense map of new states added to the old ones, normalized."""
        new = self.product(new, f"{name}.dense")
        new = self.node("Add", [new, self.weight(f"{name}.dense.bias")], f"{name}.new")
        both = self.node("Add", [new, states], f"{name}.both")
        return self.normalized(both, f"{name}.LayerNorm")

    def normalized(self, states: str, name: str) -> str:
        """The states with mean 0 and variance 1 at each place, scaled."""
        inputs = [states, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("LayerNormalization", inputs, name, epsilon=self.epsilon)

    def weight(self, name: str) -> str:
        """A constant that is one of the weights as it is."""
        return self.constant(name, self.weights[name])

    def constant(self, name: str, array: NDArray[Any]) -> str:
        return self.file.constant(name, array)

    def node(
        self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **settings: Any
    ) -> str:
        """An operator; answers the name of its first output."""
        self.file.node(kind, inputs, outputs, domain, **settings)
        return outputs[0]


class _Int8Graph(_Graph):
    """Dense maps as products of whole numbers, with a scale for each place and each column.

    A place's scale comes from its own states alone, and sums of whole numbers have no rounding: so
    batches change no bit here, either.
    """

    def __init__(self, weights: Weights, heads: int, epsilon: float) -> None:
        super().__init__(weights, heads, epsilon)
        self.constant(_LAST_AXIS, np.array([-1]))
        self.constant(_PER_STEP, np.array(1 / _STATE_STEPS, np.float32))
        # Converting to a whole number cuts the fraction off: a half more rounds it.
        self.constant(_MIDDLE_AND_HALF, np.array(_MIDDLE + 0.5, np.float32))
        self.constant(_ZERO_POINT, np.array(_MIDDLE, np.uint8))

    def times(self, states: str, matrix: Float32Array, name: str) -> str:
        steps = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float32).tiny) / _WEIGHT_STEPS
        whole = self.constant(f"{name}.whole", np.rint(matrix / steps).astype(np.int8))

        size = self.node("Abs", [states], f"{name}.size")
        largest = self.node("ReduceMax", [size, _LAST_AXIS], f"{name}.largest", keepdims=1)
        step = self.node("Mul", [largest, _PER_STEP], f"{name}.step")
        scaled = self.node("Div", [states, step], f"{name}.scaled")
        shifted = self.node("Add", [scaled, _MIDDLE_AND_HALF], f"{name}.shifted")
        rounded = self.node("Cast", [shifted], f"{name}.rounded", to=UINT8)

        product = self.node("MatMulInteger", [rounded, whole, _ZERO_POINT], f"{name}.integer")
        product = self.node("Cast", [product], f"{name}.float", to=FLOAT)
        product = self.node("Mul", [product, step], f"{name}.by_place")
        return self.node("Mul", [product, self.constant(f"{name}.steps", steps)], name)
