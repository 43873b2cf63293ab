"""Taggers: what tells the part of speech of each word of a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from sottovoce.errors import UsageError

DEFAULT = "pattern"


class Tagger(Protocol):
    """Tells parts of speech; the same tokens always get the same tags."""

    @property
    def name(self) -> str:
        """The name it is loaded by."""
        ...

    def tags(self, tokens: Sequence[str]) -> list[str]:
        """Give each token its Penn Treebank tag; ``.``, ``?`` and ``!`` end sentences."""
        ...

    def knows(self, word: str) -> bool:
        """Whether the tag of this word is more than a guess by its form."""
        ...


def load_tagger(name: str = "auto") -> Tagger:
    """Load a tagger by name: ``pattern``, the default, or ``spacy:MODEL``, an installed model."""
    return _load(DEFAULT if name == "auto" else check_tagger(name))


def check_tagger(name: str) -> str:
    """Refuse what cannot be the name of a tagger, without loading it."""
    kind, _, model = name.partition(":")
    if name in ("auto", DEFAULT) or (kind == "spacy" and model):
        return name
    raise UsageError(
        "unknown tagger: use 'pattern', or 'spacy:MODEL' with the name or folder of an installed "
        "spaCy model, such as 'spacy:en_core_web_md'"
    )


@lru_cache(maxsize=4)
def _load(name: str) -> Tagger:
    if name == DEFAULT:
        from sottovoce.language.pattern import load_pattern

        return load_pattern()
    from sottovoce.language.spacy_models import load_spacy

    return load_spacy(name)
