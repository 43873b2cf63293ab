"""Identifiers in a text, found by how they are written: addresses, numbers, dates, keys.

Names of people and places are not written in any special way: patterns do not find them. List them
(:class:`Listed`), or have them found by Presidio (:mod:`sottovoce.prompts.presidio`).

Where something may be an identifier it is taken for one: a number too many becomes a placeholder,
which comes back in the answer; a number too few would be sent.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import regex

from sottovoce.errors import UsageError, did_you_mean


class Identifier(NamedTuple):
    """A stretch of a text, and what kind of identifier it is."""

    start: int
    end: int
    kind: str

    def __repr__(self) -> str:
        return f"Identifier({self.kind}, {self.start}, {self.end})"


class Finder(Protocol):
    """Whatever finds identifiers in a text."""

    name: str

    def find(self, text: str) -> Iterable[Identifier]:
        """All that it finds, in any order; they may overlap."""


# What each kind looks like. Patterns see a text without invisible characters (see _plain).

_FLAGS = regex.IGNORECASE | regex.VERSION1
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"(?:1[89]|20)\d\d"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_KEY_NAMES = r"(?:password|passwd|passphrase|pwd|secret|token|api[ _-]?key|access[ _-]?key)"
_HEX = r"[0-9a-f]{0,4}"

PATTERNS: dict[str, tuple[str, ...]] = {
    "SECRET": (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        r"(?<!\w)(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|github_pat|xox[abeprs]|hf|npm|pypi)[-_][\w-]{12,}",
        r"(?<!\w)(?:AKIA|ASIA)[0-9A-Z]{12,}",
        r"(?<!\w)AIza[\w-]{20,}",
        r"(?<!\w)eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?",
        rf"(?<!\w){_KEY_NAMES}(?:\s{{1,5}}is)?\s{{0,5}}[:=]?\s{{0,5}}[\"'`]?\K(?=\S*[\d\W])[^\s\"'`,;]{{6,}}",
        rf"(?<!\w){_KEY_NAMES}\s{{0,5}}[:=]\s{{0,5}}[\"'`]?\K[^\s\"'`,;]{{4,}}",
    ),
    "URL": (r"(?<!\w)(?:[a-z][a-z0-9+.\-]{1,20}://|www\.)[^\s<>\"'`]+",),
    "EMAIL": (
        r"(?<![\p{L}\p{N}._%+'\-])[\p{L}\p{N}._%+'\-]++@[\p{L}\p{N}](?:[\p{L}\p{N}\-.]*[\p{L}\p{N}])?",
    ),
    "IBAN": (r"(?<!\w)[A-Z]{2}\d{2}(?:[ \-]?[A-Z0-9]){11,30}(?!\w)",),
    "CARD": (r"(?<!\d)\d(?:[ \-.]?\d){12,18}(?!\d)",),
    "IP": (
        r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)",
        rf"(?<![\w:]){_HEX}(?::{_HEX}){{2,7}}(?![\w:])",
    ),
    "DATE": (
        rf"(?<!\d){_YEAR}[\-/.](?:1[0-2]|0?[1-9])[\-/.](?:3[01]|[12]\d|0?[1-9])(?!\d)",
        r"(?<!\d)(?:3[01]|[12]\d|0?[1-9])[\-/.](?:3[01]|[12]\d|0?[1-9])[\-/.](?:\d{4}|\d{2})(?!\d)",
        rf"(?<!\w){_DAY}\.?\s{{1,5}}(?:of\s{{1,5}})?{_MONTH}\.?,?\s{{1,5}}{_YEAR}(?!\d)",
        rf"(?<!\w){_MONTH}\.?\s{{1,5}}{_DAY},?\s{{1,5}}{_YEAR}(?!\d)",
    ),
    "PHONE": (
        r"(?<![\w.])(?:\+|00|\(?0)\d{0,15}(?:[ ()./\-]{1,3}\d{1,15}){1,15}",
        rf"(?<![\w.])(?!{_YEAR}[\-/ ]{_YEAR}(?!\d))"
        r"\(?\d{2,5}\)?(?:[ ./\-]{1,2}\d{2,6}){1,4}(?!\w)",
        r"(?<!\w)\+\d{6,}",
    ),
    "HANDLE": (r"(?<![\w.@/])@\w{2,}",),
    "NUMBER": (
        r"\d{5,}",
        r"(?<!\d)\d{3,}+(?:[ \-./]\d{2,}+){2,}+",
        r"(?<!\w)(?=\p{N}*\p{L})(?:\p{L}*\d){4}[\p{L}\p{N}]{0,15}(?!\w)",
    ),
    "KEY": (r"(?<![\w+/=\-])(?=[\w+/=\-]*\d)(?=[\w+/=\-]*\p{L})[\w+/=\-]{24,}",),
}
KINDS = tuple(PATTERNS)
PHONE_DIGITS = range(7, 16)
SENTENCE_ENDS = ".,;:!?)]}*_"
"""What ends a sentence or a bracket around an address rather than the address."""


def digits(text: str) -> list[int]:
    """The digits of a text, in any script."""
    return [unicodedata.decimal(sign) for sign in text if sign.isdecimal()]


def is_card(text: str) -> bool:
    """Whether the last digit is the check digit that cards have (Luhn)."""
    doubled = [
        digit if place % 2 == 0 else sum(divmod(2 * digit, 10))
        for place, digit in enumerate(reversed(digits(text)))
    ]
    return sum(doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """Whether the two check digits are right (ISO 13616)."""
    signs = "".join(sign for sign in text.upper() if sign.isalnum())
    moved = signs[4:] + signs[:4]
    return 15 <= len(signs) <= 34 and int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def is_ip(text: str) -> bool:
    """Whether this is an address of a machine, of either version; ``::`` alone is none."""
    try:
        return ipaddress.ip_address(text) != ipaddress.IPv6Address("::")
    except ValueError:
        return False


def is_phone(text: str) -> bool:
    """As many digits as telephones have, and not a row of small numbers."""
    groups = [group for group in regex.split(r"\D+", text) if group]
    begins = text.lstrip("( ")[:1] in ("+", "0")
    return sum(map(len, groups)) in PHONE_DIGITS and (begins or any(len(g) >= 3 for g in groups))


CHECKED_FROM = {"IBAN": 15, "CARD": 13, "PHONE": 7}
"""Letters and digits that these have at least; what follows may have been taken for a part."""
CHECKS: dict[str, Callable[[str], bool]] = {
    "IBAN": is_iban,
    "CARD": is_card,
    "IP": is_ip,
    "PHONE": is_phone,
}


@dataclass(frozen=True)
class Patterns:
    """Identifiers of these kinds, by how they are written."""

    kinds: Collection[str] = KINDS
    name = "patterns"

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in PATTERNS:
                hint = did_you_mean(kind.upper(), KINDS, "")
                raise UsageError(f"no such kind of identifier; {hint} there are {', '.join(KINDS)}")

    def find(self, text: str) -> list[Identifier]:
        """All that is written like one of the kinds, and passes its check if it has one."""
        plain, places = _plain(text)
        matches = []
        for kind in self.kinds:
            check = CHECKS.get(kind)
            for pattern in _COMPILED[kind]:
                for match in pattern.finditer(plain, overlapped=kind in CHECKED_FROM):
                    start, end = _trimmed(plain, *match.span(), kind)
                    while end > start and check is not None and not check(plain[start:end]):
                        end = _shortened(plain, start, end, kind)
                    if start < end:
                        matches.append(Identifier(places[start], places[end - 1] + 1, kind))
        return matches


_COMPILED = {
    kind: [regex.compile(pattern, _FLAGS | regex.DOTALL) for pattern in patterns]
    for kind, patterns in PATTERNS.items()
}


class Listed:
    """Words and names that a person listed, in any case, as whole words."""

    name = "list"

    def __init__(self, words: Iterable[str], kind: str = "NAME") -> None:
        self.kind = kind
        self.words = tuple(sorted({_plain(word.strip())[0] for word in words} - {""}))
        longest_first = sorted(self.words, key=len, reverse=True)
        options = "|".join(r"\s+".join(map(regex.escape, word.split())) for word in longest_first)
        self._pattern = regex.compile(rf"(?<!\w)(?:{options})(?!\w)", _FLAGS) if options else None

    def __repr__(self) -> str:
        return f"Listed({len(self.words)} words)"

    def find(self, text: str) -> list[Identifier]:
        """Where they stand."""
        if self._pattern is None:
            return []
        plain, places = _plain(text)
        return [
            Identifier(places[match.start()], places[match.end() - 1] + 1, self.kind)
            for match in self._pattern.finditer(plain)
        ]


def find_all(text: str, finders: Sequence[Finder]) -> list[Identifier]:
    """What all finders find, in order, none overlapping another."""
    return united(match for finder in finders for match in finder.find(text))


def united(matches: Iterable[Identifier]) -> list[Identifier]:
    """In order; what overlaps is one identifier, of the longest's kind, or the first of those."""
    merged: list[Identifier] = []
    longest = 0
    for match in sorted(matches, key=lambda match: match.start):
        length = match.end - match.start
        if merged and match.start < merged[-1].end:
            last = merged[-1]
            kind = match.kind if length > longest else last.kind
            merged[-1] = Identifier(last.start, max(last.end, match.end), kind)
            longest = max(longest, length)
        else:
            merged.append(match)
            longest = length
    return merged


def _trimmed(text: str, start: int, end: int, kind: str) -> tuple[int, int]:
    """Without the punctuation of the sentence around it."""
    while end > start and (text[end - 1] in SENTENCE_ENDS or text[end - 1].isspace()):
        if kind == "PHONE" and text[end - 1] == ")" and "(" in text[start:end]:
            break
        end -= 1
    if kind == "PHONE" and ")" not in text[start:end]:
        start += len(text[start:end]) - len(text[start:end].lstrip("( "))
    return start, end


def _shortened(text: str, start: int, end: int, kind: str) -> int:
    """The next shorter end to check; ``start`` where there is none."""
    if kind not in CHECKED_FROM:
        return start
    end -= 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    signs = sum(sign.isalnum() for sign in text[start:end])
    return end if signs >= CHECKED_FROM[kind] else start


def _plain(text: str) -> tuple[str, Sequence[int]]:
    """The text as patterns see it, and where each of its characters stands in the text.

    Invisible characters inside an address would hide it, and so would wide or bold letters: the
    former are left out, the latter read as what they look like.
    """
    if text.isascii():
        return text, range(len(text))
    signs, places = [], []
    for place, sign in enumerate(text):
        if unicodedata.category(sign) in ("Cf", "Mn") and not sign.isalnum():
            continue
        simple = unicodedata.normalize("NFKC", sign)
        signs.append(simple if len(simple) == 1 else sign)
        places.append(place)
    return "".join(signs), places
