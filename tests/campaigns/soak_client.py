"""Clients of the soaked service: one that asks properly, and several that do not."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

PATIENCE = 60.0
"""Seconds after which an answer counts as lost."""
KEPT = 16
"""Connections that are kept for further requests, as a browser keeps them."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LostError(Exception):
    """No answer came, or half of one."""


@dataclass(frozen=True)
class Served:
    """A running service."""

    home: Path
    port: int
    token: str
    pid: int

    @property
    def memory(self) -> int:
        """The resident set, in bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def status(self) -> str:
        """What it says of itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
            return str(json.load(answer)["status"])

    def head(self, method: str, path: str, *more: str) -> bytes:
        """The head of a request."""
        lines = (
            *(f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"),
            *(f"X-Sottovoce-Token: {self.token}", *more),
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Client:
    """Asks on connections that it keeps, as far as the service keeps them."""

    served: Served
    patience: float = PATIENCE
    free: list[Streams] = field(default_factory=list)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, writer in self.free:
            writer.close()

    async def ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body of the answer."""
        more = (
            ()
            if body is None
            else (f"Content-Length: {len(body)}", "Content-Type: application/json")
        )
        request = self.served.head(method, path, *more) + (body or b"")
        try:
            async with asyncio.timeout(self.patience):
                while self.free:
                    streams = self.free.pop()
                    if not streams[0].at_eof():
                        with suppress(ConnectionError, asyncio.IncompleteReadError):
                            # A kept connection may end just now: that request is sent again.
                            return await self._exchange(streams, request)
                    streams[1].close()
                fresh = await asyncio.open_connection("127.0.0.1", self.served.port)
                return await self._exchange(fresh, request)
        except (OSError, asyncio.IncompleteReadError, KeyError, ValueError) as error:
            raise LostError(type(error).__name__) from None

    async def _exchange(self, streams: Streams, request: bytes) -> tuple[int, bytes]:
        reader, writer = streams
        keep = False
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in head[1:])
            named = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(named["content-length"]))
            keep = len(self.free) < KEPT and named.get("connection") != "close"
        finally:
            if keep:
                self.free.append(streams)
            else:
                writer.close()
        return int(head[0].split()[1]), body


@asynccontextmanager
async def slow_clients(served: Served, of_each: int) -> AsyncIterator[None]:
    """Some that say nothing, some that drip, some that never take their answers."""
    tasks = [
        asyncio.create_task(behave(served))
        for behave in (_silent, _dripping, _deaf)
        for _ in range(of_each)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _silent(served: Served) -> None:
    """Connected, and nothing more."""
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        try:
            await asyncio.sleep(30)
        finally:
            writer.close()


async def _dripping(served: Served) -> None:
    """A byte of a request now and then."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        try:
            for byte in served.head("POST", "/v1/obfuscate", "Content-Length: 99") + b'{"text"':
                writer.write(bytes([byte]))
                await asyncio.sleep(0.3)
                if reader.at_eof() or writer.is_closing():
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()


async def _deaf(served: Served) -> None:
    """Asks for much, again and again, and takes nothing of it."""
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1)
        try:
            writer.write(served.head("GET", "/openapi.json") * 3)
            await asyncio.sleep(5)
        finally:
            writer.transport.abort()
