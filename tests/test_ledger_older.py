"""A ledger put back from a backup, on a network folder, on a full disk, under a bad clock."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from datetime import UTC, datetime, timedelta

import pytest
from killing import finish, start
from ledger_children import SECRET, entry, nats, opened
from typer.testing import CliRunner

from sottovoce.cli.ledger import app
from sottovoce.ledger import Ledger, LedgerError, OlderLedgerError, anchor, book, network


@pytest.fixture
def ledger(memory_disk):
    return Ledger.open(memory_disk / "ledger", wait=2)


def backup(ledger):
    return shutil.copytree(ledger.folder, ledger.folder.with_name("backup"))


def put_back(ledger, copy):
    shutil.rmtree(ledger.folder)
    shutil.copytree(copy, ledger.folder)


# Restored from a backup


@pytest.mark.parametrize("since", [1, 2, 9])
def test_an_older_copy_is_refused_whatever_is_asked_of_it(ledger, since):
    ledger.charge(entry())
    copy = backup(ledger)
    for _ in range(since):
        ledger.charge(entry())
    put_back(ledger, copy)
    for attempt in (
        lambda: ledger.charge(entry()),
        lambda: Ledger.open(ledger.folder),
        ledger.spent,
        ledger.check,
        ledger.reset,
        ledger.memory_key,
        lambda: ledger.set_budget(None, None),
    ):
        with pytest.raises(OlderLedgerError, match=f"1 records, and {1 + since} .*accept-older"):
            attempt()


def test_a_copy_that_went_another_way_is_refused_too(ledger):
    """As many records as the ledger had, and not the same ones."""
    ledger.charge(entry())
    copy = backup(ledger)
    ledger.charge(entry())
    other = Ledger.open(copy)
    other.charge(entry())
    other.charge(entry())
    put_back(ledger, copy)
    with pytest.raises(OlderLedgerError):
        ledger.charge(entry())


def test_the_latest_copy_is_taken_back(ledger):
    ledger.charge(entry())
    put_back(ledger, backup(ledger))
    ledger.charge(entry())
    assert ledger.check() == 2


def test_an_older_copy_can_be_accepted_and_is_then_the_latest(ledger):
    ledger.charge(entry())
    copy = backup(ledger)
    ledger.charge(entry())
    put_back(ledger, copy)
    assert Ledger.accept_older(ledger.folder).check() == 1
    ledger.charge(entry())
    assert ledger.check() == 2
    put_back(ledger, copy)
    with pytest.raises(OlderLedgerError, match="and 2 "):
        ledger.spent()


def test_a_reset_is_no_older_copy_and_what_came_before_it_may_come_back(ledger):
    ledger.charge(entry())
    copy = backup(ledger)
    ledger.reset()
    assert ledger.check() == 0
    put_back(ledger, copy)
    assert ledger.check() == 1


def test_a_ledger_set_aside_or_removed_is_followed_by_a_new_one(ledger):
    ledger.charge(entry())
    Ledger.set_aside(ledger.folder)
    assert Ledger.open(ledger.folder).check() == 0
    ledger.charge(entry())
    shutil.rmtree(ledger.folder)
    assert Ledger.open(ledger.folder).check() == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"ledger": 1}', b'{"records": []}'])
def test_an_anchor_that_cannot_be_read_is_none(ledger, content):
    """What a power cut may leave of it."""
    ledger.charge(entry())
    anchor.anchor_file(ledger.folder).write_bytes(content)
    assert not ledger.anchored
    ledger.charge(entry())
    assert ledger.anchored
    assert ledger.check() == 2


def test_a_record_that_the_anchor_missed_is_no_fault(ledger):
    """The process died between the two."""
    ledger.charge(entry())
    file = anchor.anchor_file(ledger.folder)
    before = file.read_bytes()
    ledger.charge(entry())
    file.write_bytes(before)
    ledger.charge(entry())
    assert ledger.check() == 3


def test_who_reads_while_others_charge_and_reset_is_not_alarmed(ledger):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for _ in range(3):
                ledger.charge(entry())
            ledger.reset()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(150):
            assert ledger.check() <= 3
    finally:
        stop.set()
        writer.join()


def test_the_anchor_is_private_and_tells_nothing_of_the_text(ledger):
    ledger.charge(entry())
    file = anchor.anchor_file(ledger.folder)
    assert file.stat().st_mode & 0o077 == 0
    assert SECRET not in file.read_text()


def test_the_users_ledger_has_its_anchor_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("SOTTOVOCE_HOME", raising=False)
    for name in ("DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    ledger = Ledger.open()
    ledger.charge(entry())
    assert ledger.folder == tmp_path / "data" / "sottovoce" / "ledger"
    assert (tmp_path / "state" / "sottovoce" / "ledger.anchor").exists()
    assert os.listdir(ledger.folder.parent) == ["ledger"]


def test_the_command_refuses_an_older_copy_says_what_to_do_and_accepts_it(memory_disk, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(memory_disk))
    ledger = Ledger.open()
    ledger.charge(entry())
    copy = backup(ledger)
    ledger.charge(entry())
    put_back(ledger, copy)
    refused = CliRunner().invoke(app, ["check"])
    assert isinstance(refused.exception, OlderLedgerError)
    accepted = CliRunner().invoke(app, ["check", "--accept-older"])
    assert accepted.exit_code == 0
    assert accepted.output == "1 records, none changed or removed\n"
    (memory_disk / "ledger.anchor").unlink()
    assert "cannot be told" in CliRunner().invoke(app, ["check"]).output


# A clock that goes back


def test_a_clock_that_goes_back_changes_no_sum_and_breaks_no_chain(ledger, monkeypatch):
    class Back(datetime):
        years = 0

        @classmethod
        def now(cls, tz=None):
            cls.years += 1
            return datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=365 * cls.years)

    monkeypatch.setattr(book, "datetime", Back)
    ledger.set_budget(None, 7)
    for _ in range(3):
        ledger.charge(entry())
    assert [record.time[:4] for record in ledger.entries()] == ["2027", "2028", "2029"]
    assert ledger.check() == 3
    assert nats(ledger) == 6.0
    with pytest.raises(Exception, match="are left"):
        ledger.charge(entry())


# A full disk


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None,
    reason="only root may mount a disk",
)
def test_on_a_disk_that_is_really_full_nothing_is_counted_halfway(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(disk)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        ledger = Ledger.open(disk / "ledger")
        counted = 0
        filler = disk / "filler"
        with pytest.raises(LedgerError, match="make room"):  # noqa: PT012
            while counted < 200:
                with filler.open("ab") as out:
                    free = os.statvfs(disk)
                    out.write(bytes(free.f_bavail * free.f_frsize // 3))
                ledger.charge(entry())
                counted += 1
        filler.unlink()
        assert 0 < counted <= ledger.check() <= counted + 1
        ledger.charge(entry())
        ledger.check()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# A folder of the network

MOUNTS = """
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/ann/local\\040disk rw shared:3 - xfs /dev/sdb1 rw
32 22 0:41 / /media/nas rw - cifs //nas/share rw
33 22 0:42 / /mnt/far rw - fuse.sshfs ann@far: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/ledger", None),
        ("/home/ann/.local/share/sottovoce/ledger", "nfs4"),
        ("/home/ann/local disk/ledger", None),
        ("/homes/ledger", None),
        ("/media/nas/ledger", "cifs"),
        ("/mnt/far/ledger", "fuse.sshfs"),
    ],
)
def test_a_folder_of_the_network_is_recognised(tmp_path, monkeypatch, folder, kind):
    (tmp_path / "mountinfo").write_text(MOUNTS)
    monkeypatch.setattr(network, "MOUNTS", tmp_path / "mountinfo")
    assert network.file_system(network.Path(folder)) == kind
    monkeypatch.setattr(network, "MOUNTS", tmp_path / "missing")
    assert network.file_system(network.Path(folder)) is None


def on_the_network(monkeypatch, folder):
    file = folder / "mountinfo"
    file.write_text(f"30 22 0:40 / {folder} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(network, "MOUNTS", file)


def journal_mode(ledger):
    with opened(ledger) as connection:
        return connection.execute("PRAGMA journal_mode").fetchone()[0]


def test_on_the_network_no_memory_is_shared_between_machines(memory_disk, monkeypatch):
    """A write-ahead log needs that; a rollback journal needs the server's locks alone."""
    on_the_network(monkeypatch, memory_disk)
    ledger = Ledger.open(memory_disk / "ledger")
    assert journal_mode(ledger) == "delete"
    ledger.charge(entry())
    assert ledger.check() == 1
    assert "nfs4" in ledger.remark


def test_a_ledger_that_was_moved_to_the_network_changes_its_journal(memory_disk, monkeypatch):
    ledger = Ledger.open(memory_disk / "ledger")
    ledger.charge(entry())
    assert journal_mode(ledger) == "wal"
    assert ledger.remark is None
    on_the_network(monkeypatch, memory_disk)
    ledger.charge(entry())
    assert journal_mode(ledger) == "delete"
    assert ledger.check() == 2


CHARGING = """
import sys
from pathlib import Path
from ledger_children import entry
from sottovoce.ledger import BudgetError, Ledger, network
network.MOUNTS = Path(sys.argv[2])
ledger, done = Ledger.open(Path(sys.argv[1]), wait=60), 0
for _ in range(15):
    try:
        ledger.charge(entry(releases=1))
        done += 1
    except BudgetError:
        pass
print(done)
"""


def test_two_processes_with_a_rollback_journal_never_overspend(memory_disk, monkeypatch):
    on_the_network(monkeypatch, memory_disk)
    ledger = Ledger.open(memory_disk / "ledger")
    ledger.set_budget(None, 20)
    processes = [start(CHARGING, ledger.folder, network.MOUNTS) for _ in range(2)]
    assert sum(int(finish(process)) for process in processes) == 20
    assert ledger.check() == 20


def test_a_server_without_locks_is_no_place_for_a_ledger(memory_disk, monkeypatch):
    """It answers that it has none, and SQLite says so: nothing is counted, and nothing sent."""
    ledger = Ledger.open(memory_disk / "ledger")
    connect = sqlite3.connect

    class Lockless(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement.startswith("BEGIN"):
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_LOCK
                error.sqlite_errorname = "SQLITE_IOERR_LOCK"
                raise error
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=Lockless, **o))
    with pytest.raises(LedgerError, match=r"no locks.*SOTTOVOCE_HOME"):
        ledger.charge(entry())
