"""BERT's layers as an ONNX graph, made from the weights alone: no torch, no exported file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.types import Float32Array

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

Weights = Mapping[str, Float32Array]

TOKENS, LENGTHS, STATES = "tokens", "lengths", "states"
"""Inputs: embedded tokens (texts, places, width) and how many of them are real; output: states."""

_FUSED = "com.microsoft"
"""The domain of the operators that onnxruntime adds to the standard: attention in one piece."""


def bert_graph(weights: Weights, layers: int, heads: int, epsilon: float) -> bytes:
    """A model from embedded tokens to the states of the last layer."""
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
        [
            helper.make_tensor_value_info(TOKENS, TensorProto.FLOAT, shape),
            helper.make_tensor_value_info(LENGTHS, TensorProto.INT32, ["texts"]),
        ],
        [helper.make_tensor_value_info(STATES, TensorProto.FLOAT, shape)],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_FUSED, 1)]
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
        seen = self.product(seen, f"{attention}.output.dense")
        states = self.added(seen, states, f"{attention}.output")
        inner = self.product(states, f"{name}.intermediate.dense")
        bias = self.weight(f"{name}.intermediate.dense.bias")
        inner = self.node("BiasGelu", [inner, bias], f"{name}.gelu", _FUSED)
        inner = self.product(inner, f"{name}.output.dense")
        return self.added(inner, states, f"{name}.output")

    def attention(self, states: str, name: str) -> str:
        """Query, key and value in one product, then the heads; padding is left out."""
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        joined = np.concatenate([self.weights[f"{part}.weight"] for part in parts]).T
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        inputs = [
            states,
            self.constant(f"{name}.joined.weight", joined),
            self.constant(f"{name}.joined.bias", bias),
            LENGTHS,
        ]
        return self.node("Attention", inputs, name, _FUSED, num_heads=self.heads)

    def product(self, states: str, name: str) -> str:
        """A dense map without its bias."""
        weight = self.constant(f"{name}.turned", self.weights[f"{name}.weight"].T)
        return self.node("MatMul", [states, weight], name)

    def added(self, new: str, states: str, name: str) -> str:
        """The sum of new states, their bias and the old ones, normalized."""
        inputs = [
            *(new, states),
            self.weight(f"{name}.LayerNorm.weight"),
            self.weight(f"{name}.LayerNorm.bias"),
            self.weight(f"{name}.dense.bias"),
        ]
        return self.node(
            "SkipLayerNormalization", inputs, f"{name}.added", _FUSED, epsilon=self.epsilon
        )

    def normalized(self, states: str, name: str) -> str:
        """The states with mean 0 and variance 1 at each place, scaled."""
        inputs = [states, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("LayerNormalization", inputs, name, epsilon=self.epsilon)

    def weight(self, name: str) -> str:
        """A constant that is one of the weights as it is."""
        return self.constant(name, self.weights[name])

    def constant(self, name: str, array: Float32Array) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(
        self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **settings: Any
    ) -> str:
        """An operator with one output; answers the name of that."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **settings))
        return output
