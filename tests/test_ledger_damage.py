"""A ledger that was damaged, changed, or cannot be written: then nothing may be sent."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import finish, start
from ledger_children import SECRET, WORDS, entry, opened

from sottovoce.ledger import Budget, DamagedLedgerError, Ledger, LedgerError


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger", wait=0.2)


@pytest.fixture(scope="module")
def forty_records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forty") / "ledger"
    for _ in range(40):
        Ledger.open(folder).charge(entry())
    return folder


@pytest.fixture
def long_ledger(forty_records, tmp_path):
    """A ledger of several pages."""
    return Ledger.open(shutil.copytree(forty_records, tmp_path / "ledger"))


# What was written stays


@contextmanager
def unguarded(ledger):
    """The database for somebody who removes the triggers first."""
    with opened(ledger) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        guards = guards.fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET spent = 0",
        "UPDATE records SET number = number + 10",
        "DELETE FROM records",
        "DELETE FROM records WHERE number = 2",
        "INSERT OR REPLACE INTO records SELECT * FROM records WHERE number = 1",
        "UPDATE words SET record = 2",
        "DELETE FROM words",
        "INSERT OR REPLACE INTO words SELECT * FROM words",
    ],
)
def test_the_database_refuses_to_change_or_remove_a_record(ledger, statement):
    ledger.charge(entry(words=WORDS))
    ledger.charge(entry())
    with pytest.raises(sqlite3.IntegrityError, match="only grows"), opened(ledger) as connection:
        connection.execute(statement)
    assert ledger.check() == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET spent = 0.5 WHERE number = 2",
        "UPDATE records SET destination = 'nobody' WHERE number = 1",
        "UPDATE records SET text = x'00ff' WHERE number = 2",
        "UPDATE records SET total = 0 WHERE number = 3",
        "UPDATE records SET link = '' WHERE number = 2",
        "DELETE FROM records WHERE number = 1",
        "DELETE FROM records WHERE number = 2",
        "DELETE FROM records WHERE number = 3",
        "DELETE FROM records",
        "INSERT INTO records SELECT 4, time, text, mechanism, space, space_sha256, release, "
        "variants, notion, metric, epsilon, releases, protected, in_clear, unknown, spent, "
        "destination, repeats, promise, text_total, total, link FROM records WHERE number = 3",
        "UPDATE state SET records = 2, head = (SELECT link FROM records WHERE number = 2)",
        "UPDATE state SET per_text = 1e9",
        "DELETE FROM state",
        "UPDATE words SET record = 1",
        "UPDATE words SET word = word || '0'",
        "INSERT INTO words VALUES ('0a', 1, '')",
    ],
)
def test_a_check_notices_what_was_changed_or_removed(ledger, statement):
    for words in ((), WORDS, ()):
        ledger.charge(entry(words=words))
    assert ledger.check() == 3
    with unguarded(ledger) as connection:
        connection.execute(statement)
    with pytest.raises(DamagedLedgerError, match="reset"):
        ledger.check()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET total = 0, text_total = 0 WHERE number = 2",
        "DELETE FROM records WHERE number = 2",
        "UPDATE state SET total = NULL",
    ],
)
def test_a_budget_is_not_judged_by_records_that_were_changed(ledger, statement):
    ledger.set_budget(None, 5)
    ledger.charge(entry())
    ledger.charge(entry())
    with unguarded(ledger) as connection:
        connection.execute(statement)
    with pytest.raises(DamagedLedgerError):
        ledger.charge(entry())


@pytest.mark.parametrize(
    "statement", ["INSERT INTO words VALUES ('0a', 1, '3f')", "UPDATE words SET word = '0a'"]
)
def test_nobody_without_the_key_makes_a_word_cost_nothing(ledger, statement):
    ledger.charge(entry(words=WORDS[:1]))
    with unguarded(ledger) as connection:
        connection.execute(statement)
    with pytest.raises(DamagedLedgerError):
        ledger.charge(entry(words=("0a",)))


# Damage


def cut(file, size):
    os.truncate(file, size)


def overwrite(file, start, content):
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(content)


DAMAGE = {
    "not a database": lambda db, key: db.write_bytes(b"melanoma" * 1000),
    "empty": lambda db, key: cut(db, 0),
    "cut inside a page": lambda db, key: cut(db, 5000),
    "cut after a page": lambda db, key: cut(db, 8192),
    "pages of noise": lambda db, key: overwrite(db, 4096, bytes(range(256)) * 200),
    "another program's": lambda db, key: overwrite(db, 68, b"\0\0\0\1"),
    "no database": lambda db, key: db.unlink(),
    "no key": lambda db, key: key.unlink(),
    "short key": lambda db, key: cut(key, 31),
    "another key": lambda db, key: overwrite(key, 0, bytes(32)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_ledger_counts_nothing_and_is_not_replaced(long_ledger, kind):
    ledger = long_ledger
    DAMAGE[kind](ledger.folder / "ledger.db", ledger.folder / "ledger.key")
    before = {each.name: each.read_bytes() for each in ledger.folder.glob("ledger.*")}
    for attempt in (
        lambda: ledger.charge(entry()),
        lambda: Ledger.open(ledger.folder).charge(entry()),
        lambda: ledger.set_budget(None, None),
    ):
        with pytest.raises(DamagedLedgerError, match="ledger reset") as error:
            attempt()
        assert SECRET not in str(error.value)
    after = {each.name: each.read_bytes() for each in ledger.folder.glob("ledger.*")}
    assert {name: after.get(name) for name in before} == before
    assert set(after) - set(before) <= {"ledger.db-wal", "ledger.db-shm"}


@pytest.mark.parametrize("behind_the_text", [b"cmp:epsilon=1", b"metric euclidean"])
def test_a_flipped_bit_is_found_by_a_check(long_ledger, behind_the_text):
    """In a record, where the mechanism follows the text, or in an index, where the promise does."""
    text = long_ledger.entries(1)[0].text.encode()
    file = long_ledger.folder / "ledger.db"
    content = bytearray(file.read_bytes())
    content[content.index(text + behind_the_text)] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedLedgerError):
        long_ledger.check()


def test_a_ledger_of_another_version_is_left_alone(ledger):
    ledger.charge(entry())
    with opened(ledger) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(LedgerError, match="layout 3") as error:
        ledger.charge(entry())
    assert not isinstance(error.value, DamagedLedgerError)


def test_a_folder_of_other_things_is_no_ledger(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DamagedLedgerError, match="missing"):
        Ledger.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="Not a directory"):
        Ledger.open(tmp_path / "file")


def test_a_damaged_ledger_can_be_set_aside(ledger):
    ledger.charge(entry())
    damaged = (ledger.folder / "ledger.db").read_bytes()[:5000]
    (ledger.folder / "ledger.db").write_bytes(damaged)
    aside = Ledger.set_aside(ledger.folder)
    assert (aside / "ledger.db").read_bytes() == damaged
    assert Ledger.open(ledger.folder).check() == 0


def test_a_reset_forgets_records_and_words_and_leaves_no_trace(ledger):
    for number in range(9):
        ledger.charge(entry(words=(f"{number}" * 64,)))
    key = ledger.memory_key()
    hashed = ledger.entries()[0].text.encode()
    ledger.set_budget(100, 200)
    ledger.reset()
    assert ledger.spent() == []
    assert ledger.memory_key() == key
    assert ledger.budget() == Budget(100.0, 200.0)
    written = b"".join(each.read_bytes() for each in ledger.folder.iterdir())
    assert b"1" * 64 not in written
    assert hashed not in written
    assert not ledger.charge(entry(words=("1" * 64,))).recalled
    assert ledger.check() == 1


# A system that does not let us write


def test_a_locked_ledger_is_waited_for_and_then_refused(ledger):
    with opened(ledger) as connection:
        connection.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(LedgerError, match=r"another program .* 0\.2 s"):
            ledger.charge(entry())
        assert 0.1 < time.monotonic() - begun < 5
        assert ledger.spent() == []
    ledger.charge(entry())


@contextmanager
def nobody_special(folder):
    """Root may write anywhere: be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    for each in (folder, *folder.rglob("*")):
        os.chown(each, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_place():
    """A folder that every user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o500, 0o400), (0o500, 0o600), (0, 0o600)])
def test_a_read_only_ledger_counts_nothing(public_place, folder_mode, file_mode):
    ledger = Ledger.open(public_place / "ledger")
    ledger.charge(entry())
    (ledger.folder / "ledger.db").chmod(file_mode)
    ledger.folder.chmod(folder_mode)
    with nobody_special(public_place), pytest.raises(LedgerError, match="SOTTOVOCE_HOME"):
        ledger.charge(entry())
    ledger.folder.chmod(0o700)
    (ledger.folder / "ledger.db").chmod(0o600)
    assert ledger.check() == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
def test_a_ledger_cannot_be_made_where_nobody_may_write(public_place):
    public_place.chmod(0o500)
    with nobody_special(public_place), pytest.raises(LedgerError, match="Permission denied"):
        Ledger.open(public_place / "ledger")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
@pytest.mark.parametrize("name", ["", "ledger.db", "ledger.key"])
def test_a_ledger_that_others_may_read_is_refused(ledger, name):
    (ledger.folder / name).chmod(0o740)
    with pytest.raises(LedgerError, match="chmod go="):
        ledger.charge(entry())


FULL = """
import json, resource, sys
from pathlib import Path
from ledger_children import entry
from sottovoce.ledger import Ledger, LedgerError

ledger = Ledger.open(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
counted = 0
for _ in range(1000):
    try:
        ledger.charge(entry(words=(f"{counted:02000}",)))
        counted += 1
    except LedgerError as error:
        print(json.dumps([counted, type(error).__name__, str(error)]))
        break
"""


@pytest.mark.parametrize("room", [0, 30_000, 200_000])
def test_on_a_full_disk_nothing_is_counted_halfway(ledger, room):
    """Files may not grow beyond ``room`` bytes, as if the disk ended there."""
    counted, kind, message = json.loads(finish(start(FULL, ledger.folder, room)))
    assert kind == "LedgerError"
    assert "make room" in message
    assert SECRET not in message
    assert counted <= ledger.check() <= counted + 1
    ledger.charge(entry())
    ledger.check()


def test_a_database_that_may_not_grow_counts_nothing(ledger, monkeypatch):
    connect = sqlite3.connect

    def limited(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    counted = 0

    def fill():
        nonlocal counted
        for counted in range(1000):
            ledger.charge(entry(words=(str(counted),)))

    with pytest.raises(LedgerError, match="make room"):
        fill()
    monkeypatch.undo()
    assert ledger.check() == counted


def test_what_is_counted_is_synchronised_in_full(ledger, monkeypatch):
    connect = sqlite3.connect
    levels = []

    class Watched(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement == "COMMIT":
                (level,) = super().execute("PRAGMA synchronous").fetchone()
                (mode,) = super().execute("PRAGMA journal_mode").fetchone()
                levels.append((level, mode))
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=Watched, **o))
    ledger.charge(entry())
    assert levels == [(2, "wal")]
