"""From a token to the words of a space: spelling variants first, then its parts.

Look-up goes from the most to the least faithful spelling, so that few words stay unknown:
letter case, apostrophes, possessives, attached symbols, hyphens and abbreviation dots left
out, accents left out. A compound without an entry of its own is taken apart where at least
one part is known. Addresses and figures (e-mail, URL, 1,000.50, 2019-12-05) stay whole, as
their parts would show what they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import regex

from sottovoce.text.comparing import STRAIGHT_APOSTROPHES, visible
from sottovoce.text.tokens import JOINERS
from sottovoce.types import UNKNOWN

LONGEST_WORD = 256
"""Longer tokens are unknown without being looked up."""

_MARKS = regex.compile(r"\p{M}+")
_OUTER_SYMBOLS = regex.compile(r"^\p{S}+|\p{S}+$")
_POSSESSIVE = regex.compile(r"(?i)(?:'s|(?<=s)')$")
_THOUSANDS = regex.compile(r"\d{1,3}(?:,\d{3})+")
_INITIALS = regex.compile(r"\p{L}{1,2}(?:\.\p{L}{1,2})+")
_HYPHENS = regex.compile(r"['\-‐‑]")
_CONTRACTION = regex.compile(r"(?i)(\p{L}+)(n't|'ll|'re|'ve|'m|'d)")
_FULL_FORM = {"n't": "not", "'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "'d": "would"}
_IRREGULAR_STEM = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
_PART = regex.compile(rf"[^{JOINERS}\p{{S}}\p{{Cf}}][^{JOINERS}\p{{S}}]*")
_WHOLE = regex.compile(rf"[\p{{P}}--[{JOINERS}]]|@|\d[\p{{P}}\p{{S}}\p{{Cf}}]+\d", regex.V1)


_ENCODABLE = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’‘\-‐‑][\p{L}\p{M}\p{N}]+)*+['’]?")
_DIGIT = regex.compile(r"\p{N}")
MOST_DIGITS = 4
"""A word with more digits may be a telephone number, an account or a code: it is not encoded."""
LONGEST_ENCODED = 64


def can_be_encoded(surface: str) -> bool:
    """Whether a token can be a word, to an encoder that gives any string a vector.

    Words have letters, inner hyphens and apostrophes, and at most four digits (covid-19, 2019).
    Addresses, codes, long numbers, emoji and other symbols are not encoded: a vector near to them
    would show their parts.
    """
    word = visible(surface)
    return (
        len(word) <= LONGEST_ENCODED
        and _ENCODABLE.fullmatch(word) is not None
        and len(_DIGIT.findall(word)) <= MOST_DIGITS
    )


class Lexicon(Protocol):
    """What knows words: a ``WordSpace``, or anything else that numbers them.

    It must not change, be hashable and allow weak references, as plain objects do.
    """

    def id(self, word: str, /) -> int:
        """Return the id of a word, or ``UNKNOWN``."""
        ...


class Part(NamedTuple):
    """A stretch of a token and the id found for it, or ``UNKNOWN``."""

    start: int
    end: int
    id: int


def resolve(surface: str, lexicon: Lexicon) -> tuple[Part, ...]:
    """Find the word a token stands for, or those of its parts; if none, it is one unknown part."""
    whole = Part(0, len(surface), _first_known(surface, lexicon))
    if whole.id != UNKNOWN or surface.isalnum():
        return (whole,)
    parts = _contraction(surface, lexicon) or _compound(surface, lexicon)
    return parts if any(part.id != UNKNOWN for part in parts) else (whole,)


def spellings(surface: str) -> Iterator[str]:
    """Yield the spellings to look up, the most faithful first; some may repeat."""
    plain = surface.isascii() and surface.isalnum()
    for form in (surface,) if plain else _forms(visible(surface).translate(STRAIGHT_APOSTROPHES)):
        if form:
            yield from _cases(form)
            if "'" in form:
                yield from _cases(form.replace("'", "’"))


def _forms(word: str) -> Iterator[str]:
    yield word
    bare = _OUTER_SYMBOLS.sub("", _POSSESSIVE.sub("", _OUTER_SYMBOLS.sub("", word)))
    yield bare
    joined = _joined(bare)
    yield joined
    if not word.isascii():
        yield _without_accents(word)
        yield _without_accents(joined)


def _joined(word: str) -> str:
    """Leave out what stands inside: 1,000 as 1000, U.S as US, e-mail as email."""
    if _THOUSANDS.fullmatch(word):
        return word.replace(",", "")
    if _INITIALS.fullmatch(word):
        return word.replace(".", "")
    if _CONTRACTION.fullmatch(word) or _WHOLE.search(word):
        return word
    return _HYPHENS.sub("", word)


def _cases(form: str) -> Iterator[str]:
    for spelling in (form.lower(), form):
        yield spelling if spelling.isascii() else unicodedata.normalize("NFC", spelling)
    yield form.capitalize()
    yield form.title()
    # Case-folding turns Maße into Masse, another word: only where the list has no ß.
    if not form.isascii():
        yield unicodedata.normalize("NFC", form.casefold())
    yield form.upper()


def _without_accents(word: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFKD", word))


def _first_known(surface: str, lexicon: Lexicon) -> int:
    if len(surface) > LONGEST_WORD:
        return UNKNOWN
    previous = ""
    for spelling in spellings(surface):
        if spelling != previous and (word_id := lexicon.id(spelling)) != UNKNOWN:
            return word_id
        previous = spelling
    return UNKNOWN


def _contraction(surface: str, lexicon: Lexicon) -> tuple[Part, ...]:
    """Take ``don't`` apart into do and n't (or not), as the space has them."""
    match = _CONTRACTION.fullmatch(surface.translate(STRAIGHT_APOSTROPHES))
    if match is None:
        return ()
    stem, ending = match[1].casefold(), match[2].casefold()
    if ending == "n't":
        stem = _IRREGULAR_STEM.get(stem, stem)
    ending_id = lexicon.id(ending)
    if ending_id == UNKNOWN:
        ending_id = lexicon.id(_FULL_FORM[ending])
    cut = match.end(1)
    return (
        Part(0, cut, _first_known(stem, lexicon)),
        Part(cut, len(surface), ending_id),
    )


def _compound(surface: str, lexicon: Lexicon) -> tuple[Part, ...]:
    """Take a compound apart at hyphens, slashes, apostrophes, symbols; addresses and figures not.

    A possessive ending belongs to the last part.
    """
    if _WHOLE.search(surface):
        return ()
    ending = _POSSESSIVE.search(surface.translate(STRAIGHT_APOSTROPHES))
    spans = [m.span() for m in _PART.finditer(surface, 0, ending.start() if ending else None)]
    if spans and ending:
        spans[-1] = (spans[-1][0], len(surface))
    return tuple(
        Part(start, end, _first_known(surface[start:end], lexicon)) for start, end in spans
    )
