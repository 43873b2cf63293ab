"""The history of searches, on this machine alone: off by default, wiped when switched off."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from typing_extensions import TypedDict

from sottovoce.errors import SottovoceError
from sottovoce.files import parse_json, write_whole
from sottovoce.paths import data_folder

MOST = 500


class HistoryState(TypedDict):
    """Whether searches are written down, and which, newest first."""

    on: bool
    searches: list[dict[str, str]]


class History:
    """A file private to the user. There is none while the history is off."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = data_folder() / "history.json" if file is None else file
        self._lock = Lock()

    @property
    def on(self) -> bool:
        """Whether searches are written down."""
        return self.file.exists()

    def state(self) -> HistoryState:
        """What is written down."""
        with self._lock:
            return {"on": self.on, "searches": self._read()[::-1] if self.on else []}

    def switch(self, on: bool) -> None:
        """Begin to write searches down, or stop and forget them all."""
        with self._lock:
            if not on:
                self.file.unlink(missing_ok=True)
            elif not self.on:
                self._write([])

    def add(self, query: str, mechanism: str, release: str) -> None:
        """Write a search down, if the history is on."""
        with self._lock:
            if self.on:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                search = {"time": now, "query": query, "mechanism": mechanism, "release": release}
                self._write([*self._read(), search][-MOST:])

    def wipe(self) -> None:
        """Forget all searches; the history stays on if it was."""
        with self._lock:
            if self.on:
                self._write([])

    def _read(self) -> list[dict[str, str]]:
        try:
            searches: list[dict[str, str]] = parse_json(self.file.read_bytes())["searches"]
        except (OSError, ValueError, KeyError, TypeError):
            raise SottovoceError("the history cannot be read: wipe it") from None
        return searches

    def _write(self, searches: list[dict[str, str]]) -> None:
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.file, json.dumps({"searches": searches}).encode(), 0o600)
        except OSError as error:
            raise SottovoceError(
                f"the history cannot be written ({type(error).__name__}): make room, or switch it "
                "off"
            ) from None
