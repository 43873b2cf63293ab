"""Encoders described in a file: vectors of any length, and two towers.

Some models were trained for inner products of vectors that are not of length 1 (Contriever,
TAS-B), some with one tower for queries and another one for documents (Dragon+).
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sottovoce.encoders.base import Encoder
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.types import BoolArray, Float32Array

Load = Callable[[str], Encoder]

KEYS = {"documents": str, "queries": str, "unit_length": bool}
HOW = (
    'documents = "FOLDER", perhaps queries = "FOLDER" for a tower of their own, and unit_length = '
    "false where the model's vectors keep their lengths"
)


@runtime_checkable
class GivesRawVectors(Protocol):
    """An encoder that can leave vectors at the length that its model gives them."""

    def raw(self, texts: Sequence[str]) -> Float32Array:
        """As ``encode``, not at length 1."""


class DescribedEncoder:
    """Models used as a TOML file describes.

    ``encode`` is for documents, and the strings of pools; ``encode_queries`` for queries, and for
    private texts. With one tower both are the same. ``load`` opens an encoder by its name.
    """

    def __init__(self, file: str, load: Load) -> None:
        self.name, self._load = file, load
        path = Path(file).expanduser()
        described = _described(path)
        self.unit_length = bool(described.get("unit_length", True))
        self._documents = self._tower(path, described["documents"])
        self._queries = self._documents
        if "queries" in described:
            self._queries = self._tower(path, described["queries"])
        self.dimension = self._documents.dimension
        if self._queries.dimension != self.dimension:
            raise UsageError(
                f"the two towers give vectors of {self._queries.dimension} and {self.dimension} "
                "dimensions, which have no inner product: they do not belong together"
            )
        self.exact_batches = self._documents.exact_batches and self._queries.exact_batches

    def __reduce__(self) -> tuple[Any, ...]:
        return self._load, (self.name,)

    def __repr__(self) -> str:
        towers = 1 if self._queries is self._documents else 2
        return f"DescribedEncoder({self.dimension} dimensions, towers={towers})"

    @cached_property
    def fingerprint(self) -> str:
        facts = (self._documents.fingerprint, self._queries.fingerprint, str(self.unit_length))
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> Float32Array:
        return self._vectors(self._documents, texts)

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """The vectors of queries, to be multiplied with those of documents."""
        return self._vectors(self._queries, texts)

    def knows(self, texts: Sequence[str]) -> BoolArray:
        known: BoolArray = self._documents.knows(texts) & self._queries.knows(texts)
        return known

    def _tower(self, file: Path, model: str) -> Encoder:
        """The encoder in a folder that is there, seen from the file, or of a name."""
        folder = file.parent / Path(model).expanduser()
        encoder = self._load(str(folder) if folder.is_dir() else model)
        if not self.unit_length and not isinstance(encoder, GivesRawVectors):
            raise UsageError(
                f"the encoder {Path(model).name} has vectors of length 1 only: leave unit_length "
                "out, or name the folder of a model"
            )
        return encoder

    def _vectors(self, tower: Encoder, texts: Sequence[str]) -> Float32Array:
        if self.unit_length or not isinstance(tower, GivesRawVectors):
            return tower.encode(texts)
        return tower.raw(texts)


def _described(file: Path) -> dict[str, Any]:
    try:
        described = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"the description of an encoder, {file.name}, cannot be read "
            f"({type(error).__name__}): check the path"
        ) from None
    except ValueError:
        raise SottovoceError(f"{file.name} is not TOML: write {HOW}") from None
    wrong = [key for key, value in described.items() if not isinstance(value, KEYS.get(key, ()))]
    if wrong or "documents" not in described:
        raise UsageError(f"{file.name} does not describe an encoder: write {HOW}")
    return described
