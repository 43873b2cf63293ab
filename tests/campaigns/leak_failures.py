"""What goes wrong with the ledger, and Ctrl-C at any moment."""

from __future__ import annotations

import gc
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sottovoce.ledger import Ledger

LEDGER = [
    "the ledger is spent",
    "the ledger is damaged",
    "the ledger is gone",
    "the ledger is locked",
    "the disk is full",
]
RELAY = ("hangs up", "answers nonsense", "is silent")
"""What happens on the way to a database."""


@contextmanager
def on(batch: Any, ledger: Ledger | None) -> Iterator[Callable[[], None]]:
    """Breaks the ledger underway, if that is to fail; call it before each search."""
    if ledger is None or batch.failure not in LEDGER:
        yield lambda: None
        return
    at, calls = len(batch.asked) // 2, iter(range(10**9))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    held: list[sqlite3.Connection] = []

    def step() -> None:
        if next(calls) == at:
            _break(batch.failure, ledger, held)

    if batch.failure == "the ledger is spent":
        ledger.set_budget(None, 5.0 * at)
    try:
        yield step
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        for connection in held:
            connection.close()


def _break(failure: str, ledger: Ledger, held: list[sqlite3.Connection]) -> None:
    file = ledger.folder / "ledger.db"
    match failure:
        case "the ledger is damaged":
            data = bytearray(file.read_bytes())
            data[len(data) // 2 :] = b"damage" * (len(data) // 12)
            file.write_bytes(bytes(data))
        case "the ledger is gone":
            shutil.rmtree(ledger.folder)
        case "the ledger is locked":
            connection = sqlite3.connect(file)
            connection.execute("BEGIN EXCLUSIVE")
            held.append(connection)
        case "the disk is full":
            # As a full disk does, the system refuses to let files grow.
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))


def interrupted(seconds: float, work: Callable[[Callable[[], None]], object]) -> None:
    """Do something; Ctrl-C comes after so long, unless it is done, or disarms it, before."""
    armed = True

    def interrupt(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    def disarm() -> None:
        nonlocal armed
        armed = False

    before = signal.signal(signal.SIGALRM, interrupt)
    collecting = gc.isenabled()
    gc.disable()  # An interrupt inside a callback of the collector would be lost.
    try:
        with suppress(KeyboardInterrupt):  # It may come between two lines of ours.
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work(disarm)
            disarm()
    finally:
        disarm()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if collecting:
            gc.enable()
