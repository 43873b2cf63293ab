"""`sottovoce serve` with a clock that can be set, and with a defect where a file names one.

The files ``clock`` (seconds to add) and ``plant`` (a name of ``soak.PLANTS``) in the service's home
may change while it runs. Without them this is the service as it is.
"""

from __future__ import annotations

import asyncio
import datetime as datetimes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sottovoce.app import history, service
from sottovoce.cli import main
from sottovoce.ledger import book
from sottovoce.paths import data_folder

LEAKED = 256 << 10
"""Bytes that each request leaves behind, if that is planted."""
EVERY = 100
"""Each such request is answered with the last one's body, or not at all, if that is planted."""


def told(name: str) -> str:
    """The content of a file of the home; nothing if there is none."""
    try:
        return (data_folder() / name).read_text()
    except OSError:
        return ""


def offset() -> float:
    """By how much the clock is wrong."""
    return float(told("clock") or 0)


class WrongClock(datetimes.datetime):
    """What a computer says whose clock was set."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetimes.datetime.now(tz) + datetimes.timedelta(seconds=offset())


class Defects:
    """Around the whole service."""

    def __init__(self, app: Any) -> None:
        self.app, self.count = app, 0
        self.last: list[Any] = []
        self.leaked: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and spoil it if that was planted."""
        plant = told("plant") if scope["type"] == "http" else ""
        if not plant:
            await self.app(scope, receive, send)
            return
        self.count += 1
        if plant == "leak":
            self.leaked.append(b"x" * LEAKED)
        if plant == "lost" and self.count % EVERY == 0:
            await asyncio.sleep(3600)
        if plant != "mixed" or scope["path"] != "/v1/obfuscate":
            await self.app(scope, receive, send)
            return
        messages: list[Any] = []

        async def keeping(message: Any) -> None:
            messages.append(message)

        await self.app(scope, receive, keeping)
        answer, self.last = self.last, messages
        for message in answer if answer and self.count % EVERY == 0 else messages:
            await send(message)


def with_defects(create: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and around it what may be planted."""

    def creating(*arguments: Any, **named: Any) -> Any:
        return Defects(create(*arguments, **named))

    return creating


if __name__ == "__main__":
    right = time.time
    time.time = lambda: right() + offset()
    history.datetime = book.datetime = WrongClock  # type: ignore[attr-defined,misc]
    if Path(data_folder(), "may-be-planted").exists():
        service.create_app = with_defects(service.create_app)
    main()
