"""kill -9 at every step, and many processes at once: what was sent is always counted."""

from __future__ import annotations

import os
import signal
import sqlite3
import time

import pytest
from cover_cases import in_company
from killing import finish, start
from ledger_children import SECRET, WORDS, entry, nats, opened

from sottovoce.ledger import Budget, Ledger, LedgerError, OtherCompanyError
from sottovoce.ledger.database import create


@pytest.fixture
def ledger(memory_disk):
    return Ledger.open(memory_disk / "ledger", wait=0.2)


# kill -9

# One process for each step at which it is killed: before and after every statement of SQLite and
# every call that puts something on disk. Its work goes on in a copy of the same ledger.
EVERY_STEP = """
import os, shutil, sqlite3, sys
from functools import partial
from pathlib import Path
from killing import around, kill_at_every_step, step, watch
from ledger_children import KEPT, WORDS, entry, send
from sottovoce.ledger import Ledger

job, start, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

class Watched(sqlite3.Connection):
    execute = around(sqlite3.Connection.execute)
    executescript = around(sqlite3.Connection.executescript)
    close = around(sqlite3.Connection.close)

def copy(place):
    if start.exists():
        shutil.copytree(start, place / "ledger")

def work(place):
    sqlite3.connect = partial(sqlite3.connect, factory=Watched)
    watch(os, "open", "fsync", "rename")
    ledger = Ledger.open(place / "ledger")
    if job == "reset":
        ledger.reset()
    else:
        words = WORDS if job == "remember" else ()
        receipt = ledger.charge(entry(words=words, elsewhere=True), leaving=job != "leave")
        if job == "leave":
            ledger.note_leaving(receipt)
        step()
        send(" ".join(KEPT), place / "sent")
    step()

print(kill_at_every_step(folder, work, before=copy))
"""


def killed_at_every_step(job, start_from, work):
    work.mkdir()
    points = int(finish(start(EVERY_STEP, job, start_from, work)))
    assert points > 20, "the child was killed at too few points to tell anything"
    for point in range(points):
        sent = work / str(point) / "sent"
        yield Ledger.open(work / str(point) / "ledger"), sent.exists() and bool(sent.read_text())


@pytest.mark.parametrize("begun", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_was_sent_is_counted_wherever_the_process_is_killed(memory_disk, begun):
    """Also while the ledger itself is being made."""
    start_from = memory_disk / "start"
    if begun:
        Ledger.open(start_from).charge(entry())
    before = 2.0 * begun
    seen = set()
    for ledger, sent in killed_at_every_step("charge", start_from, memory_disk / "work"):
        counted = nats(ledger) - before
        assert counted == 2.0 if sent else counted in (0.0, 2.0)
        assert ledger.check() == (before + counted) / 2
        ledger.charge(entry())
        assert nats(ledger) == before + counted + 2.0
        seen.add((counted, sent))
    assert seen == {(0.0, False), (2.0, False), (2.0, True)}


def test_a_remembered_charge_is_neither_lost_nor_doubled_by_a_kill(memory_disk):
    start_from = memory_disk / "start"
    Ledger.open(start_from)
    seen = set()
    for ledger, sent in killed_at_every_step("remember", start_from, memory_disk / "work"):
        counted = nats(ledger)
        assert counted or not sent
        assert ledger.charge(entry(words=WORDS)).recalled == (counted == 2.0)
        assert nats(ledger) == 2.0
        ledger.check()
        seen.add((counted, sent))
    assert seen == {(0.0, False), (2.0, False), (2.0, True)}


def test_what_was_sent_has_left_in_its_way_wherever_the_process_is_killed(memory_disk):
    start_from = memory_disk / "start"
    Ledger.open(start_from)
    seen = set()
    for ledger, sent in killed_at_every_step("leave", start_from, memory_disk / "work"):
        records = ledger.check()
        assert len(ledger.entries()) == min(records, 1)
        try:
            ledger.charge(in_company(SECRET))
            noted = False
        except OtherCompanyError:
            noted = True
        assert noted == (records == 2)
        assert noted or not sent
        seen.add((records, sent))
    assert seen == {(0, False), (1, False), (2, False), (2, True)}


@pytest.mark.slow
def test_a_killed_reset_forgets_all_or_nothing_and_keeps_the_budget(memory_disk):
    ledger = Ledger.open(memory_disk / "start")
    ledger.charge(entry(words=WORDS))
    ledger.set_budget(3, 4)
    seen = set()
    for each, _ in killed_at_every_step("reset", memory_disk / "start", memory_disk / "work"):
        assert each.budget() == Budget(3.0, 4.0)
        kept = each.check()
        with opened(each) as connection:
            guards = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'")
            assert len(guards.fetchall()) == 6
            (words,) = connection.execute("SELECT count(*) FROM words").fetchone()
            assert words == kept * len(WORDS)
        seen.add(kept)
    assert seen == {0, 1}


# A child for each line of input, which sends until it is killed.
SENDING = """
import os, sys
from pathlib import Path
from ledger_children import entry, send
from sottovoce.ledger import Ledger

folder, sent = map(Path, sys.argv[1:3])
for _ in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("dead", flush=True)
        continue
    ledger = Ledger.open(folder)
    print(os.getpid(), flush=True)
    while True:
        ledger.charge(entry())
        send("x", sent)
"""


def test_a_process_killed_at_any_moment_has_counted_what_it_sent(memory_disk, ledger):
    sent = memory_disk / "sent"
    process = start(SENDING, ledger.folder, sent)
    counted = 0
    for moment in (0.0, 0.003, 0.011, 0.02, 0.05, 0.1):
        process.stdin.write("send\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        assert process.stdout.readline() == "dead\n"
        before, counted = counted, ledger.check()
        lines = sent.read_text().count("x") if sent.exists() else 0
        sent.write_text("")
        assert lines <= counted - before <= lines + 1
    finish(process)
    assert counted
    assert nats(ledger) == 2.0 * counted


# Many processes

SPENDING = """
import os, sys
from pathlib import Path
from ledger_children import entry
from sottovoce.ledger import BudgetError, Ledger

folder, processes, times = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for _ in range(processes):
    if os.fork():
        continue
    ledger = Ledger.open(folder, wait=60)
    done = 0
    for _ in range(times):
        try:
            ledger.charge(entry(releases=1))
            done += 1
        except BudgetError:
            pass
    os.write(1, b"%d\\n" % done)
    os._exit(0)
for _ in range(processes):
    assert os.wait()[1] == 0
"""


def spent_at_once(folder, processes, times):
    """How often each of several processes could charge, of so many times that it tried."""
    done = finish(start(SPENDING, folder, processes, times)).split()
    assert len(done) == processes
    return list(map(int, done))


def test_processes_that_charge_at_once_never_overspend(ledger):
    ledger.set_budget(None, 25)
    assert sum(spent_at_once(ledger.folder, 3, 20)) == 25
    assert nats(ledger) == 25.0
    assert ledger.check() == 25


def test_processes_that_begin_at_once_share_one_ledger(memory_disk):
    folder = memory_disk / "deep" / "ledger"
    assert spent_at_once(folder, 4, 3) == [3, 3, 3, 3]
    assert Ledger.open(folder, create=False).check() == 12
    assert sorted(os.listdir(folder.parent)) == ["ledger", "ledger.anchor"]


def test_who_comes_second_in_making_a_ledger_uses_the_first(ledger):
    ledger.charge(entry())
    create(ledger.folder)
    assert ledger.check() == 1
    assert sorted(os.listdir(ledger.folder.parent)) == ["ledger", "ledger.anchor"]


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
