"""Word positions of a release: what an attacker lines up, and how his guesses are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from sottovoce.errors import UsageError
from sottovoce.privacy.releases import Released
from sottovoce.spaces.space import UNKNOWN, WordSpace

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
        return tuple(map(self._read, text.split()))

    def _read(self, token: str) -> Reading:
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


def align(releases: Sequence[Released], space: WordSpace | None) -> list[Text] | str:
    """The positions of every text, or why there are none.

    A word-by-word release keeps the number of words, so all variants of a text have as many.
    """
    if not any(each.text.split() for each in releases):
        raise UsageError("there is no text to attack: give a file with at least one")
    reader = Reader(space)
    texts = []
    uneven = 0
    for each in releases:
        rows = [reader.tokens(variant) for variant in each.variants]
        if len({len(row) for row in rows}) > 1:
            uneven += 1
        else:
            texts.append(Text(reader.tokens(each.text), tuple(zip(*rows, strict=True))))
    if uneven:
        return (
            f"the variants of {uneven} of {len(releases)} texts differ in their number of words: "
            "this is no word-by-word release, so there are no positions to compare"
        )
    return texts
