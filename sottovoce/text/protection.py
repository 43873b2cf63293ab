"""Which words are protected: all, all but function words, or chosen parts of speech.

A word stays in clear only if it was understood. Whatever a tagger cannot judge is protected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import regex

from sottovoce.errors import UsageError, did_you_mean
from sottovoce.language.penn import PARTS_OF_SPEECH, TAGS
from sottovoce.text.comparing import comparable
from sottovoce.text.stopwords import FUNCTION_WORDS

InClear: TypeAlias = Callable[[str], bool]
"""Given the surface of a word, whether it is released as it is."""

NOUNS_AND_ADJECTIVES = "NN,NNS,NNP,NNPS,JJ,JJS"
"""What the authors of Words Blending Boxes protect; comparatives are left in clear."""

_WORD = regex.compile(r"\p{L}++(?:['’\-]\p{L}++)*+['’]?")
_SHORT_NUMBER = regex.compile(r"[0-9]{1,4}")


def no_word(surface: str) -> bool:  # noqa: ARG001
    """Protect every word."""
    return False


def function_word(surface: str) -> bool:
    """Leave English function words in clear, but not abbreviations that look like one (WHO, US)."""
    return not _abbreviation(surface) and comparable(surface) in FUNCTION_WORDS


PROTECTIONS: Mapping[str, InClear] = MappingProxyType({"all": no_word, "content": function_word})
"""Strategies that look at a word alone, by the name that ``TextPipeline(protect=...)`` takes."""


@lru_cache
def protected_tags(protect: str) -> frozenset[str]:
    """Read a list of parts of speech, such as ``noun,adjective`` or ``NN,NNS``.

    The strategies that need no tags, ``all`` and ``content``, have none.
    """
    if protect in PROTECTIONS:
        return frozenset()
    return frozenset(tag for each in protect.split(",") for tag in _tags(each.strip()))


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


def left_in_clear(surface: str, tag: str, protected: frozenset[str], known: InClear) -> bool:
    """Whether a tagged word is released as it is: it is plain, judged, and of no protected kind.

    ``known`` says whether the tagger knows a word or only guessed. Abbreviations, compounds of
    letters and digits, and numbers of more than four digits, which often name somebody, are never
    plain.
    """
    if tag in protected or tag not in TAGS:
        return False
    if tag == "CD" and _SHORT_NUMBER.fullmatch(surface):
        return True
    plain = surface.isalpha() or _WORD.fullmatch(surface) is not None
    return plain and not _abbreviation(surface) and known(surface)


def _abbreviation(surface: str) -> bool:
    return len(surface) > 1 and surface.isupper()
