"""BERT encoders on onnxruntime: built from published weights, without torch."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.encoders.base import readable, shared_encoder
from sottovoce.encoders.bert_graph import BIAS, TOKENS, BertSession
from sottovoce.encoders.bert_names import (
    RELATIVE_BIAS,
    called_as_bert,
    distance_bias,
    place_vectors,
)
from sottovoce.encoders.file_hashes import remembered_hash
from sottovoce.encoders.tokenizer import TextTokenizer
from sottovoce.errors import SottovoceError
from sottovoce.threads import parallel_map
from sottovoce.types import BoolArray, Float32Array, IntArray

Pooling = Literal["mean", "cls"]

TOKENS_AT_A_TIME = 512
"""Tokens in a batch: their states then stay in the processor's cache."""


@dataclass(frozen=True)
class BertModel:
    """The files of a model, and what they do not say about it.

    pooling
        What of the last layer's states is the vector of a text: their mean, or the first one.
    most_tokens
        Longer texts are cut to so many tokens.
    first_place
        The row of the first token's place among the place vectors.
    lower_case
        Texts are put in lower case before the tokenizer has a say.
    settings_files
        The files that all this was read from.
    int8
        Dense maps are computed with 8-bit whole numbers.
    """

    weights: Path
    tokenizer: Path
    layers: int
    heads: int
    epsilon: float
    pooling: Pooling
    most_tokens: int
    first_place: int = 0
    lower_case: bool = False
    settings_files: tuple[Path, ...] = ()
    int8: bool = False


class BertEncoder:
    """Texts as the pooled states of a model's last layer.

    Only texts of equally many tokens share a batch: nothing is padded, and every number of a text
    comes from its own tokens by the same operations in the same order, whatever its batch. So
    batches change no bit of a vector; ``tests/test_encoders.py`` looks whether onnxruntime's
    kernels keep this.
    """

    exact_batches = True

    def __init__(self, name: str, model: BertModel) -> None:
        self.name, self._model = name, model
        weights = _read_weights(model.weights)
        try:
            self._words = weights["embeddings.word_embeddings.weight"]
            places = place_vectors(weights)
            self._session = BertSession(
                weights, model.layers, model.heads, model.epsilon, int8=model.int8
            )
        except KeyError:
            raise SottovoceError(
                f"{model.weights} does not hold the weights of a BERT model of {model.layers} "
                "layers: get the files of the model again"
            ) from None
        self._places = places[model.first_place :]
        self._distances = weights.get(RELATIVE_BIAS)
        most_tokens = min(model.most_tokens, len(self._places))
        self._tokenizer = TextTokenizer.open(model.tokenizer, most_tokens)
        self.dimension = self._words.shape[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, (type(self), self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension} dimensions)"

    @cached_property
    def fingerprint(self) -> str:
        model = self._model
        files = remembered_hash((model.weights, model.tokenizer, *model.settings_files))
        return hashlib.sha256(f"{files} int8".encode()).hexdigest() if model.int8 else files

    def encode(self, texts: Sequence[str]) -> Float32Array:
        return unit_rows(self.raw(texts))

    def raw(self, texts: Sequence[str]) -> Float32Array:
        """The vectors as the model gives them, of any length."""
        clean = self._read(texts)
        tokens = self._tokenizer.tokens(clean)
        rows = np.zeros((len(clean), self.dimension), dtype=np.float32)

        def encode(batch: list[int]) -> None:
            rows[batch] = self._pooled(np.array([tokens[place] for place in batch]))

        filled = [place for place, text in enumerate(clean) if text and tokens[place]]
        parallel_map(encode, _batches(filled, [len(ids) for ids in tokens]))
        return rows

    def knows(self, texts: Sequence[str]) -> BoolArray:
        return self._tokenizer.knows(self._read(texts))

    def _read(self, texts: Sequence[str]) -> list[str]:
        clean = readable(texts)
        return [text.lower() for text in clean] if self._model.lower_case else clean

    def _pooled(self, tokens: IntArray) -> Float32Array:
        """The vectors of texts of the same length, (texts, places), not yet of length 1."""
        embedded = self._words[tokens] + self._places[: tokens.shape[1]]
        inputs = {TOKENS: embedded}
        if self._distances is not None:
            inputs[BIAS] = distance_bias(self._distances, tokens.shape[1])
        states = self._session.states(inputs)
        pooled = states[:, 0] if self._model.pooling == "cls" else states.mean(axis=1)
        return np.asarray(pooled, dtype=np.float32)


def onnx_is_here() -> bool:
    """Whether the package is installed that BERT encoders need."""
    return importlib.util.find_spec("onnxruntime") is not None


def _read_weights(file: Path) -> dict[str, Float32Array]:
    """The weights as float32, under BERT's names; mapped where the file has them like that."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as opened:  # It checks that places and sizes agree.
            mapped = _mapped(file)
            names = [name for name in opened.keys() if name not in mapped]  # noqa: SIM118
            weights = mapped | {name: opened.get_tensor(name) for name in names}
    except (SafetensorError, KeyError, TypeError) as error:
        raise SottovoceError(
            f"{file} could not be read ({type(error).__name__}): get the files of the model again"
        ) from None
    named = called_as_bert(weights)
    return {name: array.astype(np.float32, copy=False) for name, array in named.items()}


def _mapped(file: Path) -> dict[str, Float32Array]:
    """The weights of a sound file that are float32, read when they are used."""
    data = np.memmap(file, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    described = json.loads(data[8:start].tobytes())
    described.pop("__metadata__", None)
    arrays = {}
    for name, about in described.items():
        first, end = (start + place for place in about["data_offsets"])
        if about["dtype"] == "F32" and sys.byteorder == "little" and first % 4 == 0:
            arrays[name] = np.asarray(data[first:end]).view(np.float32).reshape(about["shape"])
    return arrays


def _batches(places: list[int], lengths: list[int]) -> list[list[int]]:
    """Texts of equal lengths together, the longest first."""
    batches: list[list[int]] = []
    longest_first = sorted(places, key=lambda place: -lengths[place])
    for length, group in groupby(longest_first, key=lambda place: lengths[place]):
        same_length = list(group)
        size = max(1, TOKENS_AT_A_TIME // length)
        batches += [same_length[at : at + size] for at in range(0, len(same_length), size)]
    return batches
