"""What is known of language itself: parts of speech, related meanings, models that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.language.causal_model import CausalModel
    from sottovoce.language.wordnet import WordNet, load_wordnet

__all__ = ["CausalModel", "WordNet", "load_wordnet"]

__getattr__ = lazy_names(
    __name__, {".causal_model": "CausalModel", ".wordnet": "WordNet, load_wordnet"}
)
