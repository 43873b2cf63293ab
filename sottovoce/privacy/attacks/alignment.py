"""Word positions of a release: what an attacker lines up, and how guesses are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.releases import Released
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN

_PUNCTUATION = regex.compile(r"\p{P}+")
_OUTER_PUNCTUATION = regex.compile(r"^\p{P}+|\p{P}+$")


@dataclass(frozen=True, repr=False)
class Reading:
    """A token as it is compared, and the id of the word it stands for."""

    word: str
    id: int = UNKNOWN


class Reader:
    """Reads tokens: as they stand or, where the space knows no such word, without punctuation."""

    def __init__(self, space: WordSpace | None) -> None:
        self.space = space
        self._known: dict[str, Reading] = {}

    def tokens(self, text: str) -> tuple[Reading, ...]:
        """The whitespace tokens of a text."""
        return tuple(map(self.read, text.split()))

    def parts(self, token: str) -> list[str]:
        """A token cut at the punctuation inside it."""
        return [part for part in _PUNCTUATION.split(token) if part]

    def read(self, token: str) -> Reading:
        """One token, remembered."""
        if token not in self._known:
            self._known[token] = self._look_up(token)
        return self._known[token]

    def _look_up(self, token: str) -> Reading:
        folded = token.casefold()
        if self.space is None:
            return Reading(folded)
        bare = _OUTER_PUNCTUATION.sub("", token)
        for form in (folded, bare.casefold(), token, bare):
            if form and (found := self.space.id(form)) != UNKNOWN:
                return Reading(form.casefold(), found)
        return Reading(folded)


@dataclass(frozen=True, repr=False)
class Text:
    """One text: its true tokens, and the variants of each position."""

    id: str
    truth: tuple[Reading, ...]
    positions: tuple[tuple[Reading, ...], ...]

    def judge(self, guesses: Sequence[str | None]) -> tuple[int, bool]:
        """How many words were guessed, and whether the whole text was.

        Where words were left out or split, positions do not match those of the text; then a word
        counts as guessed wherever it stands.
        """
        truth = [each.word for each in self.truth]
        if len(truth) == len(guesses):
            right = sum(map(str.__eq__, truth, (guess or "" for guess in guesses)))
        else:
            right = (Counter(truth) & Counter(guess for guess in guesses if guess)).total()
        return right, bool(truth) and right == len(truth) == len(guesses)


def _lined_up(reader: Reader, released: Released, rows: list[list[str]]) -> Text:
    """The positions of a text; a compound whose parts were replaced one by one has several."""
    columns = list(zip(*rows, strict=True))
    truth = released.text.split()
    if len(truth) != len(columns):
        seen = tuple(tuple(map(reader.read, column)) for column in columns)
        return Text(released.id, reader.tokens(released.text), seen)
    own: list[Reading] = []
    positions: list[tuple[Reading, ...]] = []
    for word, column in zip(truth, columns, strict=True):
        cuts = [reader.parts(token) for token in (word, *column)]
        known = all(reader.read(token).id != UNKNOWN for token in column)
        if known or len(cuts[0]) < 2 or len({len(cut) for cut in cuts}) > 1:
            cuts = [[token] for token in (word, *column)]
        own += map(reader.read, cuts[0])
        positions += [tuple(map(reader.read, piece)) for piece in zip(*cuts[1:], strict=True)]
    return Text(released.id, tuple(own), tuple(positions))


def align(releases: Sequence[Released], space: WordSpace | None) -> tuple[list[Text], int] | str:
    """The positions of every text and how many texts have none, or why there are none at all.

    A word-by-word release keeps the number of words, so all variants of a text have as many. Texts
    without variants were not released, and are left out.
    """
    attacked = [each for each in releases if each.variants]
    if not any(each.text.split() for each in attacked):
        raise UsageError("there is no text to attack: give a file with at least one")
    reader = Reader(space)
    texts = []
    for each in attacked:
        rows = [variant.split() for variant in each.variants]
        if len({len(row) for row in rows}) == 1:
            texts.append(_lined_up(reader, each, rows))
    uneven = len(attacked) - len(texts)
    if uneven > len(attacked) / 2:
        return (
            f"the variants of {uneven} of {len(attacked)} texts differ in their number of words: "
            "this is no word-by-word release, so there are no positions to compare"
        )
    return texts, uneven
