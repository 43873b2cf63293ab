"""When two words, or two texts, are the same. Decided here and nowhere else.

A search asks it of what is about to leave, the ledger of what was released before, a query log
and the attacks of what they compare. Case, spacing, invisible characters and the kind of
apostrophe make no difference.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import regex

from sottovoce.errors import UsageError
from sottovoce.text.tokens import normalize, tokenize

STRAIGHT_APOSTROPHES = str.maketrans("’‘ʼ′`´", "''''''")
_INVISIBLE = regex.compile(r"[\p{Cf}\p{Cc}\p{Cs}]+")
# Control characters set words apart, as they do for the tokenizer; tab and newline are among them.
_BETWEEN_WORDS = regex.compile(r"[\p{Z}\p{Cc}]+")


def visible(surface: str) -> str:
    """A word without the characters that cannot be seen or encoded."""
    return _INVISIBLE.sub("", surface)


def comparable(word: str) -> str:
    """The form in which two words are the same: case-folded, with straight apostrophes."""
    plain = visible(word).translate(STRAIGHT_APOSTROPHES)
    return unicodedata.normalize("NFC", plain.casefold())


def comparable_words(words: Iterable[str], option: str) -> frozenset[str]:
    """The words of a list that people give, in the form in which words are compared.

    ``option`` is what errors call the list.
    """
    listed = [] if isinstance(words, str) else list(words)
    if isinstance(words, str) or not all(isinstance(word, str) for word in listed):
        raise UsageError(f"{option} must be a collection of words, such as frozenset({{'python'}})")
    for word in listed:
        if [token.surface for token in tokenize(word)] != [normalize(word)]:
            raise UsageError(
                f"each entry of {option} must be one word without punctuation around it; list the "
                "words of a phrase one by one"
            )
    return frozenset(map(comparable, listed))


def folded_text(text: str) -> str:
    """The form in which two texts are the same: comparable words, single blanks between them."""
    if not isinstance(text, str):
        raise UsageError(f"a text must be a str, not {type(text).__name__}")
    if text.isascii() and text.isprintable():  # Most queries; the same result, faster.
        return " ".join(text.translate(STRAIGHT_APOSTROPHES).casefold().split())
    return " ".join(filter(None, map(comparable, _BETWEEN_WORDS.split(normalize(text)))))


def single_spaced(text: str) -> str:
    """A text as it may leave this machine: visible characters, single blanks between words."""
    return " ".join(filter(None, map(visible, _BETWEEN_WORDS.split(text))))
