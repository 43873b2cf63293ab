"""Placeholders: what stands for an identifier in what is sent, and back again in the answer.

The table of what stands for what is in memory alone. It lasts as long as its request: a
conversation is sent whole each time, so that the same value gets the same placeholder again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import regex

from sottovoce.prompts.identifiers import Finder, Identifier, Listed, find_all, united

PLACEHOLDER = regex.compile(r"\[[A-Z][A-Z0-9_]*_[0-9]+\]")
LEAST_ALONE = 5
"""Values so long are replaced wherever they stand, also inside other words."""


class Piece(NamedTuple):
    """A piece of a text: as it is, or the placeholder that stands for it."""

    text: str
    is_placeholder: bool = False

    def __repr__(self) -> str:
        return f"Piece({len(self.text)} characters)"


class Table:
    """Values and their placeholders, in the order in which they were met."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """``taken``: texts whose own words may look like placeholders; none of these is used."""
        self._taken = {match for text in taken for match in PLACEHOLDER.findall(text)}
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Table({len(self)} values)"

    def placeholder(self, value: str, kind: str) -> str:
        """What stands for a value: the same each time."""
        if value not in self._placeholders:
            while True:
                self._numbers[kind] += 1
                placeholder = f"[{kind}_{self._numbers[kind]}]"
                if placeholder not in self._taken:
                    break
            self._placeholders[value] = placeholder
            self._values[placeholder] = value
        return self._placeholders[value]

    def value(self, placeholder: str) -> str | None:
        """What a placeholder stands for, if for anything."""
        return self._values.get(placeholder)

    @property
    def kinds(self) -> dict[str, int]:
        """How many different values there are of each kind."""
        return dict(Counter(name[1:].rpartition("_")[0] for name in self._values))

    def is_beginning(self, text: str) -> bool:
        """Whether some placeholder begins like this."""
        return any(placeholder.startswith(text) for placeholder in self._values)

    def stands_in(self, text: str) -> bool:
        """Whether a value that is long enough to tell something stands in a text."""
        return any(len(value) >= LEAST_ALONE and value in text for value in self._placeholders)

    def cut(self, texts: Sequence[str], finders: Sequence[Finder]) -> list[list[Piece]]:
        """Texts in pieces, with placeholders for all identifiers.

        A value that was found once is replaced wherever it stands, in all of the texts.
        """
        identifiers = [find_all(text, finders) for text in texts]
        for text, in_text in zip(texts, identifiers, strict=True):
            for start, end, kind in in_text:
                self.placeholder(text[start:end], kind)
        known = _Known(list(self._placeholders))
        return [
            self._pieces(text, united([*in_text, *known.find(text)]))
            for text, in_text in zip(texts, identifiers, strict=True)
        ]

    def _pieces(self, text: str, identifiers: list[Identifier]) -> list[Piece]:
        pieces, end = [], 0
        for identifier in identifiers:
            pieces.append(Piece(text[end : identifier.start]))
            value = text[identifier.start : identifier.end]
            pieces.append(Piece(self.placeholder(value, identifier.kind), is_placeholder=True))
            end = identifier.end
        pieces.append(Piece(text[end:]))
        return [piece for piece in pieces if piece.text]


class _Known:
    """Finds values that are in a table already."""

    name = "known"

    def __init__(self, values: Sequence[str]) -> None:
        everywhere = [value for value in values if len(value) >= LEAST_ALONE]
        self._short = Listed((value for value in values if len(value) < LEAST_ALONE), "VALUE")
        longest_first = sorted(everywhere, key=len, reverse=True)
        options = "|".join(map(regex.escape, longest_first))
        self._pattern = regex.compile(options) if options else None

    def find(self, text: str) -> list[Identifier]:
        matches = self._pattern.finditer(text) if self._pattern else ()
        exact = [Identifier(match.start(), match.end(), "VALUE") for match in matches]
        return [*exact, *self._short.find(text)]


class Restorer:
    """Puts values back into an answer that arrives in pieces.

    A placeholder may be split over pieces: what may be the beginning of one is held back. A
    placeholder inside a web address stays as it is: a model could be made to write an address that
    carries a value away as soon as it is opened, or shown as a picture.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._held = ""
        self._run = ""

    def feed(self, piece: str) -> str:
        """What can be shown by now."""
        text = self._held + piece
        start = text.rfind("[")
        held = start >= 0 and "]" not in text[start:] and self._table.is_beginning(text[start:])
        self._held = text[start:] if held else ""
        return self._restored(text[:start] if held else text)

    def finish(self) -> str:
        """What was held back, at the end."""
        text, self._held = self._held, ""
        return self._restored(text)

    @property
    def held(self) -> str:
        """What is held back."""
        return self._held

    def _restored(self, text: str) -> str:
        shown, end = [], 0
        for match in PLACEHOLDER.finditer(text):
            shown.append(self._passed(text[end : match.start()]))
            value = self._table.value(match.group())
            inside = "//" in self._run
            shown.append(self._passed(match.group() if value is None or inside else value))
            end = match.end()
        shown.append(self._passed(text[end:]))
        return "".join(shown)

    def _passed(self, text: str) -> str:
        """The text; and remember what of it belongs to the word that goes on."""
        words = regex.split(r"\s", self._run + text)
        self._run = "//" if "//" in words[-1] else words[-1][-1:]
        return text


def restore(text: str, table: Table) -> str:
    """A whole answer with its values."""
    restorer = Restorer(table)
    return restorer.feed(text) + restorer.finish()
