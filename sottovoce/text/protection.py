"""Which words are protected: a strategy looks at a word and says whether it may stay in clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from sottovoce.text.resolve import comparable
from sottovoce.text.stopwords import FUNCTION_WORDS

InClear: TypeAlias = Callable[[str], bool]
"""Given the surface of a word, whether it is released as it is."""


def no_word(surface: str) -> bool:  # noqa: ARG001
    """Protect every word."""
    return False


def function_word(surface: str) -> bool:
    """Leave English function words in clear, but not abbreviations that look like one (WHO, US)."""
    abbreviation = len(surface) > 1 and surface.isupper()
    return not abbreviation and comparable(surface) in FUNCTION_WORDS


PROTECTIONS: Mapping[str, InClear] = MappingProxyType({"all": no_word, "content": function_word})
"""The strategies by the name that ``TextPipeline(protect=...)`` takes."""
