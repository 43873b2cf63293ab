"""The light encoder: the mean of fixed token vectors, thousands of texts a second.

The vectors and the tokenizer are data files of the package wordllama. The package itself is not
imported: it would set up logging for the whole process and, by default, look for files online.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.encoders.base import readable, shared_encoder
from sottovoce.encoders.file_hashes import remembered_hash
from sottovoce.encoders.tokenizer import TextTokenizer
from sottovoce.errors import SottovoceError
from sottovoce.types import BoolArray, Float32Array

WORDS_REMEMBERED = 100_000
"""Words whose tokens are remembered: cutting words is most of the work, and words come again."""


class LightEncoder:
    """WordLlama's token vectors (256 dimensions), averaged over the tokens of a text."""

    name = "light"
    exact_batches = True

    def __init__(self) -> None:
        from safetensors.numpy import load_file

        folder = _folder()
        self._files = (
            folder / "weights" / "l2_supercat_256.safetensors",
            folder / "tokenizers" / "l2_supercat_tokenizer_config.json",
        )
        if not all(file.is_file() for file in self._files):
            raise SottovoceError(
                "the installed wordllama lacks the files of the light encoder: "
                "pip install --force-reinstall 'wordllama==0.4.0.post1'"
            )
        (vectors,) = load_file(self._files[0]).values()
        self._vectors: Float32Array = vectors.astype(np.float32)
        self._tokenizer = TextTokenizer.open(self._files[1])
        self._tokens: dict[str, list[int]] = {}
        self.dimension = self._vectors.shape[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, (LightEncoder,)

    def __repr__(self) -> str:
        return f"LightEncoder({self.dimension} dimensions)"

    @cached_property
    def fingerprint(self) -> str:
        return remembered_hash(self._files)

    def encode(self, texts: Sequence[str]) -> Float32Array:
        split = [text.split() for text in readable(texts)]
        tokens = self._tokens_of(dict.fromkeys(chain.from_iterable(split)))
        sums = np.zeros((len(split), self.dimension), dtype=np.float32)
        for row, words in zip(sums, split, strict=True):
            ids = list(chain.from_iterable([tokens[word] for word in words]))
            if ids:
                self._vectors.take(ids, axis=0).sum(axis=0, out=row)
        return unit_rows(sums)

    def knows(self, texts: Sequence[str]) -> BoolArray:
        return self._tokenizer.knows(readable(texts))

    def _tokens_of(self, words: Iterable[str]) -> dict[str, list[int]]:
        """A dict with the tokens of these words, among others; no token reaches over a blank."""
        if len(self._tokens) > WORDS_REMEMBERED:
            self._tokens = {}
        tokens = self._tokens
        new = [word for word in words if word not in tokens]
        tokens.update(zip(new, self._tokenizer.tokens(new, with_ends=False), strict=True))
        return tokens


def _folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SottovoceError("the light encoder needs the package wordllama: pip install wordllama")
    return Path(spec.origin).parent
