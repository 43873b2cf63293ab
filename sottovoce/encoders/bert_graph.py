"""BERT as an ONNX graph, from embedded tokens to the states of the last layer.

Dense maps run over all tokens of a batch at once. All texts of a batch have the same number of
tokens, so that nothing is padded and no mask is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.types import Float32Array

if TYPE_CHECKING:
    import onnxruntime
    from onnx import NodeProto, TensorProto

Weights = Mapping[str, Float32Array]

TOKENS, STATES = "tokens", "states"
"""Input: embedded tokens (texts, places, width); output: states of the same shape."""
_FUSED = "com.microsoft"
"""The domain of the operators that onnxruntime adds to the standard: attention in one piece."""


def bert_session(
    weights: Weights, layers: int, heads: int, epsilon: float
) -> onnxruntime.InferenceSession:
    """A session of one thread: batches run side by side on our own threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Not all fusions: a sum fused with its normalization takes longer than the two of them.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    model = bert_graph(weights, layers, heads, epsilon)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def bert_graph(weights: Weights, layers: int, heads: int, epsilon: float) -> bytes:
    """The model as a file of the format ONNX."""
    from onnx import TensorProto, helper

    graph = _Graph(weights, heads, epsilon)
    states = graph.normalized(TOKENS, "embeddings.LayerNorm")
    for number in range(layers):
        states = graph.layer(states, f"encoder.layer.{number}")
    graph.node("Identity", [states], STATES)
    width = len(weights["embeddings.LayerNorm.weight"])
    shape: list[str | int | None] = ["texts", "places", width]
    made = helper.make_graph(
        graph.nodes,
        "bert",
        [helper.make_tensor_value_info(TOKENS, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(STATES, TensorProto.FLOAT, shape)],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_FUSED, 1)]
    model: bytes = helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString()
    return model


class _Graph:
    """Nodes and constants; every method adds some and answers the name of what they compute."""

    def __init__(self, weights: Weights, heads: int, epsilon: float) -> None:
        self.weights, self.heads, self.epsilon = weights, heads, epsilon
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

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
        joined = self.node(
            "MatMul", [states, self.constant(f"{name}.joined.weight", weight.T)], f"{name}.product"
        )
        joined = self.node(
            "Add", [joined, self.constant(f"{name}.joined.bias", bias)], f"{name}.joined"
        )
        self.node("Split", [joined], *parts, axis=-1, num_outputs=len(parts))
        return self.node("MultiHeadAttention", parts, name, domain=_FUSED, num_heads=self.heads)

    def product(self, states: str, name: str) -> str:
        """A dense map without its bias."""
        weight = self.constant(f"{name}.turned", self.weights[f"{name}.weight"].T)
        return self.node("MatMul", [states, weight], name)

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
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(
        self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **settings: Any
    ) -> str:
        """An operator; answers the name of its first output."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **settings))
        return outputs[0]
