"""The ledger's files: one private folder with a database and a key, and transactions on them.

Every transaction has its own connection, so that threads, forks and a folder that was put aside
in the meantime cannot mix anything up. SQLite's write-ahead log, synchronised in full, puts what
was committed on disk before the caller goes on; on a folder of the network a rollback journal does.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sottovoce.ledger import network
from sottovoce.ledger.book import APPLICATION, CREATE_TABLES, KEY_BYTES, VERSION, Book, Key
from sottovoce.ledger.entries import DamagedLedgerError, LedgerError, NoLedgerError

DATABASE, KEY = "ledger.db", "ledger.key"
NO_LOCKS = ("SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_IOERR_CHECKRESERVEDLOCK")


def exists(folder: Path) -> bool:
    """Whether there is a ledger; a ledger of which parts are missing is an error."""
    with _explained(folder):
        try:
            present = {file.name for file in folder.iterdir()}
        except FileNotFoundError:
            return False
    missing = sorted({DATABASE, KEY} - present)
    if present and missing:
        raise DamagedLedgerError(folder, f"{' and '.join(missing)} missing")
    return bool(present)


def create(folder: Path) -> None:
    """Make an empty ledger, which appears as a whole, unless another process makes one first.

    The rename decides: a folder that holds anything is never replaced.
    """
    with _explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".ledger-", dir=folder.parent))  # mode 0700
        try:
            key = secrets.token_bytes(KEY_BYTES)
            _write_private(scratch / KEY, key)
            _write_private(scratch / DATABASE, b"")
            with _connected(scratch / DATABASE, wait=0) as connection:
                if network.file_system(folder) is None:
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(CREATE_TABLES)
                Book.begin(connection, Key(key))
            _sync_names(scratch)
            scratch.rename(folder)
            _sync_names(folder.parent)
        except OSError:
            if not exists(folder):
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def set_aside(folder: Path) -> Path:
    """Rename the folder, so that a new ledger can be made; the old one stays beside it."""
    aside = folder.with_name(f"{folder.name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    with _explained(folder):
        folder.rename(aside)
        _sync_names(folder.parent)
    return aside


@contextmanager
def transaction(
    folder: Path,
    *,
    wait: float,
    write: bool,
    after: Callable[[sqlite3.Connection, Key], None] | None = None,
) -> Iterator[tuple[sqlite3.Connection, Key]]:
    """All or nothing. While one writes, other processes wait; it is on disk when it ends.

    ``after`` is called when something was written, while no other process writes; if none lets us,
    it is not called.
    """
    if not exists(folder):
        raise NoLedgerError(f"there is no ledger in {folder}: nothing has been counted there yet")
    file = folder / DATABASE
    with _explained(folder, wait):
        for path in (folder, file, folder / KEY):
            _require_private(path)
        before = file.stat()
        with _connected(file, wait) as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            _check_layout(connection, folder)
            key = Key((folder / KEY).read_bytes())
            if not os.path.samestat(before, file.stat()):
                raise LedgerError(
                    f"the ledger in {folder} was replaced while it was in use: try again"
                )
            yield connection, key
            connection.execute("COMMIT")
            if write and after is not None:
                with suppress(sqlite3.OperationalError):
                    connection.execute("BEGIN IMMEDIATE")
                    after(connection, key)


@contextmanager
def _connected(file: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """A connection to a file that is there; closing it undoes what was not committed."""
    name = f"{file.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(name, uri=True, isolation_level=None, timeout=wait)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA secure_delete = ON")
        if network.file_system(file.parent) is not None:
            connection.execute("PRAGMA journal_mode = DELETE")
        yield connection


def _check_layout(connection: sqlite3.Connection, folder: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise DamagedLedgerError(folder, f"{DATABASE} is no ledger")
    if version != VERSION:
        raise LedgerError(
            f"the ledger in {folder} has layout {version}, this version of sottovoce reads "
            f"{VERSION}: use the version that wrote it, or another folder with SOTTOVOCE_HOME"
        )


def _require_private(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise LedgerError(
            f"other users may look into {path}: close it with 'chmod go= {path}', or choose "
            "another folder with the environment variable SOTTOVOCE_HOME"
        )


def _write_private(file: Path, content: bytes) -> None:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _sync_names(folder: Path) -> None:
    """Put the names in a folder on disk, where the system lets folders be opened."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _explained(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """Turn errors of the system and of SQLite into ones that say what to do."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"cannot use the ledger in {folder} ({error.strerror}), so nothing may be released: "
            "give back access or make room there, or choose another folder with the environment "
            "variable SOTTOVOCE_HOME"
        ) from None
    except sqlite3.Error as error:
        raise _explanation(error, folder, wait) from None


def _explanation(error: sqlite3.Error, folder: Path, wait: float) -> LedgerError:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name in NO_LOCKS:
        return LedgerError(
            f"the folder {folder} has no locks ({name}), as some folders of the network, so that "
            "two programs could spend the same budget, and nothing may be released: choose a "
            "folder on this machine with the environment variable SOTTOVOCE_HOME"
        )
    # The low byte is the kind of failure, the rest its detail.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LedgerError(
                f"another program has held the ledger in {folder} for {wait:g} s, so nothing may "
                "be released: try again, or stop that program"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            problem, advice = "cannot be written", "make its folder and files yours to write"
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            problem, advice = "cannot be written to the end", "make room on the disk or check it"
        case (
            sqlite3.SQLITE_CORRUPT
            | sqlite3.SQLITE_NOTADB
            | sqlite3.SQLITE_ERROR
            | sqlite3.SQLITE_CONSTRAINT
        ):
            return DamagedLedgerError(folder, name)
        case _:
            problem, advice = "cannot be used", "try again"
    return LedgerError(
        f"the ledger in {folder} {problem} ({name}), so nothing may be released: {advice}, or "
        "choose another folder with the environment variable SOTTOVOCE_HOME"
    )
