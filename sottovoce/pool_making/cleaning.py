"""The one rule by which public strings become a pool: what is left out, what is the same.

A string is kept with single blanks between its words, if it

* holds no control character, half of a character, private or unassigned code point, nor the sign
  for one that was lost;
* holds no web address (``://``, ``www.``, or a host name such as *example.com*) and no e-mail
  address;
* holds no number of seven digits or more, blanks, dots and dashes between them not counted: those
  of telephones, accounts, cards;
* has at most ``MOST_WORDS`` words and ``MOST_CHARACTERS`` characters;
* holds a letter.

Strings that are the same as texts are compared (case, spacing, invisible characters) are joined:
the first stands for all, and how many there were is its popularity.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from sottovoce.errors import UsageError
from sottovoce.text.comparing import folded_text, single_spaced
from sottovoce.types import Float64Array

MOST_WORDS = 32
MOST_CHARACTERS = 256

_TOP_LEVEL = "com|org|net|edu|gov|mil|info|biz|co\\.[a-z]{2}"
LEFT_OUT = {
    "control characters": regex.compile(r"[\p{Cs}\p{Co}\p{Cn}\uFFFD]|[^\P{Cc}\t\n\r\f\v]"),
    "addresses": regex.compile(
        rf"(?i)://|\bwww\.|[^\s@]@[^\s@]+\.[a-z]|[a-z0-9]\.(?:{_TOP_LEVEL})(?![a-z0-9])"
    ),
    "long numbers": regex.compile(r"\d(?:[\s.()-]*\d){6}"),
}
"""Reasons to leave a string out, by what they find in it."""
NO_LETTER, TOO_LONG, TOO_RARE = "without letters", "too long", "too rare"
NOT_CHOSEN = "not among one in {thin}"
_LETTER = regex.compile(r"\p{L}")


@dataclass(frozen=True, repr=False)
class Cleaned:
    """The strings that were kept, how often each came, and what became of the others."""

    strings: tuple[str, ...]
    counts: Float64Array
    read: int
    joined: int
    left_out: dict[str, int]

    def __repr__(self) -> str:
        return f"Cleaned({len(self.strings)} strings of {self.read})"


def reason_to_leave_out(string: str) -> str | None:
    """Why the rule leaves a string out; None: it stays."""
    if len(string) > MOST_CHARACTERS or len(string.split()) > MOST_WORDS:
        return TOO_LONG
    for reason, pattern in LEFT_OUT.items():
        if pattern.search(string):
            return reason
    return None if _LETTER.search(string) else NO_LETTER


def cleaned(strings: Iterable[str], least: int = 1, thin: int = 1) -> Cleaned:
    """Strings by the rule of this module; those that come less often than ``least`` are left out.

    Of those that are left one in ``thin`` is kept, by their hashes: whoever has the source makes
    the same pool. They are read one at a time: memory grows with how many different ones there are.
    """
    if least < 1:
        raise UsageError(f"a string comes at least once: take a least of 1 or more, not {least}")
    if thin < 1:
        raise UsageError(f"keep one string in 1 (all), 2, 3 or more, not in {thin}")
    kept: dict[str, str] = {}
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for string in strings:
        if (reason := reason_to_leave_out(string)) is not None:
            left_out[reason] += 1
            continue
        folded, spaced = folded_text(string), single_spaced(string)
        # Mostly they are equal: then one object will do for both.
        kept.setdefault(folded, folded if folded == spaced else spaced)
        counts[folded] += 1
    joined = counts.total() - len(kept)
    read = counts.total() + left_out.total()
    if least > 1:
        kept = {folded: string for folded, string in kept.items() if counts[folded] >= least}
        if rare := len(counts) - len(kept):
            left_out[TOO_RARE] = rare
    if thin > 1 and kept:
        chosen = _one_in(thin, [*kept])
        if not_chosen := len(kept) - len(chosen):
            left_out[NOT_CHOSEN.format(thin=thin)] = not_chosen
        kept = {folded: string for folded, string in kept.items() if folded in chosen}
    if not kept:
        raise UsageError(f"none of the {read} strings is left for a pool: take another source")
    numbers = np.fromiter((counts[folded] for folded in kept), dtype=np.float64, count=len(kept))
    return Cleaned(tuple(kept.values()), numbers, read, joined, dict(left_out.most_common()))


def _one_in(thin: int, strings: Sequence[str]) -> set[str]:
    """Those with the smallest hashes, in whatever order they come; of these again one in so many.

    A rule for each alone would keep all of a list that it has thinned.
    """
    digests = (
        hashlib.sha256(string.encode("utf-8", "surrogatepass")).digest() for string in strings
    )
    numbers = np.fromiter((int.from_bytes(digest[:8]) for digest in digests), dtype=np.uint64)
    order = np.argsort(numbers, kind="stable")
    return {strings[place] for place in order[: math.ceil(len(strings) / thin)].tolist()}
