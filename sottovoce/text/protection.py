"""Which words are protected: all, all but function words, or chosen parts of speech.

A word stays in clear only if it was understood. Whatever a tagger cannot judge is protected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import regex

from sottovoce.errors import SottovoceError, UsageError, did_you_mean
from sottovoce.language.tagging import PARTS_OF_SPEECH, TAGS, Tagger
from sottovoce.text.comparing import comparable
from sottovoce.text.tokens import blocks, normalize, tokenize
from sottovoce.text.words import ENGLISH, LANGUAGES

InClear: TypeAlias = Callable[[str], bool]
"""Given the surface of a word, whether it is released as it is."""

Judged: TypeAlias = tuple[str, tuple[bool, ...]]
"""A chunk, and for each of its tokens whether it stays in clear."""

NOUNS_AND_ADJECTIVES = "NN,NNS,NNP,NNPS,JJ,JJS"
"""What the authors of Words Blending Boxes protect; comparatives are left in clear."""

_WORD = regex.compile(r"\p{L}++(?:['’\-]\p{L}++)*+['’]?")
_SHORT_NUMBER = regex.compile(r"[0-9]{1,4}")
_SENTENCE_END = regex.compile(r"[.?!]|…|\n\s*\n")
_PAUSE = regex.compile(r"[,;:()\[\]—–]")


def no_word(surface: str) -> bool:  # noqa: ARG001
    """Protect every word."""
    return False


def function_word(surface: str, language: str = ENGLISH) -> bool:
    """Leave function words in clear, but not abbreviations that look like one (WHO, US)."""
    if _abbreviation(surface):
        return False
    return comparable(surface) in LANGUAGES[language].function_words


def content_of(language: str) -> str:
    """The strategy that leaves the function words of a language in clear."""
    return "content" if language == ENGLISH else f"content:{language}"


PROTECTIONS: Mapping[str, InClear] = MappingProxyType(
    {"all": no_word}
    | {content_of(code): partial(function_word, language=code) for code in LANGUAGES}
)
"""Strategies that look at a word alone, by the name that ``TextPipeline(protect=...)`` takes."""


@lru_cache
def protected_tags(protect: str) -> frozenset[str]:
    """Read a list of parts of speech, such as ``noun,adjective`` or ``NN,NNS``.

    The strategies that need no tags, ``all`` and those of ``content``, have none.
    """
    if protect in PROTECTIONS:
        return frozenset()
    return frozenset(tag for name in protect.split(",") for tag in _tags(name.strip()))


def _tags(name: str) -> tuple[str, ...]:
    if name.casefold() in PARTS_OF_SPEECH:
        return PARTS_OF_SPEECH[name.casefold()]
    if name.upper() in TAGS:
        return (name.upper(),)
    hint = did_you_mean(name.casefold(), [*PROTECTIONS, *PARTS_OF_SPEECH])
    raise UsageError(
        f"protect has a part that is no choice; {hint and f'{hint} '}choose "
        f"{' or '.join(PROTECTIONS)}, or list parts of speech: {', '.join(PARTS_OF_SPEECH)}, or "
        f"Penn Treebank tags such as {NOUNS_AND_ADJECTIVES}"
    )


def left_in_clear(surface: str, tag: str, protected: frozenset[str], knows: InClear) -> bool:
    """Whether a tagged word is released as it is: it is plain, judged, and of no protected kind.

    ``knows`` says whether the tagger knows a word or only guessed. Abbreviations, compounds of
    letters and digits, and numbers of more than four digits, which often name somebody, are never
    plain.
    """
    if tag in protected or tag not in TAGS:
        return False
    if tag == "CD" and _SHORT_NUMBER.fullmatch(surface):
        return True
    plain = surface.isalpha() or _WORD.fullmatch(surface) is not None
    return plain and not _abbreviation(surface) and knows(surface)


def _abbreviation(surface: str) -> bool:
    return len(surface) > 1 and surface.isupper()


# Parts of speech.


class TaggedToken(NamedTuple):
    """A token and its Penn Treebank tag; ``text[start:end]`` is its surface."""

    surface: str
    start: int
    end: int
    tag: str

    def __repr__(self) -> str:
        return f"TaggedToken({self.start}, {self.end}, {self.tag})"


def tagged(text: str, tagger: Tagger) -> list[TaggedToken]:
    """Tag all tokens of a text, with offsets into ``normalize(text)``.

    The tagger sees where sentences end and pause, too.
    """
    text = normalize(text)
    tokens = tokenize(text)
    fed: list[str] = []  # What the tagger gets: the tokens, and marks between them.
    places: list[int] = []  # Where each token is among these.
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
    """Cut a normalized text as ``blocks`` does, and judge its tokens in the context of it all."""
    tokens = tagged(text, tagger)
    clear = [left_in_clear(token.surface, token.tag, protected, tagger.knows) for token in tokens]
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
