"""In which way a query has left: in company, and in which, or in none. There is one way for each.

An engine that gets a query in two companies looks for what they have in common; one that gets it by
its words, too, for what of the company fits them. So the ledger notes the text and what stands for
it in company, by keyed hashes: alone, and together with the way. What is noted in one way is
refused any other, and so is a text for which another public string stands than before, since it
would bring another company. All engines elsewhere count as one: who reads what they get is not
known here.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sottovoce.ledger.book import Book, Key
from sottovoce.ledger.entries import Entry, OtherCompanyError
from sottovoce.obfuscation.memory import key_fingerprint
from sottovoce.text.comparing import folded_text


class Way(NamedTuple):
    """What stands for a string that leaves: in whatever way, in this one, in no company."""

    whatever: str
    this: str
    alone: str

    @property
    def noted(self) -> tuple[str, str]:
        """What the ledger keeps."""
        return self.whatever, self.this


def ways_of(entry: Entry, book: Book) -> list[Way]:
    """How the text leaves for an engine elsewhere, and what stands for it; none if it stays."""
    if not entry.elsewhere:
        return []
    public, company, text = entry.representative, entry.company, folded_text(entry.text)
    strings = () if public is None else (public, folded_text(public))
    if company is not None and entry.remembered_by != key_fingerprint(book.memory_key):
        # It was drawn afresh, or by another secret: no other company is this one.
        company = {**company, "afresh": secrets.token_hex(16)}
    key = Key(book.memory_key)
    this, alone = (key.seal("setting", setting) for setting in (company, None))
    ways = [
        Way(
            key.seal("company", string),
            key.seal("company", string, this),
            key.seal("company", string, alone),
        )
        for string in dict.fromkeys((text, *strings))
    ]
    if public is not None:
        # The company is that of the public string: another one brings another company.
        of_string = (key.seal("stands for", text, string) for string in (public, None))
        ways.append(Way(key.seal("stands for", text), *of_string))
    return ways


def refuse_another_way(ways: Sequence[Way], book: Book) -> None:
    """Raise ``OtherCompanyError`` if one of these strings has left in another way."""
    for way in ways:
        earlier = book.released_words(way)
        if way.whatever in earlier and way.this not in earlier:
            record = book.record(book.record(earlier[way.whatever]).counted_by)
            raise OtherCompanyError(record, in_company=way.alone not in earlier)
