"""The one door through which prompts leave: it gets protected bytes, and knows no original.

No redirect is followed and no cookie kept. An error names the host and the reason, never what was
sent or what came back.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sottovoce.engines.base import EngineError
from sottovoce.engines.http_client import (
    check_clear_text,
    new_connection,
    reason,
    refuse_to_go_around_a_proxy,
)
from sottovoce.engines.remote import Address
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import parse_json

TIMEOUT = 300.0
"""Seconds that an answer may take, to its last byte."""
MOST_BYTES = 20_000_000
LONGEST_LINE = 1 << 20
DONE = "[DONE]"
ADVICE = {
    400: "did not understand the request",
    401: "refused the key: set $SOTTOVOCE_UPSTREAM_KEY to one of its keys",
    403: "refused the key: set $SOTTOVOCE_UPSTREAM_KEY to one of its keys",
    404: "has no such model, or nothing at this address",
    408: "did not answer in time",
    413: "says that the prompt is too long",
    422: "did not understand the request",
    429: "got too many requests: slow down",
}
PASSED_ON = (400, 404, 408, 413, 422, 429)
"""States that say something of the request; all others are told as 502."""


class UpstreamError(SottovoceError):
    """The upstream did not answer. ``status`` is what to tell the client."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Upstream:
    """An OpenAI-compatible server, by the address that its clients take as base_url."""

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    most_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        if urlsplit(self.url).query or urlsplit(self.url).fragment:
            raise UsageError("give the upstream's base url alone, as https://api.example.org/v1")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise UsageError("$SOTTOVOCE_UPSTREAM_KEY holds signs that no header may hold")
        check_clear_text(self.address, secret=self.key is not None)

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address.of(self.url)

    @property
    def name(self) -> str:
        """For people and the ledger."""
        return str(self.address)

    def models(self) -> Any:
        """The models that it lists."""
        with self._answer("GET", "/models", None) as response:
            return self._json(response)

    def complete(self, body: bytes) -> Any:
        """The answer to a request, whole."""
        with self._answer("POST", "/chat/completions", body) as response:
            return self._json(response)

    def stream(self, body: bytes) -> Iterator[Any]:
        """The events of an answer, to its end; an answer that ends early is an error."""
        with self._answer("POST", "/chat/completions", body) as response:
            if response.headers.get_content_type() != "text/event-stream":
                raise UpstreamError(f"{self.name} did not answer in pieces: ask without stream")
            for data in self._events(response):
                if data == DONE:
                    return
                yield self._read(data)
            raise UpstreamError(f"{self.name} ended its answer early")

    @contextmanager
    def _answer(
        self, method: str, path: str, body: bytes | None
    ) -> Iterator[http.client.HTTPResponse]:
        """A good answer, to be read inside; whatever goes wrong says nothing of the request."""
        refuse_to_go_around_a_proxy(self.address)
        connection = new_connection(self.address)
        target = urlsplit(self.url).path.rstrip("/") + path
        headers = {"User-Agent": "sottovoce", "Accept": "application/json, text/event-stream"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            connection.connect()
            connection.sock.settimeout(self.timeout)
            connection.request(method, target, body, headers)
            with connection.getresponse() as response:
                if response.status != 200:
                    raise self._refused(response.status)
                yield response
        except (SottovoceError, GeneratorExit) as error:
            if isinstance(error, EngineError):
                raise UpstreamError(str(error)) from None
            raise
        except Exception as error:
            raise UpstreamError(str(reason(self.name, error))) from None
        finally:
            connection.close()

    def _refused(self, status: int) -> UpstreamError:
        advice = ADVICE.get(status, "sends requests elsewhere" if 300 <= status < 400 else "failed")
        told = status if status in PASSED_ON else 502
        return UpstreamError(f"{self.name} {advice} (status {status})", told)

    def _json(self, response: http.client.HTTPResponse) -> Any:
        data = response.read(self.most_bytes + 1)
        if len(data) > self.most_bytes:
            raise self._too_long()
        if response.length:
            raise ConnectionError
        return self._read(data)

    def _read(self, data: bytes | str) -> Any:
        try:
            answer = parse_json(data)
        except ValueError:
            raise UpstreamError(f"{self.name} did not answer in JSON: check the url") from None
        if not isinstance(answer, dict) or answer.get("error"):
            raise UpstreamError(f"{self.name} answered with an error instead of a completion")
        return answer

    def _events(self, response: http.client.HTTPResponse) -> Iterator[str]:
        """The data of each event: lines up to a blank one."""
        lines: list[str] = []
        size = 0
        while line := response.readline(LONGEST_LINE + 1):
            size += len(line)
            if len(line) > LONGEST_LINE or size > self.most_bytes:
                raise self._too_long()
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text.startswith("data:"):
                lines.append(text[5:].removeprefix(" "))
            elif not text and lines:
                yield "\n".join(lines)
                lines = []
        if lines:
            yield "\n".join(lines)

    def _too_long(self) -> UpstreamError:
        return UpstreamError(f"{self.name} answered more than {self.most_bytes / 1e6:g} MB")
