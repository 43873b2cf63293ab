"""Work off the event loop: a few threads with a bounded queue, and small requests done in batches.

Large products are fast, so requests to obfuscate that wait at the same time, with the same
mechanism, number and release, are obfuscated together. None waits for others to come: they gather
only while all threads are busy. With a seed a text gets exactly what it would have got alone.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Any, TypeVar

from numpy.random import Generator

from sottovoce.app.loaded import LoadedParts
from sottovoce.app.schemas import ObfuscateBody, given_parameters
from sottovoce.errors import SottovoceError
from sottovoce.obfuscation import Obfuscation, Obfuscator
from sottovoce.randomness import Streams

Result = TypeVar("Result")

TEXTS_TOGETHER = 64
CHARACTERS_TOGETHER = 50_000
"""Characters times variants of a batch; what is longer goes alone."""
CHARACTERS_WAITING = 4_000_000
"""What may wait: no more than is done before the first of them give up."""


class FullError(SottovoceError):
    """More work is waiting than is taken on; nothing was done."""

    retry_after = 2

    def __init__(self, name: str) -> None:
        super().__init__(
            f"too many requests are waiting ({name}); nothing was done with this one. Try again in "
            "a moment"
        )


class TooLongError(SottovoceError):
    """An answer did not come in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"no answer within {seconds:g} seconds; what may have left is counted in the ledger. "
            "Ask for less, or try again"
        )


class WorkQueue:
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
            raise FullError(self.name) from None
        return future

    async def do(self, work: Callable[[], Result]) -> Result:
        """The result of work, when it comes in time. Work that did not begin is left undone."""
        return await self.result(self.submit(work))

    async def result(self, future: Future[Result]) -> Result:
        """What comes of work that was submitted, if it comes in time."""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.timeout)
        except TimeoutError:
            raise TooLongError(self.timeout) from None

    def close(self) -> None:
        """Take on nothing more, and let the threads end."""
        while True:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                job[0].cancel()
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


class SeparateStreams(Streams):
    """The generators of several texts, each as if it were the first one of a run of its own."""

    def __init__(self, seeds: Sequence[int], label: str) -> None:
        super().__init__(seeds[0], label)
        self._streams = [Streams(seed, label) for seed in seeds]

    def generator(self, text: int, variant: int, purpose: int, unit: int) -> Generator:
        """That of the text's own run."""
        return self._streams[text].generator(0, variant, purpose, unit)


@dataclass(eq=False)
class Waiting:
    """A request, and where its result goes."""

    body: ObfuscateBody
    future: Future[Obfuscation] = field(default_factory=Future)

    @property
    def size(self) -> int:
        """Characters times variants."""
        return max(1, len(self.body.text)) * self.body.n

    def fail(self, error: Exception) -> None:
        """Tell whoever waits, unless they have gone."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Batches:
    """Requests by what they have in common, at most ``most`` in all, and bounded in size."""

    def __init__(self, parts: LoadedParts, threads: WorkQueue, most: int) -> None:
        self.parts, self.threads, self.most = parts, threads, most
        self._waiting: dict[Hashable, list[Waiting]] = {}
        self._count, self._size, self._lock = 0, 0, Lock()

    async def obfuscate(self, body: ObfuscateBody) -> Obfuscation:
        """What came of a text."""
        return await self.threads.result(self._join(body))

    def _join(self, body: ObfuscateBody) -> Future[Obfuscation]:
        key, request = _key(body), Waiting(body)
        with self._lock:
            if self._count >= self.most or self._size + request.size > CHARACTERS_WAITING:
                raise FullError(self.threads.name)
            first = key not in self._waiting
            self._waiting.setdefault(key, []).append(request)
            self._count += 1
            self._size += request.size
        if first:
            self._call_a_thread(key)
        return request.future

    def _call_a_thread(self, key: Hashable) -> None:
        try:
            self.threads.submit(partial(self._work, key))
        except FullError as error:
            for request in self._take(key, self.most, CHARACTERS_WAITING):
                request.fail(error)

    def _take(self, key: Hashable, most: int, characters: int) -> list[Waiting]:
        """The first that wait, one at least: so many, and of so many characters."""
        with self._lock:
            waiting = self._waiting.pop(key, [])
            sizes = accumulate(request.size for request in waiting[:most])
            fitting = max(1, sum(size <= characters for size in sizes))
            taken, rest = waiting[:fitting], waiting[fitting:]
            if rest:
                self._waiting[key] = rest
            self._count -= len(taken)
            self._size -= sum(request.size for request in taken)
        return taken

    def _work(self, key: Hashable) -> None:
        taken = self._take(key, TEXTS_TOGETHER, CHARACTERS_TOGETHER)
        with self._lock:
            more = key in self._waiting
        if more:
            self._call_a_thread(key)
        requests = [one for one in taken if one.future.set_running_or_notify_cancel()]
        if requests:
            self._answer(requests)

    def _answer(self, requests: list[Waiting]) -> None:
        """Do requests together; where one of them cannot be done, each alone."""
        try:
            results = self._together([request.body for request in requests])
        except Exception as error:
            if len(requests) > 1 and isinstance(error, SottovoceError):
                for request in requests:
                    self._answer([request])
            else:
                for request in requests:
                    request.future.set_exception(error)
            return
        for request, result in zip(requests, results, strict=True):
            request.future.set_result(result)

    def _together(self, bodies: list[ObfuscateBody]) -> list[Obfuscation]:
        first = bodies[0]
        built = self.parts.mechanism(first.mechanism, given_parameters(first))
        obfuscator = Obfuscator(built, n=first.n, release=first.release, rng=first.seed)
        seeds = [body.seed for body in bodies if body.seed is not None]
        streams = SeparateStreams(seeds, built.spec) if seeds else Streams(None, built.spec)
        return obfuscator.obfuscate_batch([body.text for body in bodies], 0, streams)


def _key(body: ObfuscateBody) -> tuple[Any, ...]:
    """What requests must have in common to be done together."""
    parameters = tuple(sorted((name, repr(value)) for name, value in body.set.items()))
    how = (body.mechanism, body.epsilon, parameters, body.n, body.release)
    return (*how, body.seed is None)
