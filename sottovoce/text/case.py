"""The case pattern of a word, and giving it to another."""

from __future__ import annotations


def restore_case(original: str, substitute: str) -> str:
    """Put the substitute in UPPER, Title or lower case like the original, or leave it as it is.

    A single capital counts as Title: it mostly begins a sentence.
    """
    if original.islower():
        return substitute.lower()
    cased = [letter for letter in original if letter.lower() != letter.upper()]
    if not cased:
        return substitute
    if all(letter.islower() for letter in cased[1:]):
        return substitute.capitalize()
    if original.isupper():
        return substitute.upper()
    return substitute
