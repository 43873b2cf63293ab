"""kill -9 at every step, and many processes at once: what was sent is always counted."""

from __future__ import annotations

import signal
import sqlite3
import time

import pytest
from ledger_children import KEPT, SECRET, entry, finish, nats, opened, start

from sottovoce.ledger import Budget, Ledger, LedgerError
from sottovoce.ledger.database import create


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger", wait=0.2)


# kill -9

# One process for each step at which it is killed: before and after every statement of SQLite and
# every call that puts something on disk. Its work goes on in a copy of the same ledger.
EVERY_STEP = """
import os, shutil, signal, sqlite3, sys
from functools import partial
from pathlib import Path
from ledger_children import entry, send
from sottovoce.ledger import Ledger

job, start, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
steps = 0

def step():
    global steps
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

def around(function):
    def call(*arguments, **options):
        step()
        result = function(*arguments, **options)
        step()
        return result
    return call

class Watched(sqlite3.Connection):
    execute = around(sqlite3.Connection.execute)
    executescript = around(sqlite3.Connection.executescript)
    close = around(sqlite3.Connection.close)

last = 0
while True:
    folder, sent = work / str(last) / "ledger", work / str(last) / "sent"
    folder.parent.mkdir()
    if start.exists():
        shutil.copytree(start, folder)
    child = os.fork()
    if not child:
        sqlite3.connect = partial(sqlite3.connect, factory=Watched)
        for name in ("open", "fsync", "rename"):
            setattr(os, name, around(getattr(os, name)))
        ledger = Ledger.open(folder)
        if job == "reset":
            ledger.reset()
        else:
            receipt = ledger.charge(entry(), remember="key" if job == "remember" else None)
            step()
            send(" ".join(receipt.variants), sent)
        step()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        break
    last += 1
print(last)
"""


def killed_at_every_step(job, start_from, work):
    work.mkdir()
    points = int(finish(start(EVERY_STEP, job, start_from, work)))
    assert points > 20, "the child was killed at too few points to tell anything"
    for point in range(points):
        sent = work / str(point) / "sent"
        yield Ledger.open(work / str(point) / "ledger"), sent.exists() and bool(sent.read_text())


@pytest.mark.parametrize("begun", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_was_sent_is_counted_wherever_the_process_is_killed(tmp_path, begun):
    """Also while the ledger itself is being made."""
    start_from = tmp_path / "start"
    if begun:
        Ledger.open(start_from).charge(entry())
    before = 2.0 * begun
    seen = set()
    for ledger, sent in killed_at_every_step("charge", start_from, tmp_path / "work"):
        counted = nats(ledger) - before
        assert counted == 2.0 if sent else counted in (0.0, 2.0)
        assert ledger.check() == (before + counted) / 2
        ledger.charge(entry())
        assert nats(ledger) == before + counted + 2.0
        seen.add((counted, sent))
    assert seen == {(0.0, False), (2.0, False), (2.0, True)}


def test_a_remembered_charge_is_neither_lost_nor_doubled_by_a_kill(tmp_path):
    start_from = tmp_path / "start"
    Ledger.open(start_from)
    seen = set()
    for ledger, sent in killed_at_every_step("remember", start_from, tmp_path / "work"):
        counted = nats(ledger)
        again = ledger.recall(SECRET, "key", destination="bm25")
        assert (again is not None) == (counted == 2.0)
        assert counted or not sent
        assert ledger.charge(entry(), remember="key").variants == KEPT
        assert nats(ledger) == 2.0
        ledger.check()
        seen.add((counted, sent))
    assert seen == {(0.0, False), (2.0, False), (2.0, True)}


@pytest.mark.slow
def test_a_killed_reset_forgets_all_or_nothing_and_keeps_the_budget(tmp_path):
    ledger = Ledger.open(tmp_path / "start")
    ledger.charge(entry(), remember="key")
    ledger.set_budget(3, 4)
    seen = set()
    for each, _ in killed_at_every_step("reset", tmp_path / "start", tmp_path / "work"):
        assert each.budget() == Budget(3.0, 4.0)
        kept = each.check()
        assert (each.recall(SECRET, "key", destination="bm25") is None) == (kept == 0)
        with opened(each) as connection:
            guards = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'")
            assert len(guards.fetchall()) == 6
        seen.add(kept)
    assert seen == {0, 1}


SENDING = """
import sys
from pathlib import Path
from ledger_children import entry, send
from sottovoce.ledger import Ledger

folder, sent = map(Path, sys.argv[1:3])
ledger = Ledger.open(folder)
print("ready", flush=True)
while True:
    ledger.charge(entry())
    send("x", sent)
"""


def test_a_process_killed_at_any_moment_has_counted_what_it_sent(tmp_path, ledger):
    sent = tmp_path / "sent"
    counted = 0
    for moment in (0.0, 0.003, 0.011, 0.02, 0.05, 0.1):
        with start(SENDING, ledger.folder, sent) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
        before, counted = counted, ledger.check()
        lines = sent.read_text().count("x") if sent.exists() else 0
        sent.write_text("")
        assert lines <= counted - before <= lines + 1
    assert counted
    assert nats(ledger) == 2.0 * counted


# Many processes

SPENDING = """
import sys
from pathlib import Path
from ledger_children import entry
from sottovoce.ledger import BudgetError, Ledger

ledger = Ledger.open(Path(sys.argv[1]), wait=60)
done = 0
for _ in range(int(sys.argv[2])):
    try:
        ledger.charge(entry(releases=1))
        done += 1
    except BudgetError:
        pass
print(done)
"""


def test_processes_that_charge_at_once_never_overspend(ledger):
    ledger.set_budget(None, 25)
    processes = [start(SPENDING, ledger.folder, 20) for _ in range(3)]
    assert sum(int(finish(each)) for each in processes) == 25
    assert nats(ledger) == 25.0
    assert ledger.check() == 25


def test_processes_that_begin_at_once_share_one_ledger(tmp_path):
    folder = tmp_path / "deep" / "ledger"
    processes = [start(SPENDING, folder, 3) for _ in range(4)]
    assert sum(int(finish(each)) for each in processes) == 12
    assert Ledger.open(folder, create=False).check() == 12
    assert [each.name for each in folder.parent.iterdir()] == ["ledger"]


def test_who_comes_second_in_making_a_ledger_uses_the_first(ledger):
    ledger.charge(entry())
    create(ledger.folder)
    assert ledger.check() == 1
    assert [each.name for each in ledger.folder.parent.iterdir()] == ["ledger"]


def test_a_ledger_put_aside_in_the_meantime_is_not_written(ledger, monkeypatch):
    connect = sqlite3.connect

    def replaced(*arguments, **options):
        monkeypatch.undo()
        connection = connect(*arguments, **options)
        connection.execute("SELECT * FROM state").fetchall()
        aside.append(Ledger.set_aside(ledger.folder))
        Ledger.open(ledger.folder)
        return connection

    aside = []
    monkeypatch.setattr(sqlite3, "connect", replaced)
    with pytest.raises(LedgerError, match="try again"):
        ledger.charge(entry())
    ledger.charge(entry())
    assert [Ledger.open(each).check() for each in (ledger.folder, *aside)] == [1, 0]
