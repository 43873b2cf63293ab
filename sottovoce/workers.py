"""The same obfuscation on several processes: each maps the space itself, tasks stay small."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from sottovoce.errors import SottovoceError
from sottovoce.randomness import Streams
from sottovoce.threads import available_cores, set_threads

if TYPE_CHECKING:
    from sottovoce.obfuscation import Obfuscation, Obfuscator

_job: tuple[Obfuscator, Streams] | None = None


def end_with_parent() -> None:
    """In a worker process: do not outlive a parent that was killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _start(obfuscator: Obfuscator, streams: Streams, threads: int) -> None:
    global _job
    set_threads(threads)
    end_with_parent()
    _job = (obfuscator, streams)


def _work(texts: list[str], first: int) -> list[Obfuscation]:
    assert _job is not None  # noqa: S101 - the pool calls _start first
    obfuscator, streams = _job
    return obfuscator.obfuscate_batch(texts, first, streams)


def obfuscate_in_processes(
    obfuscator: Obfuscator, streams: Streams, texts: Iterable[str], first: int
) -> Iterator[Obfuscation]:
    """Batches on worker processes; results in order, a bounded number of batches in flight."""
    from sottovoce.obfuscation import batches

    count = obfuscator.workers
    # The seed travels inside ``streams``; secure generators are made anew in each process.
    job = (replace(obfuscator, workers=1, rng=None), streams, max(1, available_cores() // count))
    context = multiprocessing.get_context("spawn")
    waiting: deque[Future[list[Obfuscation]]] = deque()
    with ProcessPoolExecutor(count, context, initializer=_start, initargs=job) as pool:
        try:
            for batch in batches(texts, obfuscator.batch_size):
                waiting.append(pool.submit(_work, batch, first))
                first += len(batch)
                if len(waiting) > 2 * count:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            raise SottovoceError(
                "a worker process died; what was not yet written is not released. Run again, "
                "perhaps with fewer workers"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
