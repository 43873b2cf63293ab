"""Any other SentenceTransformer model that is on this machine, by torch; never fetched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.encoders.base import readable, shared_encoder
from sottovoce.encoders.tokenizer import TextTokenizer
from sottovoce.errors import SottovoceError, UsageError, did_you_mean, need
from sottovoce.types import BoolArray, Float32Array

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NAMES = ("auto", "light", "strong", "strong-int8")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


class SentenceTransformerEncoder:
    """A model by its folder, or by its name in the local cache of its publisher."""

    exact_batches = False

    def __init__(self, model: str) -> None:
        self._model = _load(model)
        self.name = model
        self.dimension = self._vectors(["a"]).shape[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, (SentenceTransformerEncoder, self.name)

    def __repr__(self) -> str:
        return f"SentenceTransformerEncoder({self.dimension} dimensions)"

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, weights in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            digest.update(weights.detach().cpu().float().numpy().tobytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> Float32Array:
        return unit_rows(self.raw(texts))

    def raw(self, texts: Sequence[str]) -> Float32Array:
        """The vectors as the model gives them: of length 1 where it ends in such a module."""
        clean = readable(texts)
        rows = np.zeros((len(clean), self.dimension), dtype=np.float32)
        filled = [place for place, text in enumerate(clean) if text]
        if filled:
            rows[filled] = self._vectors([clean[place] for place in filled])
        return rows

    def knows(self, texts: Sequence[str]) -> BoolArray:
        return self._tokenizer.knows(readable(texts))

    @cached_property
    def _tokenizer(self) -> TextTokenizer:
        """The model's tokenizer, cut off from the model: it neither pads nor cuts."""
        from tokenizers import Tokenizer

        tokenizer = getattr(self._model, "tokenizer", None)
        tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not isinstance(tokenizer, Tokenizer):
            raise SottovoceError(
                "the tokenizer of this model does not say which words it knows: use a model that "
                "has a tokenizer.json"
            )
        return TextTokenizer(Tokenizer.from_str(tokenizer.to_str()))

    def _vectors(self, texts: list[str]) -> Float32Array:
        vectors = self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def _load(model: str) -> SentenceTransformer:
    folder = Path(model).expanduser()
    # Before the import: the package reads them once.
    os.environ.update(dict.fromkeys(OFFLINE, "1"))
    try:
        why = "other models of your own need an extra"
        need("sentence_transformers", "encoders", why, " (or use 'light' or 'strong')")
    except SottovoceError:
        if not folder.is_dir():
            raise _unknown(model) from None
        raise
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(folder) if folder.is_dir() else model, local_files_only=True)
    except Exception as error:
        if not folder.is_dir():
            raise _unknown(model) from None
        raise SottovoceError(
            f"the folder {folder} could not be read as a SentenceTransformer model "
            f"({type(error).__name__}): give the folder that holds its modules.json"
        ) from None


def _unknown(model: str) -> UsageError:
    hint = did_you_mean(model, NAMES)
    return UsageError(
        f"no such encoder on this machine{hint and f' ({hint})'}: use {', '.join(NAMES)} or the "
        "folder of a SentenceTransformer model"
    )
