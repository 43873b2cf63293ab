"""Words as a lexical search engine counts them: lower case, no function words, English stems."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import regex

from sottovoce.text.stopwords import FUNCTION_WORDS

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*")
_STRAIGHT = str.maketrans("’‘ʼ", "'''")


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits in lower case, in order; an apostrophe may stand inside."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text).translate(_STRAIGHT)
    return _WORD.findall(plain.lower())


def content_words(text: str) -> list[str]:
    """The words of a text without English function words."""
    return [word for word in words(text) if word not in FUNCTION_WORDS]


def stems(words: Sequence[str]) -> list[str]:
    """The English stem of each word (Snowball's Porter 2); possessives lose their ending."""
    from Stemmer import Stemmer

    # A stemmer is quick to make and must not be shared between threads.
    stemmed: list[str] = Stemmer("english").stemWords(words)
    return stemmed
