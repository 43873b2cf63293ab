"""Variants that were drawn and counted, waiting to be sent; in memory, for a while."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from sottovoce.app.loaded import Protection
from sottovoce.errors import SottovoceError
from sottovoce.search import CountedRelease

LIFETIME = 1800.0
MOST = 200


class NoPreviewError(SottovoceError):
    """The preview is unknown, or too old."""


class OtherPreviewError(SottovoceError):
    """The preview is of another query, or was drawn with other settings."""


@dataclass(frozen=True, repr=False)
class Preview:
    """What was drawn and counted."""

    id: str
    query: str
    """As it was typed; the release has it in one Unicode form."""
    protection: Protection
    """The settings it was drawn with."""
    release: CountedRelease
    expires: float

    def __repr__(self) -> str:
        return f"Preview({len(self.release.result.variants)} variants)"


class Previews:
    """At most ``most`` previews, each for ``lifetime`` seconds; the oldest goes first."""

    def __init__(
        self,
        lifetime: float = LIFETIME,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lifetime, self.most, self._clock = lifetime, most, clock
        self._kept: OrderedDict[str, Preview] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, query: str, protection: Protection, release: CountedRelease) -> Preview:
        """Keep a release that has been counted; its id is random."""
        id, expires = secrets.token_urlsafe(18), self._clock() + self.lifetime
        preview = Preview(id, query, protection, release, expires)
        with self._lock:
            self._forget_old()
            while len(self._kept) >= self.most:
                self._kept.popitem(last=False)
            self._kept[preview.id] = preview
        return preview

    def get(self, id: str, query: str, protection: Protection) -> Preview:
        """The preview, if it is of this query and these settings."""
        with self._lock:
            self._forget_old()
            preview = self._kept.get(id)
        if preview is None:
            raise NoPreviewError("there is no such preview any more: draw the variants anew")
        if (preview.query, preview.protection) != (query, protection):
            raise OtherPreviewError(
                "this preview is of another query, or was drawn with other settings: nothing was "
                "sent. Draw the variants anew"
            )
        return preview

    def _forget_old(self) -> None:
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).expires <= now:
            self._kept.popitem(last=False)
