"""Who may ask, and how much: checked before the service sees anything of a request.

A page of another site can make a browser send requests to this machine. It cannot choose their Host
(so a name that was rebound to this machine is refused), cannot hide their Origin, cannot read our
answers (there are no CORS headers), and does not know the token.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from sottovoce.app.failures import Json, failure
from sottovoce.app.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY, LARGE_BODY = 1 << 20, 8 << 20
LARGE = ("/v1/sanitize",)
"""Where a data set may be sent."""
LONGEST_URL, LARGEST_HEADERS = 2048, 16 << 10
BODY_SECONDS = 20.0
BODIES_TOGETHER = 64 << 20
"""Bytes of all bodies that are being read or worked on."""
RATE, BURST = 400.0, 4000
"""For those with the token, and again for all others together."""
BODILESS = ("GET", "HEAD")
UNCLEAR = (400, 408, 413, 415)
"""With these the rest of a connection is not read: it could be part of the body."""
ASK = re.compile(r"/ask/(?P<key>[A-Za-z0-9_-]{1,200})")
DESCRIPTION = re.compile(r"/opensearch/(?P<key>[A-Za-z0-9_-]{1,200})/(form|fragment)\.xml")
WITH_TOKEN = re.compile(r"/with/(?P<token>[A-Za-z0-9_-]{1,200})(?P<rest>/search)")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass
class TokenBucket:
    """So many requests at once, and so many a second after that."""

    rate: float = RATE
    burst: float = BURST
    clock: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _then: float = field(init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self._left, self._then = self.burst, self.clock()

    def take(self) -> bool:
        """Whether one more may pass now."""
        with self._lock:
            now = self.clock()
            self._left = min(self.burst, self._left + (now - self._then) * self.rate)
            self._then = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, sentence: str, kind: str = "refused", **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.headers = status, kind, headers

    def response(self) -> Json:
        """What to answer."""
        named = {name.replace("_", "-"): value for name, value in self.headers.items()}
        if self.status in UNCLEAR:
            named["connection"] = "close"
        return Json({"error": str(self), "kind": self.kind}, self.status, headers=named)


class Guard:
    """ASGI middleware: checks each request, reads its body, and adds headers to each answer."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        *,
        also_opens: Callable[[bytes], bool] = lambda _: False,
        bucket: TokenBucket | None = None,
        strangers: TokenBucket | None = None,
        body_seconds: float = BODY_SECONDS,
        bodies_together: int = BODIES_TOGETHER,
    ) -> None:
        self.app, self.settings = app, settings
        self.also_opens = also_opens
        self.bucket, self.strangers = bucket or TokenBucket(), strangers or TokenBucket()
        self.body_seconds, self.bodies_together = body_seconds, bodies_together
        self._origins = {f"http://{host}".encode() for host in settings.hosts}
        self._hosts = {host.encode() for host in settings.hosts}
        self._reading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                replaced = {name for name, _ in _RAW_HEADERS}
                kept = [pair for pair in message.get("headers", ()) if pair[0] not in replaced]
                message = {**message, "headers": [*kept, *_RAW_HEADERS]}
            await send(message)

        try:
            await self._pass_on(scope, receive, sending)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, sending)
        except Exception as error:
            # Neither the answer nor a log may hold it: it could name a word.
            if not begun:
                status, body = failure(error)
                await Json(body, status)(scope, receive, sending)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        reserved = 0
        try:
            reserved, body = await self._body(scope, receive)
            await self.app(scope, _replayed(body, receive), send)
        finally:
            self._reading -= reserved

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]

        def values(name: bytes) -> list[bytes]:
            return [value for key, value in headers if key == name]

        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_URL:
            raise RefusedError(414, "the address is too long: texts go into the body")
        if sum(len(key) + len(value) for key, value in headers) > LARGEST_HEADERS:
            raise RefusedError(431, "the headers are too large")
        if values(b"transfer-encoding") and values(b"content-length"):
            # Where two programs disagree about its end, one request can hide in another.
            raise RefusedError(400, "a body has one length: leave out one of both headers")
        if set(values(b"content-encoding")) - {b"identity"}:
            raise RefusedError(415, "packed bodies are not unpacked here: send plain JSON")
        hosts = values(b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise RefusedError(
                421,
                "this name is not one the service answers to: open the address that the terminal "
                "printed, or start it with --allow-host NAME",
            )
        if any(origin not in self._origins for origin in values(b"origin")):
            raise RefusedError(403, "requests from other sites are refused")
        sites = set(values(b"sec-fetch-site"))
        may_come_from_elsewhere = _opens_the_page(scope, values) or self._reads_description(scope)
        if sites - {b"same-origin", b"none"} and not may_come_from_elsewhere:
            raise RefusedError(403, "requests from other sites are refused")
        bearer = [
            value[7:] for value in values(b"authorization") if value[:7].lower() == b"bearer "
        ]
        # Some clients send their key as x-api-key.
        tokens = values(b"x-sottovoce-token") + values(b"x-api-key") + bearer
        if self.settings.searxng_json:
            tokens += _taken_from_path(scope)
        token = self.settings.token.encode()
        trusted = len(tokens) == 1 and (
            hmac.compare_digest(tokens[0], token) or self.also_opens(tokens[0])
        )
        if not (self.bucket if trusted else self.strangers).take():
            raise RefusedError(429, "too many requests: slow down", "rate", retry_after="1")
        scope.setdefault("state", {})["trusted"] = trusted
        needed = scope["method"] not in BODILESS and not self._from_address_bar(scope, values)
        if needed and not trusted:
            raise needs_token()
        if scope["method"] in BODILESS and (
            values(b"transfer-encoding") or set(values(b"content-length")) - {b"0"}
        ):
            raise RefusedError(400, "this method takes no body")

    def _from_address_bar(self, scope: Scope, values: Callable[[bytes], list[bytes]]) -> bool:
        """A person typed into the browser's search box, which knows its key.

        No page can send a form like this: the browser says that no site is behind it, and a browser
        that does not say so is not believed.
        """
        matched = ASK.fullmatch(scope["path"])
        return (
            scope["method"] == "POST"
            and matched is not None
            and values(b"sec-fetch-site") == [b"none"]
            and values(b"sec-fetch-mode") == [b"navigate"]
            and values(b"sec-fetch-dest") == [b"document"]
            and self.also_opens(matched["key"].encode())
        )

    def _reads_description(self, scope: Scope) -> bool:
        """A browser adds the search engine: Firefox asks as if another site did, with the key."""
        matched = DESCRIPTION.fullmatch(scope["path"])
        return (
            scope["method"] == "GET"
            and matched is not None
            and self.also_opens(matched["key"].encode())
        )

    async def _body(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """The whole body, bounded in size and time, and what was reserved for it."""
        limit = LARGE_BODY if scope["path"] in LARGE else BODY
        lengths = [value for key, value in scope["headers"] if key == b"content-length"]
        if any(not length.isdigit() or int(length) > limit for length in lengths):
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "the request ended early")
                    part = message.get("body", b"")
                    size += len(part)
                    self._reading += len(part)
                    if size > limit:
                        raise _too_large(limit)
                    if self._reading > self.bodies_together:
                        raise RefusedError(
                            503,
                            "too much is being sent at once; nothing was done. Try again in a "
                            "moment",
                            "full",
                            retry_after="2",
                        )
                    parts.append(part)
                    if not message.get("more_body", False):
                        return size, b"".join(parts)
        except TimeoutError:
            self._reading -= size
            raise RefusedError(408, "the body came too slowly") from None
        except BaseException:
            self._reading -= size
            raise


def needs_token() -> RefusedError:
    """The refusal of whoever has no token."""
    return RefusedError(
        401,
        "this needs the token of the running service: open the address that the terminal printed",
        "token",
        www_authenticate="Bearer",
    )


def _taken_from_path(scope: Scope) -> list[bytes]:
    """The token of /with/TOKEN/search, for programs that know an address and nothing else."""
    matched = WITH_TOKEN.fullmatch(scope["path"])
    if matched is None:
        return []
    scope["path"] = matched["rest"]
    scope["raw_path"] = matched["rest"].encode()
    return [matched["token"].encode()]


def _opens_the_page(scope: Scope, values: Callable[[bytes], list[bytes]]) -> bool:
    """A person followed a link to the page, the same for everybody, or opened our own file."""
    return (
        scope["method"] == "GET"
        and (scope["path"] == "/" or scope["path"].startswith("/open/"))
        and values(b"sec-fetch-mode") == [b"navigate"]
        and values(b"sec-fetch-dest") == [b"document"]
    )


def _too_large(limit: int) -> RefusedError:
    return RefusedError(413, f"the body is larger than {limit >> 20} MiB: send less at once")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body once, and then whatever still comes."""
    replayed = False

    async def replaying() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replaying
