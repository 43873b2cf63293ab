"""Work off the event loop: a few threads, a bounded queue before them, and a clear no when full."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sottovoce.errors import SottovoceError

Result = TypeVar("Result")


class FullError(SottovoceError):
    """More work is waiting than is taken on; nothing was done."""

    retry_after = 2

    @classmethod
    def of(cls, lane: str) -> FullError:
        """What to say when a lane is full."""
        return cls(
            f"too many requests are waiting ({lane}); nothing was done with this one. Try again in "
            "a moment"
        )


class TooLongError(SottovoceError):
    """An answer did not come in time."""


class Lane:
    """Threads that do one kind of work, first come, first served.

    They end with the process: a search that waits for a slow engine does not keep it alive.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, timeout: float) -> None:
        self.name, self.timeout = name, timeout
        self._waiting: queue.Queue[tuple[Future[Any], Callable[[], Any]] | None]
        self._waiting = queue.Queue(waiting)
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Have work done when its turn comes; ``FullError`` if too much is waiting."""
        future: Future[Result] = Future()
        try:
            self._waiting.put_nowait((future, work))
        except queue.Full:
            raise FullError.of(self.name) from None
        return future

    async def do(self, work: Callable[[], Result]) -> Result:
        """The result of work, when it comes in time. Work that did not begin is left undone."""
        future = self.submit(work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.timeout)
        except TimeoutError:
            raise too_long(self.timeout) from None

    def close(self) -> None:
        """Take on nothing more, and let the threads end."""
        while True:
            try:
                left = self._waiting.get_nowait()
            except queue.Empty:
                break
            if left is not None:
                left[0].cancel()
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        while (job := self._waiting.get()) is not None:
            future, work = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # The caller gets it, whatever it is.
                future.set_exception(error)
            del job, future, work  # An idle thread holds nobody's text.


def too_long(seconds: float) -> TooLongError:
    """What to say when the time is over."""
    return TooLongError(
        f"no answer within {seconds:g} seconds; what may have left is counted in the ledger. Ask "
        "for less, or try again"
    )
