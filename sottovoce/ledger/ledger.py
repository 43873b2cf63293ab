"""Ledger: count first, then send."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sottovoce.errors import UsageError
from sottovoce.ledger import anchor, database, network
from sottovoce.ledger.book import Book, left
from sottovoce.ledger.entries import (
    Budget,
    BudgetError,
    Entry,
    LedgerError,
    OlderLedgerError,
    Promise,
    Receipt,
    Record,
    Spent,
)
from sottovoce.ledger.ways import Way, refuse_another_way, ways_of
from sottovoce.paths import ledger_folder

WAIT = 5.0
"""Seconds to wait for another process that is writing."""
ROUNDING = 1e-9
"""Share of a budget by which sums of floats may miss it: three times 0.1 is within 0.3."""


@dataclass(frozen=True)
class Ledger:
    """What has been released, what it cost, what is left, in a folder private to the user.

    Every call is one transaction, on disk when it returns; while one writes, other processes wait.
    Whatever fails raises, and then nothing may be sent.
    """

    folder: Path
    wait: float = WAIT

    @classmethod
    def open(cls, folder: Path | None = None, *, create: bool = True, wait: float = WAIT) -> Ledger:
        """Open the user's ledger, or that in ``folder``, and make it if there is none.

        ``wait`` is how many seconds to wait for another process that is writing.
        """
        ledger = cls(ledger_folder() if folder is None else Path(folder), wait)
        if create and not database.exists(ledger.folder):
            database.create(ledger.folder)
        with ledger._book():
            return ledger

    # Before something is sent

    def memory_key(self) -> bytes:
        """The key by which words are drawn that are to be remembered: for ``Obfuscator`` alone.

        Whoever has it can undo what was released by it.
        """
        with self._book() as book:
            return book.memory_key

    def charge(self, entry: Entry, *, leaving: bool = True) -> Receipt:
        """Count a release before it happens; raise ``BudgetError`` if it costs too much.

        While there is a budget, that is also raised if a word would go out in clear: no number of
        nats covers it.

        Words that were drawn to be remembered are noted in the same step. If all of them were
        noted before, these draws have been released already, and cost nothing; one new word among
        them costs what all would. What left for an engine elsewhere in company is refused any
        other company, and none, and what left in none is refused company.

        leaving
            Whether it leaves now. If not, it is counted and may be refused all the same, and
            ``note_leaving`` must be told before any of it leaves.
        """
        with self._book(write=True) as book:
            _refuse_in_clear(entry, book.budget)
            earlier = book.released_words(entry.words)
            repeats = entry.words and len(earlier) == len(entry.words)
            if not repeats:
                _refuse_overspending(entry, book)
            ways = ways_of(entry, book)
            refuse_another_way(ways, book)
            record = book.append(entry, repeats=max(earlier.values()) if repeats else None)
            book.remember(entry.words, record)
            if leaving:
                book.remember(_noted(ways), record)
            return _receipt(entry, record, book.budget)

    def note_leaving(self, receipt: Receipt) -> None:
        """Note that what was counted without ``leaving`` leaves now, or refuse it.

        It may have left in another way since it was counted. Where its way is not noted yet, it is
        together with a record, without which an older copy of the ledger would not be noticed.
        """
        with self._book(write=True) as book:
            record = receipt.record
            if not book.has(record.number, record.link):
                raise LedgerError(
                    "the ledger no longer has what was counted for this query, it was reset in "
                    "the meantime: draw the variants anew; nothing was sent"
                )
            ways = ways_of(receipt.entry, book)
            refuse_another_way(ways, book)
            noted = _noted(ways)
            if not book.released_words(noted).keys() >= {*noted}:
                book.remember(noted, book.append_leaving(record))

    # Looking

    def spent(self, text: str | None = None) -> list[Spent]:
        """What was spent on a text, or in all, under each promise: never summed over promises."""
        with self._book() as book:
            return book.spent(text)

    def remaining(self, text: str, promise: Promise) -> float:
        """The most that one more release of a text may cost; infinite without a budget."""
        with self._book() as book:
            limits = (book.budget.per_text, book.budget.total)
            remaining = map(left, limits, book.totals(text, str(promise)))
            return min((nats for nats in remaining if nats is not None), default=math.inf)

    def entries(self, limit: int = 20, *, text: str | None = None) -> list[Record]:
        """The records of the latest releases, newest first."""
        if limit < 0:
            raise UsageError("the number of records to show cannot be negative")
        with self._book() as book:
            return book.records(text, limit)

    def hidden_among(self, texts: Sequence[str], least: int = 1) -> int:
        """How many of these public texts were hidden before, as somebody's own.

        least
            With fewer texts in all that were hidden, the answer is 0, and no text is looked at.
        """
        with self._book() as book:
            return book.hidden_among(texts, least)

    def count_released(self, words: Sequence[str]) -> int:
        """How many of these words (keyed hashes, each once) were released to be remembered."""
        with self._book() as book:
            return len(book.released_words(words))

    def check(self) -> int:
        """Go through the whole ledger; the number of records, or ``DamagedLedgerError``."""
        with self._book() as book:
            return book.check()

    # Changing

    def budget(self) -> Budget:
        """The limits in force."""
        with self._book() as book:
            return book.budget

    def set_budget(self, per_text: float | None, total: float | None) -> None:
        """Limit what may be spent under each promise, in nats per unit; None for no limit."""
        budget = Budget(per_text, total)
        with self._book(write=True) as book:
            book.set_budget(budget)

    def reset(self) -> None:
        """Forget what was spent, and on which words. What was released stays released.

        Budgets and key stay: words get the same draws as before, and are charged for again.
        """
        with self._book(write=True) as book:
            anchor.remove(self.folder)
            book.forget()

    @staticmethod
    def set_aside(folder: Path | None = None) -> Path:
        """Rename a damaged ledger, so that the next ``open`` makes a new one; give its new path."""
        return database.set_aside(ledger_folder() if folder is None else Path(folder))

    @classmethod
    def accept_older(cls, folder: Path | None = None) -> Ledger:
        """Open a ledger that is an older copy, and go on with it."""
        place = ledger_folder() if folder is None else Path(folder)
        anchor.remove(place)
        ledger = cls.open(place, create=False)
        with ledger._book(write=True):
            return ledger

    @property
    def anchored(self) -> bool:
        """Whether an older copy of this ledger would be noticed."""
        noted = anchor.read(self.folder)
        with self._book() as book:
            return noted is not None and noted.ledger == book.name

    @property
    def remark(self) -> str | None:
        """What people should know of the place where the ledger is."""
        if (kind := network.file_system(self.folder)) is None:
            return None
        return (
            f"The ledger is on a folder of the network ({kind}). Whether two machines may use it "
            "at once depends on the server's locks: use it from one, or move it to this machine "
            "with SOTTOVOCE_HOME."
        )

    @contextmanager
    def _book(self, *, write: bool = False) -> Iterator[Book]:
        noted = anchor.read(self.folder)  # Before the ledger: it may grow in the meantime.
        with database.transaction(
            self.folder,
            wait=self.wait,
            write=write,
            after=lambda c, key: anchor.write(self.folder, Book(c, key, self.folder)),
        ) as (connection, key):
            book = Book(connection, key, self.folder)
            # If the anchor is another one now, somebody has reset the ledger in the meantime.
            if not anchor.holds(noted, book) and noted == anchor.read(self.folder):
                raise OlderLedgerError(self.folder, book.end[0], noted.records if noted else 0)
            yield book


def _receipt(entry: Entry, record: Record, budget: Budget) -> Receipt:
    return Receipt(
        entry,
        record,
        left_for_text=left(budget.per_text, record.text_total),
        left_in_total=left(budget.total, record.total),
    )


def _noted(ways: Sequence[Way]) -> list[str]:
    """What is kept of ways, by keyed hashes."""
    return [*chain.from_iterable(way.noted for way in ways)]


def _refuse_in_clear(entry: Entry, budget: Budget) -> None:
    if not entry.in_clear or budget == Budget():
        return
    words = "1 word" if entry.in_clear == 1 else f"{entry.in_clear} words"
    raise BudgetError(
        f"there is a budget, and {words} would go out in clear, which no budget covers: leave out "
        "--keep and --unknown keep, protect every word with --protect all (and a mechanism that "
        "keeps none, see 'sottovoce mechanisms'), or remove the budget with 'sottovoce ledger "
        "budget --none'"
    )


def _refuse_overspending(entry: Entry, book: Book) -> None:
    cost, budget = entry.spent, book.budget
    if cost == 0 or budget == Budget():
        return
    if cost is None:
        raise BudgetError(
            "there is a budget, and nothing bounds what this release would cost: use a mechanism "
            "with a guarantee (see 'sottovoce mechanisms'), or remove the budget with 'sottovoce "
            "ledger budget --none'"
        )
    limits = (("for each text", budget.per_text), ("in total", budget.total))
    totals = book.totals(entry.text, str(entry.promise))
    for (name, limit), before in zip(limits, totals, strict=True):
        spent = math.inf if before is None else before
        if limit is not None and spent + cost > limit * (1 + ROUNDING):
            rest = max(0.0, limit - spent)
            raise BudgetError(
                f"this release would cost {cost:g} nats {entry.promise.unit}, but of the "
                f"budget of {limit:g} {name} {spent:g} are spent and {rest:g} are left: ask for "
                "fewer variants, release 'once' or a smaller epsilon, or raise the budget with "
                "'sottovoce ledger budget'",
                cost=cost,
                spent=spent,
                left=rest,
            )
