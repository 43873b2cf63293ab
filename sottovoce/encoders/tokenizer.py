"""Texts as the tokens of a model, and which texts its tokenizer can read at all."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from sottovoce.errors import SottovoceError, need
from sottovoce.types import BoolArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD_START = "▁"
"""What tokenizers of the SentencePiece kind put before a word; alone it stands for nothing."""
RAW_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
"""The tokens of a model that reads characters it does not know byte by byte."""


class TextTokenizer:
    """A published tokenizer, which also decides about upper and lower case.

    most_tokens
        Longer texts are cut to so many tokens, those at their ends included; None: never.
    """

    def __init__(self, tokenizer: Tokenizer, most_tokens: int | None = None) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if most_tokens is not None:
            tokenizer.enable_truncation(most_tokens)

    @classmethod
    def open(cls, file: Path, most_tokens: int | None = None) -> Self:
        """Read a ``tokenizer.json``."""
        # Its own threads gain nothing on short texts, and make it complain after a fork.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        need("tokenizers", None, "encoders need the package tokenizers")
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(file)), most_tokens)
        except Exception:  # The package raises nothing more special.
            raise SottovoceError(
                f"{file} is not a tokenizer that the installed package tokenizers can read: get "
                "the files of the model again, or a newer tokenizers"
            ) from None

    def tokens(self, texts: Sequence[str], *, with_ends: bool = True) -> list[list[int]]:
        """The token ids of texts; with those that a model wants at their ends, unless not asked."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=with_ends)
        return [encoding.ids for encoding in encodings]

    def knows(self, texts: Sequence[str]) -> BoolArray:
        """False where a text has no token, or one that stands for unknown characters."""
        unknown, empty = self._unknown, self._empty
        rows = self.tokens(texts, with_ends=False)
        return np.array(
            [unknown.isdisjoint(row) and not empty.issuperset(row) for row in rows], dtype=np.bool_
        )

    @cached_property
    def _unknown(self) -> frozenset[int]:
        """The tokens of characters that the tokenizer does not know: "unknown", and raw bytes."""
        model = json.loads(self._tokenizer.to_str())["model"]
        name = model.get("unk_token")
        # Tokenizers of the kind Unigram have a number in place of a name.
        number = model.get("unk_id") if name is None else self._tokenizer.token_to_id(name)
        raw_bytes = (
            map(self._tokenizer.token_to_id, RAW_BYTES) if model.get("byte_fallback") else ()
        )
        return frozenset(token for token in (number, *raw_bytes) if token is not None)

    @cached_property
    def _empty(self) -> frozenset[int]:
        start = self._tokenizer.token_to_id(WORD_START)
        return frozenset() if start is None else frozenset([start])
