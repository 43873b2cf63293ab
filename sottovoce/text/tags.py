"""The tokens of a text, each with its part of speech."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import regex

from sottovoce.errors import SottovoceError
from sottovoce.language.tagging import Tagger
from sottovoce.text.protection import left_in_clear
from sottovoce.text.tokens import blocks, normalise, tokenise

_SENTENCE_END = regex.compile(r"[.?!]|…|\n\s*\n")
_PAUSE = regex.compile(r"[,;:()\[\]—–]")


Judged: TypeAlias = tuple[str, tuple[bool, ...]]
"""A chunk, and for each of its tokens whether it stays in clear."""


class TaggedToken(NamedTuple):
    """A token and its Penn Treebank tag; ``text[start:end]`` is its surface."""

    surface: str
    start: int
    end: int
    tag: str

    def __repr__(self) -> str:
        return f"TaggedToken({self.start}, {self.end}, {self.tag})"


def tagged(text: str, tagger: Tagger) -> list[TaggedToken]:
    """Tag all tokens of a text, with offsets into ``normalise(text)``.

    The tagger sees where sentences end and pause, too.
    """
    text = normalise(text)
    tokens = tokenise(text)
    fed: list[str] = []
    places: list[int] = []
    position = 0
    for surface, start, end in tokens:
        if start != position + 1 or text[position] != " ":
            fed += _mark(text[position:start])
        places.append(len(fed))
        fed.append(surface)
        position = end
    fed += _mark(text[position:])
    try:
        tags = tagger.tags(fed)
    except Exception as error:
        raise SottovoceError(
            f"the tagger {tagger.name} failed ({type(error).__name__}): nothing was released"
        ) from None
    if len(tags) != len(fed):
        raise SottovoceError(f"the tagger {tagger.name} lost words: nothing was released")
    return [TaggedToken(*token, tags[at]) for token, at in zip(tokens, places, strict=True)]


def _mark(gap: str) -> list[str]:
    """Say in one sign what stands between two tokens, if it matters."""
    if end := _SENTENCE_END.search(gap):
        return [end[0] if end[0] in "?!" else "."]
    return [","] if _PAUSE.search(gap) else []


def judged_blocks(
    text: str, tagger: Tagger, protected: frozenset[str]
) -> Iterator[tuple[list[Judged], list[str]]]:
    """Cut a normalised text as ``blocks`` does, and judge its tokens in the context of it all."""
    tokens = tagged(text, tagger)
    clear = [left_in_clear(each.surface, each.tag, protected, tagger.knows) for each in tokens]
    at = offset = 0
    for chunks, blanks in blocks(text):
        judged: list[Judged] = []
        for chunk, blank in zip(chunks, blanks, strict=True):
            first, end = at, offset + len(chunk)
            while at < len(tokens) and tokens[at].start < end:
                at += 1
            judged.append((chunk, tuple(clear[first:at])))
            offset = end + len(blank)
        yield judged, blanks
