"""What the routes share: loaded parts, previews, keys, and threads for each kind of work."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from sottovoce.app.failures import Json
from sottovoce.app.history import History
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.opening import Opening
from sottovoce.app.previews import Previews
from sottovoce.app.queues import Batches, WorkQueue
from sottovoce.app.search_box import SearchBox
from sottovoce.app.settings import Settings
from sottovoce.threads import available_cores, single_threaded_blas

if TYPE_CHECKING:
    from fastapi import FastAPI

LOADING_ENDS = 5.0


class Service:
    """What the routes share: loaded parts, and queues, so that slow work does not block quick."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.parts = LoadedParts(settings)
        self.previews = Previews()
        self.history = History()
        self.search_box = SearchBox(settings.base)
        cores, waiting = available_cores(), settings.waiting
        self.obfuscating = WorkQueue("obfuscate", threads=cores, waiting=waiting, timeout=120)
        self.batches = Batches(self.parts, self.obfuscating, waiting)
        self.long_work = WorkQueue("search and sanitize", threads=4, waiting=64, timeout=600)
        self.drawing = WorkQueue("preview", threads=2, waiting=64, timeout=120)
        self.describing = WorkQueue("settings", threads=2, waiting=256, timeout=30)
        self.accounting = WorkQueue("accounts", threads=2, waiting=256, timeout=30)
        self.checking = WorkQueue("health", threads=1, waiting=256, timeout=30)
        self.opening = Opening(settings.base)

    async def describe(self, work: Callable[[LoadedParts], Mapping[str, Any]]) -> Json:
        """What is known of settings, once it can be known."""
        self.parts.require_ready()
        return Json(await self.describing.do(partial(work, self.parts)))

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Load in the background; hold BLAS to one thread, so that no request changes another."""
        with single_threaded_blas():
            loading = threading.Thread(target=self.parts.load_all, name="loading", daemon=True)
            loading.start()
            try:
                yield
            finally:
                self.opening.close()
                for threads in (
                    *(self.obfuscating, self.drawing, self.describing, self.accounting),
                    *(self.checking, self.long_work),
                ):
                    threads.close()
                loading.join(LOADING_ENDS)  # Native code dislikes to be left in the middle.
