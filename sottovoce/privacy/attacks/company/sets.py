"""Sets as an attacker sees them: strings with vectors, and what the law says of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import SetMechanism
from sottovoce.text.comparing import folded_text
from sottovoce.types import UNKNOWN, Float32Array, Float64Array

RARELY_LEFT_OUT = 1e-3
"""Of a source whose law is not known: the query goes along but for this share of the sets, and any
other string comes by chance as rarely."""


@dataclass(frozen=True, repr=False)
class SeenSet:
    """One set: the strings that may stand for what was asked, one for each group.

    inside, outside
        ln P(this set | the string is meant), and ln P(a set without it | it is meant), up to a
        term that is the same for all strings.
    text, truth
        What was asked, and which string stands for it; ``UNKNOWN`` if chance left it out. They only
        decide whether an attacker is right.
    person
        Who asked it, as far as the attacker can tell: sets of one person are a session.
    """

    strings: tuple[str, ...]
    vectors: Float32Array
    inside: Float64Array
    outside: Float64Array
    text: str
    truth: int
    person: str

    @property
    def key(self) -> frozenset[str]:
        """The same for two sets of the same strings."""
        return frozenset(self.strings)

    def __repr__(self) -> str:
        return f"SeenSet({len(self.strings)} strings)"


def sets_of_cover(
    cover: SetMechanism,
    sets: Sequence[Sequence[str]],
    texts: Sequence[str],
    persons: Sequence[str] | None = None,
) -> list[SeenSet]:
    """The released strings of each text, read by one who knows pool, parameters and law."""
    owners = owners_of(sets, texts, persons)
    pool = cover.pool
    meant = cover.representatives(texts)
    seen = []
    for released, text, place, person in zip(sets, texts, meant.tolist(), owners, strict=True):
        heads = np.array(_heads(cover, released), dtype=np.int64)
        if not len(heads):
            raise UsageError(
                "of some set no group was released whole: attack what all queries were sent of"
            )
        (at,) = np.nonzero(heads == place)
        inside, outside = cover.log_odds(heads)
        seen.append(
            SeenSet(
                strings=tuple(pool.strings[head] for head in heads.tolist()),
                vectors=pool.vectors[heads],
                inside=inside,
                outside=outside,
                text=text,
                truth=int(at[0]) if len(at) else UNKNOWN,
                person=person,
            )
        )
    return seen


def seen_sets(
    sets: Sequence[Sequence[str]],
    texts: Sequence[str],
    encoder: Encoder,
    persons: Sequence[str] | None = None,
) -> list[SeenSet]:
    """Sets from any other source, which send the text itself; nothing is known of their law."""
    seen = []
    for strings, text, person in zip(sets, texts, owners_of(sets, texts, persons), strict=True):
        wanted = folded_text(text)
        folded = [folded_text(string) for string in strings]
        seen.append(
            SeenSet(
                strings=tuple(strings),
                vectors=encoder.encode(folded),
                inside=np.zeros(len(strings)),
                outside=np.full(len(strings), np.log(RARELY_LEFT_OUT)),
                text=text,
                truth=folded.index(wanted) if wanted in folded else UNKNOWN,
                person=person,
            )
        )
    return seen


def owners_of(
    sets: Sequence[Sequence[str]], texts: Sequence[str], persons: Sequence[str] | None
) -> list[str]:
    """Who asked; without persons, everybody asks once."""
    owners = list(map(str, range(len(sets)))) if persons is None else list(persons)
    if not len(sets) == len(texts) == len(owners):
        raise UsageError(
            f"{len(sets)} sets, {len(texts)} texts and {len(owners)} persons: give one of each"
        )
    if not sets or not all(len(strings) for strings in sets):
        raise UsageError("there is nothing to attack: there is no set, or one is empty")
    return owners


def _heads(cover: SetMechanism, released: Sequence[str]) -> list[int]:
    """The places of the strings that a set may have been made of.

    With groups those are the strings whose whole group was released; the others came along.
    """
    places = [cover.pool.place(string) for string in released]
    if None in places:
        raise UsageError(
            "some of what was released is no string of this pool: name the pool that was used "
            "with --pool"
        )
    found = [place for place in places if place is not None]
    if cover.set_size == cover.law.k:
        return found
    whole = frozenset(cover.pool.strings[place] for place in found)
    return [place for place in found if whole.issuperset(cover.strings(np.array([place])))]
