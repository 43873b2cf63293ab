"""Phrases: several words of a text that a lexicon lists as one, such as *skin cancer*.

A phrase becomes one unit with one substitute. Where a text is cut depends on the lexicon alone,
which is public: from the left, the longest phrase that is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import regex

from sottovoce.text.comparing import comparable
from sottovoce.text.resolve import Lexicon
from sottovoce.text.tokens import WHITESPACE
from sottovoce.types import UNKNOWN

_EDGES = regex.compile(r"(\p{P}*)(.*?)(\p{P}*)", regex.DOTALL)
_LINE_BREAK = regex.compile(r"[\n\r\u2028\u2029]")
_BLANK = regex.compile(f"[{WHITESPACE}]+")


@runtime_checkable
class PhraseLexicon(Lexicon, Protocol):
    """A lexicon that lists phrases, too: words with single blanks between them."""

    @property
    def phrases(self) -> Mapping[str, int]:
        """The words that phrases begin with, each with the number of words of the longest."""
        ...


def join_phrases(
    chunks: Sequence[str], blanks: Sequence[str], lexicon: PhraseLexicon, alone: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Chunks of a text, and the whitespace after each, with the chunks of a phrase made one.

    ``alone`` are words that are no part of any phrase. Neither is a word that the lexicon denies.
    Punctuation may stand before and after a phrase, not inside.
    """
    longest = lexicon.phrases
    edges = [_EDGES.fullmatch(chunk) for chunk in chunks]
    cores = [comparable(match[2]) if match else "" for match in edges]
    joined: list[str] = []
    after: list[str] = []
    start = 0
    while start < len(chunks):
        end = start + 1
        for size in range(min(longest.get(cores[start], 1), len(chunks) - start), 1, -1):
            stop = start + size
            inside = range(start, stop - 1)
            if (
                all(match and not match[3] for match in edges[start : stop - 1])
                and all(match and not match[1] for match in edges[start + 1 : stop])
                and not any(_LINE_BREAK.search(blanks[place]) for place in inside)
                and lexicon.id(" ".join(cores[start:stop])) != UNKNOWN
                and not any(
                    core in alone or lexicon.id(core) < UNKNOWN for core in cores[start:stop]
                )
            ):
                end = stop
                break
        pieces = zip(chunks[start:end], [*blanks[start : end - 1], ""], strict=True)
        joined.append("".join(chunk + blank for chunk, blank in pieces))
        after.append(blanks[end - 1])
        start = end
    return joined, after


def phrase_in(chunk: str, lexicon: Lexicon) -> tuple[int, int, int] | None:
    """Start, end and id of the phrase that a joined chunk holds; None: it is no joined chunk."""
    if _BLANK.search(chunk) is None:
        return None
    match = _EDGES.fullmatch(chunk)
    assert match is not None  # noqa: S101 - it matches anything
    words = _BLANK.split(match[2])
    return match.start(2), match.end(2), lexicon.id(" ".join(map(comparable, words)))


def units(text: str, lexicon: PhraseLexicon) -> list[str]:
    """The words and phrases of a text, as its pipeline cuts it: what one substitute stands for."""
    chunks = text.split()
    return join_phrases(chunks, [" "] * len(chunks), lexicon, frozenset())[0]
