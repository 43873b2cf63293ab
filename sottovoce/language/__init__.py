"""What is known of English itself: parts of speech, and how the meanings of words are related."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.language.wordnet import WordNet, load_wordnet

__all__ = ["WordNet", "load_wordnet"]

__getattr__ = lazy_names(__name__, {".wordnet": "WordNet, load_wordnet"})
