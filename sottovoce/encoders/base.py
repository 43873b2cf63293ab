"""What an encoder is to sottovoce, and what all of them do to texts and vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sottovoce.errors import UsageError, need
from sottovoce.types import Float32Array

VECTORS_KEPT = 20_000
"""Vectors of texts kept in memory, so that they are not computed again; about 30 MB."""

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Encoder(Protocol):
    """Anything that turns texts into vectors whose inner product says how alike they are.

    name
        What :func:`load_encoder` loads it by.
    dimension
        The length of a vector.
    """

    name: str
    dimension: int

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the vectors; vectors kept on disk go by it."""
        ...

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """A row of length 1 for each text, zeros for a blank one; batches change nothing."""
        ...


@cache
def shared_encoder(kind: Callable[..., Encoder], *arguments: str) -> Encoder:
    """The one encoder of its kind and model in this process: pickles lead here, too."""
    return kind(*arguments)


def readable(texts: Sequence[str]) -> list[str]:
    """The texts without blanks around them, and with ? for halves of characters."""
    if isinstance(texts, str):
        raise UsageError("encode takes a list of texts: put the one text into a list")
    return [text.encode("utf-8", "replace").decode().strip() for text in texts]


def open_tokenizer(file: Path) -> Tokenizer:
    """Open a tokenizer that neither pads nor cuts."""
    # Its own threads gain nothing on short texts, and make it complain after a fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    need("tokenizers", None, "encoders need the package tokenizers")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
