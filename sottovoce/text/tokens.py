"""Where words begin and end, decided so that whatever is not understood is protected.

Only punctuation (Unicode category P) and whitespace may stand between tokens in the released
text. Everything else - letters, marks, numbers, symbols, emoji, private-use and unassigned
characters, lone surrogates - is part of a token. Control and format characters outside words
are neither: they carry nothing visible, could carry something hidden, and are left out.

Offsets count characters of the normalized text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import regex

JOINERS = "'’‘׳״·/_&@‐‑‒–\\-"
"""Punctuation that may stand inside a token, between two of its characters."""

# Everything that is not punctuation, whitespace, a control or a format character.
_EMOJI = r"[[\p{Extended_Pictographic}&&[\p{S}\p{Cn}]]--[©®™]]"
_CORE = rf"[[^\p{{P}}\p{{Z}}\p{{Cc}}\p{{Cf}}\p{{RI}}]--{_EMOJI}]"
_RUN = rf"{_CORE}[{_CORE}\p{{Cf}}]*+"
# A dot joins (example.com, U.S) except where a blank was forgotten (end.Start).
_JOIN = rf"(?:[{JOINERS}]|\.(?!(?<=\p{{Ll}}\.)\p{{Lu}}\p{{Ll}})|(?<=\d)[,:](?=\d))"
_TOKEN = regex.compile(
    rf"""
      # URLs: by scheme, by www, or as host/path; up to the last character that is no punctuation
      (?:(?i:[a-z][a-z0-9+.\-]{{0,30}}://|www\.|mailto:)
        |[\p{{L}}\p{{N}}\-]{{1,63}}+(?:\.[\p{{L}}\p{{N}}\-]{{1,63}}+){{1,8}}+/)
      [^\p{{Cc}}\p{{Z}}]*[^\p{{P}}\p{{Cc}}\p{{Cf}}\p{{Z}}]/?
      # e-mail addresses
      |[\p{{L}}\p{{N}}][\p{{L}}\p{{M}}\p{{N}}._%+'’\-]{{0,63}}+@{_RUN}(?:[.\-]{_RUN}){{0,99}}+
      # emoji: flags, and pictures with their modifiers and joined successors
      |(?:\p{{RI}}\p{{RI}}?|{_EMOJI})(?:[\p{{M}}\p{{Cf}}\p{{EMod}}]|(?<=\u200d){_EMOJI}){{0,99}}+
      # words and numbers; a plural's closing apostrophe is part of it
      |{_RUN}(?:{_JOIN}{_RUN}){{0,99}}+(?:(?<=[sS])['’](?!{_CORE}))?
    """,
    regex.VERBOSE | regex.V1,
)
_NOT_PUNCTUATION = regex.compile(r"\P{P}+")
# \t \n \r and category Z. The standard library's engine splits on it twice as fast.
WHITESPACE = "\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WHITESPACE = re.compile(f"([{WHITESPACE}]+)")
_BLOCK = 1 << 16

# Python orders a run of combining marks by insertion, so that time grows with the square of its
# length. As in Unicode's stream-safe format a joiner without effect breaks runs longer than 30.
_LONG_MARKS = regex.compile(r"\P{ccc=0}{30}(?=\P{ccc=0})")
_GRAPHEME_JOINER = "\u034f"


class Token(NamedTuple):
    """A protected stretch of the text; ``text[start:end]`` is its surface."""

    surface: str
    start: int
    end: int

    def __repr__(self) -> str:
        return f"Token({self.start}, {self.end})"


def normalize(text: str) -> str:
    """Bring a text into Unicode normal form C; doing it again changes nothing."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFC", _break_long_marks(text))
    return _break_long_marks(composed)


def _break_long_marks(text: str) -> str:
    return _LONG_MARKS.sub(rf"\g<0>{_GRAPHEME_JOINER}", text)


def blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Cut a text at whitespace, a block at a time: chunks, and the whitespace after each.

    To keep blocks small, a stretch without whitespace longer than a block is cut anywhere; the
    whitespace after such a chunk is empty, as it is after the last.
    """
    start = 0
    while start + _BLOCK < len(text):
        space = _WHITESPACE.search(text, start + _BLOCK, start + 2 * _BLOCK)
        end = space.end() if space else start + 2 * _BLOCK
        yield _split(text[start:end])
        start = end
    yield _split(text[start:])


def _split(block: str) -> tuple[list[str], list[str]]:
    pieces = _WHITESPACE.split(block)
    if len(pieces) > 1 and not pieces[-1]:
        return pieces[:-1:2], pieces[1::2]
    return pieces[::2], [*pieces[1::2], ""]


def spans(chunk: str) -> Iterable[tuple[int, int]]:
    """Find where the tokens of a chunk (a text without whitespace) start and end."""
    if chunk.isalnum():
        return [(0, len(chunk))]
    return (match.span() for match in _TOKEN.finditer(chunk))


def punctuation(gap: str) -> str:
    """Keep what may be released of the characters between tokens: the punctuation."""
    return _NOT_PUNCTUATION.sub("", gap)


def tokenize(text: str) -> list[Token]:
    """Find all tokens of a text, with offsets into ``normalize(text)``."""
    tokens, offset = [], 0
    for chunks, blanks in blocks(normalize(text)):
        for chunk, blank in zip(chunks, blanks, strict=True):
            for start, end in spans(chunk):
                tokens.append(Token(chunk[start:end], offset + start, offset + end))
            offset += len(chunk) + len(blank)
    return tokens
