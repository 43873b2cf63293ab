"""The tables of a ledger. What is written into ``records`` and ``remembered`` stays as it is."""

from __future__ import annotations

VERSION = 1
APPLICATION = int.from_bytes(b"sotv")

# REPLACE deletes rows without asking a DELETE trigger: a record's number must be the next one.
GUARDS = {
    "records_appended": "BEFORE INSERT ON records "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM records)",
    "records_unchanged": "BEFORE UPDATE ON records",
    "records_kept": "BEFORE DELETE ON records",
    "remembered_appended": "BEFORE INSERT ON remembered "
    "WHEN EXISTS (SELECT 1 FROM remembered WHERE request = NEW.request)",
    "remembered_unchanged": "BEFORE UPDATE ON remembered",
    "remembered_kept": "BEFORE DELETE ON remembered",
}

CREATE_GUARDS = [
    f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END"
    for name, when in GUARDS.items()
]
DROP_GUARDS = [f"DROP TRIGGER {name}" for name in GUARDS]

CREATE = f"""
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
CREATE TABLE remembered (
    request TEXT PRIMARY KEY,
    record INTEGER NOT NULL,
    variants TEXT NOT NULL,
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
