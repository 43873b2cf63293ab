"""The Penn Treebank's tags: parts of speech as taggers name them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PARTS_OF_SPEECH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "noun": ("NN", "NNS", "NNP", "NNPS"),
        "adjective": ("JJ", "JJR", "JJS"),
        "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
        "adverb": ("RB", "RBR", "RBS"),
        "number": ("CD",),
    }
)
"""Names for people, and the tags they stand for."""

_GRAMMAR = "CC DT EX IN MD PDT POS PRP PRP$ RP TO UH WDT WP WP$ WRB"
TAGS = frozenset(_GRAMMAR.split()).union(*PARTS_OF_SPEECH.values())
"""The tags of words that a tagger understood: not those of foreign words, symbols, list marks."""
