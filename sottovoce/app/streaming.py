"""Long work reported step by step: one JSON event a line, while a thread does the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Event
from typing import Any, TypeAlias

from sottovoce.app.failures import dumps, failure
from sottovoce.app.queues import TooLongError, WorkQueue
from sottovoce.errors import SottovoceError

NDJSON = "application/x-ndjson"
Tell: TypeAlias = Callable[[dict[str, Any]], None]
"""Called with each step; raises ``StoppedError`` when nobody listens any more."""
Work: TypeAlias = Callable[[Tell], Mapping[str, Any]]


class StoppedError(SottovoceError):
    """Whoever asked has gone."""


def silent(event: dict[str, Any]) -> None:
    """For work whose steps nobody follows."""


def stream(threads: WorkQueue, work: Work) -> AsyncIterator[bytes]:
    """The events of work, the last being ``done`` with its result, or ``failed``.

    Begins at once, or raises because too much is waiting.
    """
    loop, events, gone = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]](), Event()

    def post(event: dict[str, Any]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(events.put_nowait, event)

    def tell(event: dict[str, Any]) -> None:
        if gone.is_set():
            raise StoppedError("stopped: nothing more was sent")
        post(event)

    def run() -> None:
        try:
            post({"step": "done", "result": work(tell)})
        except Exception as error:
            post(_failed(error))

    future = threads.submit(run)

    async def lines() -> AsyncIterator[bytes]:
        end, going = loop.time() + threads.timeout, True
        try:
            while going:
                try:
                    event = await asyncio.wait_for(events.get(), max(0.0, end - loop.time()))
                except TimeoutError:
                    event = _failed(TooLongError(threads.timeout))
                going = event["step"] not in ("done", "failed")
                yield dumps(event) + b"\n"
        finally:
            gone.set()
            future.cancel()

    return lines()


def _failed(error: Exception) -> dict[str, Any]:
    status, body = failure(error)
    return {"step": "failed", "status": status, **body}
