"""What engines on servers share: addresses, rate limits for other machines, hits from answers."""

from __future__ import annotations

import html
import ipaddress
import math
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sottovoce.engines.base import EngineError, Hit, beginning
from sottovoce.errors import PrivacyWarning, UsageError

PAUSE_ELSEWHERE = 1.0
"""Seconds between two queries that go elsewhere, unless told otherwise."""
MOST_QUERIES_ELSEWHERE = 20
"""Queries of one search that go elsewhere, unless told otherwise."""

_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_INLINE = re.compile(r"</?(?:a|b|code|em|font|i|mark|small|span|strong|sub|sup|u)\b[^<>]*>", re.I)
_TAG = re.compile(r"<[a-z/!][^<>]*>", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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
        """Whether it is another machine's; see :func:`goes_elsewhere` for what listens there."""
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


def goes_elsewhere(remote: bool, elsewhere: bool | None, *, forwards: bool = False) -> bool:
    """Whether what a server is asked leaves this machine, or comes to somebody who listens.

    remote
        Whether its address is another machine's. Nobody can deny that, since no one here knows who
        listens there: for a server of one's own, ``pause`` and ``most_queries`` can be set.
    elsewhere
        What is said of it; None: nothing. A server on this machine may pass on what it is asked,
        as metasearch engines, proxies and tunnels do, and no address tells.
    forwards
        Whether servers of its kind are known to pass on what they are asked.
    """
    if elsewhere is False and remote:
        raise UsageError(
            "elsewhere = false is for servers on this machine, and this address is another's: "
            "leave it out; if the server is yours, set 'pause' and 'most_queries'"
        )
    if elsewhere is False and forwards:
        warnings.warn(
            "this engine is asked as SearXNG is, which passes queries on; elsewhere = false says "
            "that it does not, and then nothing limits what is sent, or in how many companies",
            PrivacyWarning,
            stacklevel=4,
        )
    return remote or (forwards if elsewhere is None else elsewhere)


def courtesy(
    remote: bool, pause: float | None, most_queries: int | None
) -> tuple[float, int | None]:
    """The pause and the most queries for a server: as given, or the default for where they go.

    For ``most_queries``, 0 means any number, and so does None where all stays on this machine.
    """
    if pause is None:
        pause = PAUSE_ELSEWHERE if remote else 0.0
    if most_queries is None:
        most_queries = MOST_QUERIES_ELSEWHERE if remote else 0
    return pause, most_queries or None


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
    """Sleep for so many seconds; not at all if that is negative."""
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


# What comes back.


@dataclass(frozen=True)
class Fields:
    """Where in a result its parts are, as dotted paths; '' for none.

    A number in a path counts the items of a list, from 0.
    """

    id: str
    title: str = ""
    snippet: str = ""
    score: str = ""


def read_hits(host: str, rows: Any, fields: Fields, depth: int) -> list[Hit]:
    """The first ``depth`` results of a list, in its order; a repeated id counts once.

    Where there is no field for a score, it is 1 / rank.
    """
    hits: dict[str, Hit] = {}
    for row in rows:
        if len(hits) == depth:
            break
        doc_id = pick(row, fields.id)
        if not isinstance(doc_id, str | int) or isinstance(doc_id, bool) or doc_id == "":
            raise EngineError(f"{host}: a result has no id at '{fields.id}'")
        shown_id = _CONTROL.sub("\ufffd", sendable(str(doc_id)))
        if shown_id in hits:
            continue
        hits[shown_id] = Hit(
            doc_id=shown_id,
            score=_score(host, row, fields.score) if fields.score else 1 / (len(hits) + 1),
            title=plain_text(pick(row, fields.title)) if fields.title else "",
            snippet=beginning(plain_text(pick(row, fields.snippet))) if fields.snippet else "",
        )
    return list(hits.values())


def _score(host: str, row: Any, path: str) -> float:
    value = pick(row, path)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        with suppress(OverflowError):
            return float(value)
    raise EngineError(f"{host}: a result has no number at '{path}'")


def pick(value: Any, path: str) -> Any:
    """What stands at a dotted path; None where nothing does; all for ''."""
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def plain_text(value: Any) -> str:
    """A text, or texts of a list, without tags, entities, control characters and long blanks."""
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    if not isinstance(value, str):
        return ""
    text = sendable(html.unescape(_TAG.sub(" ", _INLINE.sub("", value))))
    return " ".join(_CONTROL.sub(" ", text).split())
