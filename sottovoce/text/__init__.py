"""From text to words and back: tokens with offsets, look-up, protection, rendering."""

from sottovoce.text.pipeline import TextPipeline
from sottovoce.text.prepared import Counts, PreparedText
from sottovoce.text.resolve import UNKNOWN, Lexicon, Part, resolve
from sottovoce.text.stopwords import FUNCTION_WORDS
from sottovoce.text.tokens import Token, normalise, tokenise

__all__ = [
    "FUNCTION_WORDS",
    "UNKNOWN",
    "Counts",
    "Lexicon",
    "Part",
    "PreparedText",
    "TextPipeline",
    "Token",
    "normalise",
    "resolve",
    "tokenise",
]
