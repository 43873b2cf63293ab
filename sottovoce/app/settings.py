"""What a service is started with."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from functools import partial

from sottovoce import defaults
from sottovoce.collections import DEMO

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PORT = 8765
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, repr=False)
class Settings:
    """Where the service listens, what it searches with, and how much it takes on."""

    host: str = "127.0.0.1"
    port: int = PORT
    allowed_hosts: tuple[str, ...] = ()
    """Names, besides those of this machine, by which the service may be addressed.

    One with a port, as a tunnel makes it, counts with that port and no other.
    """
    collection: str = defaults.COLLECTION
    engine: str = defaults.ENGINE
    reranker: str = defaults.RERANKER
    space: str | None = None
    log: str = DEMO
    """The query log that an attacker is taken to have."""
    pool: str | None = None
    """The public queries among which queries leave in company; None for those of the log."""
    depth: int | None = None
    """Documents taken from each answer; None for the usual number."""
    shuffle: bool | None = None
    """Whether words are sent in random order; None: if the engine does not look at the order."""
    pad_to: int = 0
    """Queries of fewer words are padded to so many."""
    token: str = field(default_factory=partial(secrets.token_urlsafe, 24))
    searxng_json: bool = False
    """Whether programs may search as they search with SearXNG."""
    waiting: int = 2000
    """Requests to obfuscate that may wait; one more is refused."""

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers to answer to."""
        names = [name.lower() for name in (*LOOPBACK, *self.allowed_hosts)]
        with_port = {name if _PORT.search(name) else f"{name}:{self.port}" for name in names}
        # Browsers leave the usual port out.
        return frozenset(with_port | {name.removesuffix(":80") for name in with_port})

    @property
    def names_public_queries(self) -> bool:
        """Whether somebody named those among which queries leave in company."""
        return (self.log if self.pool is None else self.pool) != DEMO

    @property
    def base(self) -> str:
        """Where the service is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            host = "127.0.0.1"
        return f"http://{host}:{self.port}"

    @property
    def address(self) -> str:
        """What to open; the token is in the fragment, which no browser sends anywhere."""
        return f"{self.base}/#token={self.token}"

    def __repr__(self) -> str:
        return f"Settings({self.host}, {self.port})"
