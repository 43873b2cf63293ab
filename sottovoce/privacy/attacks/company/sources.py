"""Attacks on where decoys come from: what can be listed, or is seen again and again, is a decoy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float64Array

RULED_OUT = -1e6
"""The log-odds of a string that is known for a decoy: less than any belief, and still compared."""


def subtraction(seen: Sequence[SeenSet], decoys: Collection[str]) -> list[Float64Array]:
    """Strings of the list of decoys are taken out of every set; one of the rest is meant."""
    listed = frozenset(map(folded_text, decoys))
    return [
        one.inside + RULED_OUT * np.array([folded_text(string) in listed for string in one.strings])
        for one in seen
    ]


def recurrence(seen: Sequence[SeenSet]) -> list[Float64Array]:
    """The list is not known, but strings that other people's sets hold, too, may be on it."""
    persons: dict[str, set[str]] = {}
    for one in seen:
        for string in one.strings:
            persons.setdefault(string, set()).add(one.person)
    return [one.inside - np.log([len(persons[string]) for string in one.strings]) for one in seen]
