"""The ledger inside one transaction: its tables, and a chain of records that can only grow.

Each record carries a keyed hash over itself and the one before it, and the running totals of its
text and its promise. A decision about a budget thus reads a few records, whose hashes it checks,
however long the ledger is; ``check`` goes through all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sottovoce.ledger.entries import Budget, DamagedLedgerError, Entry, Record, Spent
from sottovoce.text.comparing import folded_text

VERSION = 2
APPLICATION = int.from_bytes(b"sotv")

# REPLACE deletes rows without asking a DELETE trigger: a record's number must be the next one.
GUARDS = {
    "records_appended": "BEFORE INSERT ON records "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM records)",
    "records_unchanged": "BEFORE UPDATE ON records",
    "records_kept": "BEFORE DELETE ON records",
    "words_appended": "BEFORE INSERT ON words "
    "WHEN EXISTS (SELECT 1 FROM words WHERE word = NEW.word)",
    "words_unchanged": "BEFORE UPDATE ON words",
    "words_kept": "BEFORE DELETE ON words",
}

CREATE_GUARDS = [
    f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END"
    for name, when in GUARDS.items()
]
DROP_GUARDS = [f"DROP TRIGGER {name}" for name in GUARDS]

CREATE_TABLES = f"""
BEGIN;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    text TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    space TEXT,
    space_sha256 TEXT,
    release TEXT NOT NULL,
    variants INTEGER NOT NULL,
    notion TEXT NOT NULL,
    metric TEXT,
    epsilon REAL,
    releases INTEGER NOT NULL,
    protected INTEGER NOT NULL,
    in_clear INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    spent REAL,
    destination TEXT NOT NULL,
    repeats INTEGER,
    promise TEXT NOT NULL,
    text_total REAL,
    total REAL,
    link TEXT NOT NULL
);
CREATE INDEX records_by_promise ON records (promise);
CREATE INDEX records_by_text ON records (text, promise);
CREATE TABLE words (
    word TEXT PRIMARY KEY,
    record INTEGER NOT NULL,
    seal TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    records INTEGER NOT NULL,
    head TEXT NOT NULL,
    per_text REAL,
    total REAL,
    seal TEXT NOT NULL
);
{";".join(CREATE_GUARDS)};
COMMIT;
"""

KEY_BYTES = 32

_FIELDS = [field.name for field in fields(Record)]
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM records"  # noqa: S608 - names of our own
_RELEASES = "WHERE (repeats IS NULL OR variants > 0)"
"""All records but those that only note that something has left: see ``Record.counted_by``."""
_INSERT = f"INSERT INTO records VALUES ({', '.join('?' * len(_FIELDS))})"  # noqa: S608 - no values


class Key:
    """A secret under which texts and records are hashed; the ledger holds no text, but its hash."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, kind: str, *values: Any) -> str:
        """The keyed hash of some values; ``kind`` keeps uses apart."""
        message = json.dumps([kind, *values], default=repr).encode("ascii")
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def of_text(self, text: str) -> str:
        """What stands for a text in the ledger."""
        return self.seal("text", folded_text(text))

    def for_memory(self) -> bytes:
        """A key by which words are drawn; the secret itself cannot be computed from it."""
        return hmac.digest(self._secret, b"memory", "sha256")


@dataclass(frozen=True)
class _State:
    """How long the chain is, where it ends, and the budgets: the one row that changes."""

    records: int = 0
    head: str = ""
    per_text: float | None = None
    total: float | None = None


class Book:
    """Reads and appends records. It opens only if the last record is intact."""

    def __init__(self, connection: sqlite3.Connection, key: Key, folder: Path) -> None:
        self._connection, self._key, self._folder = connection, key, folder
        self._state = self._read_state()
        last = self._last("")
        end = (last.number, last.link) if last else (0, "")
        if end != (self._state.records, self._state.head):
            raise self._damaged("its last record is not the one that was written last")

    @staticmethod
    def begin(connection: sqlite3.Connection, key: Key) -> None:
        """Write the state of an empty ledger."""
        state = astuple(_State())
        connection.execute(
            "INSERT INTO state VALUES (1, ?, ?, ?, ?, ?)", (*state, key.seal("state", *state))
        )

    @property
    def memory_key(self) -> bytes:
        """The key by which words are drawn that are to be remembered."""
        return self._key.for_memory()

    @property
    def name(self) -> str:
        """What tells this ledger from any other, for those without the key."""
        return self._key.seal("ledger")[:32]

    @property
    def end(self) -> tuple[int, str]:
        """How many records there are, and the hash of the last one."""
        return self._state.records, self._state.head

    def has(self, number: int, link: str) -> bool:
        """Whether the record of a number is the one with this hash."""
        row = self._connection.execute(
            "SELECT link FROM records WHERE number = ?", (number,)
        ).fetchone()
        return (row[0] if row else "") == link

    # Budgets

    @property
    def budget(self) -> Budget:
        """The limits in force."""
        return Budget(self._state.per_text, self._state.total)

    def set_budget(self, budget: Budget) -> None:
        """Change the limits; what was spent stays spent."""
        per_text, total = _real(budget.per_text), _real(budget.total)
        self._write_state(replace(self._state, per_text=per_text, total=total))

    # Reading

    def totals(self, text: str, promise: str) -> tuple[float | None, float | None]:
        """What was spent under a promise, on this text and in all; None: nothing bounds it."""
        return self._totals(self._key.of_text(text), promise)

    def spent(self, text: str | None) -> list[Spent]:
        """The totals of every promise over all releases, of one text or of all."""
        where, values = self._about(text)
        column = "total" if text is None else "text_total"
        limit = self.budget.total if text is None else self.budget.per_text
        rows = self._connection.execute(
            "SELECT notion, metric, space, "  # noqa: S608
            f"CASE notion WHEN 'metric' THEN space_sha256 END, {column}, sent, lines, free, clear "
            "FROM records JOIN (SELECT min(number) AS first, max(number) AS last, "
            "sum(releases) AS sent, count(*) AS lines, sum(spent IS NULL) AS free, "
            "sum(in_clear) AS clear "
            f"FROM records {where} GROUP BY promise) ON number = last ORDER BY first",
            values,
        )
        return [
            Spent(notion, metric, space, nats, sent, lines, free, clear, left(limit, nats), sha256)
            for notion, metric, space, sha256, nats, sent, lines, free, clear in rows
        ]

    def records(self, text: str | None, limit: int) -> list[Record]:
        """The records of the latest releases, of one text or of all, newest first."""
        where, values = self._about(text)
        rows = self._connection.execute(
            f"{_SELECT} {where} ORDER BY number DESC LIMIT ?", (*values, limit)
        )
        return [Record(*row) for row in rows]

    def record(self, number: int) -> Record:
        """The record of a number."""
        record = self._last("WHERE number = ?", number)
        if record is None:
            raise self._damaged(f"record {number} was removed")
        return record

    def released_words(self, words: Iterable[str]) -> dict[str, int]:
        """Which of these words (keyed hashes) were released before, and by which record."""
        rows = (
            self._connection.execute(
                "SELECT word, record, seal FROM words WHERE word = ?", (word,)
            ).fetchone()
            for word in words
        )
        return dict(self._opened(*row) for row in rows if row is not None)

    def hidden_among(self, texts: Iterable[str], least: int) -> int:
        """How many of these texts have a record; 0, unseen, if fewer than ``least`` texts have."""
        rows = self._connection.execute("SELECT DISTINCT text FROM records")
        hidden = {text for (text,) in rows}
        if len(hidden) < least:
            return 0
        return sum(self._key.of_text(text) in hidden for text in texts)

    def check(self) -> int:
        """Check every record; answers how many there are, or raises what is wrong."""
        if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise self._damaged("the database is not sound")
        link, count = "", 0
        for count, row in enumerate(self._connection.execute(f"{_SELECT} ORDER BY number"), 1):
            record = Record(*row)
            if record.number != count or record.link != self._link(record, link):
                raise self._damaged(f"record {count} was changed or removed")
            link = record.link
        for row in self._connection.execute("SELECT word, record, seal FROM words"):
            self._opened(*row)
        return count

    # Writing

    def append(self, entry: Entry, *, repeats: int | None = None) -> Record:
        """Write down a release; one that ``repeats`` a record costs nothing."""
        return self._append(
            Record(
                number=0,
                time="",
                text=self._key.of_text(entry.text),
                mechanism=entry.mechanism,
                space=entry.space,
                space_sha256=entry.space_sha256,
                release=entry.release,
                variants=len(entry.variants),
                notion=entry.guarantee.notion,
                metric=entry.promise.metric,
                epsilon=_real(entry.guarantee.epsilon),
                releases=entry.releases if repeats is None else 0,
                protected=entry.protected,
                in_clear=entry.in_clear,
                unknown=entry.unknown,
                spent=_real(entry.spent) if repeats is None else 0.0,
                destination=entry.destination,
                repeats=repeats,
                promise=str(entry.promise),
                text_total=None,
                total=None,
                link="",
            )
        )

    def append_leaving(self, counted: Record) -> Record:
        """Write down that what a record counted leaves now: no other release, at no cost."""
        return self._append(
            replace(counted, variants=0, releases=0, spent=0.0, repeats=counted.number)
        )

    def remember(self, words: Iterable[str], record: Record) -> None:
        """Note by which record words (keyed hashes) were released, those that are not noted yet."""
        noted = self.released_words(words := [*words])
        rows = [(word, record.number) for word in dict.fromkeys(words) if word not in noted]
        self._connection.executemany(
            "INSERT INTO words VALUES (?, ?, ?)",
            [(*row, self._key.seal("word", *row)) for row in rows],
        )

    def forget(self) -> None:
        """Remove every record and all remembered words; the budgets stay."""
        for statement in DROP_GUARDS:
            self._connection.execute(statement)
        self._connection.execute("DELETE FROM records")
        self._connection.execute("DELETE FROM words")
        for statement in CREATE_GUARDS:
            self._connection.execute(statement)
        self._write_state(replace(self._state, records=0, head=""))

    # Inside

    def _about(self, text: str | None) -> tuple[str, tuple[str, ...]]:
        if text is None:
            return _RELEASES, ()
        return f"{_RELEASES} AND text = ?", (self._key.of_text(text),)

    def _totals(self, text_hash: str, promise: str) -> tuple[float | None, float | None]:
        of_text = self._last("WHERE text = ? AND promise = ?", text_hash, promise)
        of_all = self._last("WHERE promise = ?", promise)
        return (of_text.text_total if of_text else 0.0), (of_all.total if of_all else 0.0)

    def _last(self, where: str, *values: object) -> Record | None:
        """The latest record that fits; its hash is checked."""
        row = self._connection.execute(
            f"{_SELECT} {where} ORDER BY number DESC LIMIT 1", values
        ).fetchone()
        return None if row is None else self._checked(Record(*row))

    def _checked(self, record: Record) -> Record:
        before = self._connection.execute(
            "SELECT link FROM records WHERE number = ?", (record.number - 1,)
        ).fetchone()
        if record.link != self._link(record, before[0] if before else ""):
            raise self._damaged(f"record {record.number} was changed, or one before it removed")
        return record

    def _link(self, record: Record, before: str) -> str:
        return self._key.seal("record", before, *[*vars(record).values()][:-1])

    def _append(self, draft: Record) -> Record:
        """Give a record its number, time, totals and place in the chain."""
        of_text, of_all = self._totals(draft.text, draft.promise)
        record = replace(
            draft,
            number=self._state.records + 1,
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
            text_total=_sum(of_text, draft.spent),
            total=_sum(of_all, draft.spent),
        )
        record = replace(record, link=self._link(record, self._state.head))
        self._connection.execute(_INSERT, tuple(vars(record).values()))
        self._write_state(replace(self._state, records=record.number, head=record.link))
        return record

    def _opened(self, word: str, number: int, seal: str) -> tuple[str, int]:
        """A remembered word whose seal is right, and whose record is still there."""
        if seal != self._key.seal("word", word, number):
            raise self._damaged("a remembered word was changed")
        self.record(number)
        return word, number

    def _read_state(self) -> _State:
        row = self._connection.execute(
            "SELECT records, head, per_text, total, seal FROM state"
        ).fetchone()
        if row is None or row[-1] != self._key.seal("state", *row[:-1]):
            raise self._damaged("its state was changed, or the key is that of another ledger")
        return _State(*row[:-1])

    def _write_state(self, state: _State) -> None:
        self._connection.execute(
            "UPDATE state SET records = ?, head = ?, per_text = ?, total = ?, seal = ?",
            (*astuple(state), self._key.seal("state", *astuple(state))),
        )
        self._state = state

    def _damaged(self, problem: str) -> DamagedLedgerError:
        return DamagedLedgerError(self._folder, problem)


def left(limit: float | None, spent: float | None) -> float | None:
    """What remains of a budget; None where there is none."""
    if limit is None:
        return None
    return 0.0 if spent is None else max(0.0, limit - spent)


def _real(number: float | None) -> float | None:
    """The number as the database gives it back: hashes must not depend on 10 or 10.0."""
    return None if number is None else float(number)


def _sum(before: float | None, more: float | None) -> float | None:
    return None if before is None or more is None else before + more
