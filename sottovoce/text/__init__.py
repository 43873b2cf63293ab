"""From text to words and back: tokens with offsets, look-up, protection, rendering."""

from sottovoce.text.comparing import folded_text
from sottovoce.text.pipeline import TextPipeline
from sottovoce.text.prepared import Counts, PreparedText
from sottovoce.text.protection import NOUNS_AND_ADJECTIVES, TaggedToken, tagged
from sottovoce.text.resolve import Lexicon, Part, resolve
from sottovoce.text.tokens import Token, normalize, tokenize
from sottovoce.text.words import FUNCTION_WORDS
from sottovoce.types import UNKNOWN

__all__ = [
    "FUNCTION_WORDS",
    "NOUNS_AND_ADJECTIVES",
    "UNKNOWN",
    "Counts",
    "Lexicon",
    "Part",
    "PreparedText",
    "TaggedToken",
    "TextPipeline",
    "Token",
    "folded_text",
    "normalize",
    "resolve",
    "tagged",
    "tokenize",
]
