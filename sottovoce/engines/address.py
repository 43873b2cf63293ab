"""Where a server is, and what is asked of servers elsewhere: little, and slowly."""

from __future__ import annotations

import ipaddress
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from sottovoce.errors import UsageError

PAUSE_ELSEWHERE = 1.0
MOST_QUERIES_ELSEWHERE = 20
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    secure: bool
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Address:
        """The server of a URL, without anything else that the URL says."""
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode("ascii")
            port = parts.port
        except ValueError:
            raise UsageError(_LIKE_THIS) from None
        if not host or parts.scheme not in ("http", "https"):
            raise UsageError(_LIKE_THIS)
        if "@" in parts.netloc:
            raise UsageError(
                "the url holds a user or a password: take them out, and give them by environment "
                "variables (docs/engines.md says which)"
            )
        secure = parts.scheme == "https"
        return cls(secure, host, port or (443 if secure else 80))

    @property
    def remote(self) -> bool:
        """Whether what is sent there leaves this machine."""
        return not is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


_LIKE_THIS = "the url must look like https://search.example.org/path"


def is_loopback(host: str) -> bool:
    """Whether a host, by name or number, is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def courtesy(
    remote: bool, pause: float | None, most_queries: int | None
) -> tuple[float, int | None]:
    """The pause and the most queries for a server, as said, or as suits where it is.

    For ``most_queries``, 0 means any number, and so does None for a server on this machine.
    """
    usual_pause, usual_most = (PAUSE_ELSEWHERE, MOST_QUERIES_ELSEWHERE) if remote else (0.0, 0)
    chosen = usual_most if most_queries is None else most_queries
    return usual_pause if pause is None else pause, chosen or None


class Pace:
    """Leaves a pause between the end of one request and the start of the next."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._free = -math.inf

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a request may be made, then make it inside the ``with`` block."""
        rest(self._free - time.monotonic())
        try:
            yield
        finally:
            self._free = time.monotonic() + self._pause


def rest(seconds: float) -> None:
    """Do nothing for some seconds, if there are any left."""
    if seconds > 0:
        time.sleep(seconds)


def check_search(queries: Sequence[str], depth: int, most_queries: int | None) -> None:
    """Refuse what an engine should not be asked."""
    if depth < 0:
        raise UsageError(f"depth cannot be negative, got {depth}")
    if most_queries is not None and len(queries) > most_queries:
        raise UsageError(
            f"this engine takes at most {most_queries} queries a search, got {len(queries)}: "
            "send fewer, or raise most_queries if the server is yours"
        )


def sendable(query: str) -> str:
    """The query, with U+FFFD for what not every protocol carries: NUL and lone surrogates."""
    return _UNSENDABLE.sub("\ufffd", query)
