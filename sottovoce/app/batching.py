"""Small requests that wait at the same time are obfuscated together: large products are fast.

Nobody waits for company. While the threads are busy, requests of the same mechanism, number and
release gather; the next free thread takes as many as are quickly done. With a seed a text gets
exactly what it would have got alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Any

from numpy.random import Generator

from sottovoce.app.queueing import FullError, Lane, too_long
from sottovoce.app.schemas import ObfuscateBody
from sottovoce.app.state import Workbench, given_parameters
from sottovoce.errors import SottovoceError
from sottovoce.obfuscation import Obfuscation, Obfuscator
from sottovoce.randomness import Streams

TEXTS_TOGETHER = 64
CHARACTERS_TOGETHER = 50_000
"""Characters times variants of a batch; what is longer goes alone."""
CHARACTERS_WAITING = 4_000_000
"""What may wait: no more than is done before the first of them give up."""


class SeparateStreams(Streams):
    """The generators of several texts, each as if it were the first one of a run of its own."""

    def __init__(self, seeds: Sequence[int], label: str) -> None:
        super().__init__(seeds[0], label)
        self._each = [Streams(seed, label) for seed in seeds]

    def generator(self, text: int, variant: int, purpose: int, unit: int) -> Generator:
        """That of the text's own run."""
        return self._each[text].generator(0, variant, purpose, unit)


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

    def __init__(self, bench: Workbench, lane: Lane, most: int) -> None:
        self.bench, self.lane, self.most = bench, lane, most
        self._waiting: dict[Hashable, list[Waiting]] = {}
        self._count, self._size, self._lock = 0, 0, Lock()

    async def obfuscate(self, body: ObfuscateBody) -> Obfuscation:
        """What came of a text."""
        future = self._join(body)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.lane.timeout)
        except TimeoutError:
            raise too_long(self.lane.timeout) from None

    def _join(self, body: ObfuscateBody) -> Future[Obfuscation]:
        key, waiting = _key(body), Waiting(body)
        with self._lock:
            if self._count >= self.most or self._size + waiting.size > CHARACTERS_WAITING:
                raise FullError.of(self.lane.name)
            first = key not in self._waiting
            self._waiting.setdefault(key, []).append(waiting)
            self._count += 1
            self._size += waiting.size
        if first:
            self._call_a_thread(key)
        return waiting.future

    def _call_a_thread(self, key: Hashable) -> None:
        try:
            self.lane.submit(partial(self._work, key))
        except FullError as error:
            for each in self._take(key, self.most, CHARACTERS_WAITING):
                each.fail(error)

    def _take(self, key: Hashable, most: int, characters: int) -> list[Waiting]:
        """The first that wait, one at least: so many, and of so many characters."""
        with self._lock:
            found = self._waiting.pop(key, [])
            sizes = accumulate(each.size for each in found[:most])
            fitting = sum(size <= characters for size in sizes)
            taken, rest = found[: max(1, fitting)], found[max(1, fitting) :]
            if rest:
                self._waiting[key] = rest
            self._count -= len(taken)
            self._size -= sum(each.size for each in taken)
        return taken

    def _work(self, key: Hashable) -> None:
        taken = self._take(key, TEXTS_TOGETHER, CHARACTERS_TOGETHER)
        with self._lock:
            more = key in self._waiting
        if more:
            self._call_a_thread(key)
        going = [each for each in taken if each.future.set_running_or_notify_cancel()]
        if not going:
            return
        try:
            results = self._together([each.body for each in going])
        except Exception as error:
            if len(going) > 1 and isinstance(error, SottovoceError):
                self._one_by_one(going)
                return
            for each in going:
                each.future.set_exception(error)
            return
        for each, result in zip(going, results, strict=True):
            each.future.set_result(result)

    def _one_by_one(self, going: list[Waiting]) -> None:
        """One of them cannot be done: the others can."""
        for each in going:
            try:
                each.future.set_result(self._together([each.body])[0])
            except Exception as error:
                each.future.set_exception(error)

    def _together(self, bodies: list[ObfuscateBody]) -> list[Obfuscation]:
        first = bodies[0]
        built = self.bench.mechanism(first.mechanism, given_parameters(first.set, first.epsilon))
        obfuscator = Obfuscator(built, n=first.n, release=first.release, rng=first.seed)
        seeds = [each.seed for each in bodies if each.seed is not None]
        streams = SeparateStreams(seeds, built.spec) if seeds else Streams(None, built.spec)
        return obfuscator.obfuscate_batch([each.text for each in bodies], 0, streams)


def _key(body: ObfuscateBody) -> tuple[Any, ...]:
    """What requests must have in common to be done together."""
    parameters = tuple(sorted((name, repr(value)) for name, value in body.set.items()))
    how = (body.mechanism, body.epsilon, parameters, body.n, body.release)
    return (*how, body.seed is None)
