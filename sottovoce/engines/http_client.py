"""One HTTP client for all engines: JSON comes back, or an error that repeats no query.

No redirect is followed, since it could carry a query to somebody else, and no cookie is kept, since
it could tie one search to the next. An error names the host and the reason; never the address asked
for, what was sent, or what came back.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import threading
import time
import urllib.request
import warnings
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Any

from sottovoce.engines.base import EngineError
from sottovoce.engines.remote import Address, Pace, rest
from sottovoce.errors import PrivacyWarning, UsageError
from sottovoce.files import parse_json

CONNECT_TIMEOUT = 5.0
FIRST_WAIT = 0.5
"""Seconds before the first retry, on average; each further one takes twice as long."""
MOST_BYTES = 10_000_000

LONGEST_WAIT = 30.0
"""Seconds; an engine that asks to be left alone for longer is not asked again."""

_CHUNK = 1 << 16
_BUSY = {502, 503, 504}
_CAPTCHA = re.compile(
    rb"captcha|not a robot|(?:are you|you are|you're) (?:a )?(?:human|robot)|unusual traffic"
    rb"|cf-challenge|challenge-platform",
    re.IGNORECASE,
)
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")


class TransientError(EngineError):
    """A failure worth another try, after ``wait`` seconds where the engine said so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Transport:
    """A connection to one server, kept open between requests; one request at a time.

    headers
        Sent with every request. If they are ``secret``, never in clear to another machine.
    pause
        The least time between two requests, in seconds.
    timeout
        The seconds that an answer may take, from the request to its last byte.
    retries
        How often a request is repeated after a failed connection or status 429, 502, 503 or 504.
        Anything else, a time-out included, fails at once.
    """

    def __init__(
        self,
        address: Address,
        *,
        headers: Mapping[str, str] | None = None,
        secret: bool = False,
        pause: float = 0.0,
        timeout: float = 10.0,
        retries: int = 2,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        check_clear_text(address, secret)
        self.address = address
        self._timeout, self._retries, self._most_bytes = timeout, retries, most_bytes
        self._headers = {"User-Agent": "sottovoce", "Accept": "application/json"}
        for name, value in (headers or {}).items():
            _check_header(name, value)
            self._headers[name.title()] = value
        self._connection = new_connection(self.address)
        self._pace = Pace(pause)
        self._lock = threading.Lock()
        weakref.finalize(self, self._connection.close)

    def __repr__(self) -> str:
        return f"Transport({self.address})"

    def ask(
        self, target: str, body: bytes | None = None, content_type: str = "application/json"
    ) -> Any:
        """GET a path, or POST a body to it; answer the JSON that comes back."""
        refuse_to_go_around_a_proxy(self.address)
        headers = {**self._headers, **({"Content-Type": content_type} if body is not None else {})}
        attempt = 0
        with self._lock:
            while True:
                try:
                    with self._pace.turn():
                        return self._ask_once(target, body, headers)
                except TransientError as failure:
                    if attempt == self._retries:
                        raise EngineError(str(failure)) from None
                    wait = failure.wait
                backoff = FIRST_WAIT * 2**attempt * SystemRandom().uniform(0.5, 1.5)
                rest(backoff if wait is None else wait)
                attempt += 1

    def _ask_once(self, target: str, body: bytes | None, headers: dict[str, str]) -> Any:
        try:
            with self._send(target, body, headers) as response:
                data = self._read(response)
        except BaseException as error:
            # After Ctrl-C, too: the next request must not meet half an answer.
            self._connection.close()
            if not isinstance(error, Exception):
                raise
            raise reason(str(self.address), error) from None
        return read_json(str(self.address), response.status, response.headers, data)

    def _send(
        self, target: str, body: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        """Send a request; once more where the server had closed a connection left open."""
        kept_open = self._connection.sock is not None
        try:
            return self._send_now(target, body, headers)
        except ConnectionError:
            if not kept_open:
                raise
        self._connection.close()
        return self._send_now(target, body, headers)

    def _send_now(
        self, target: str, body: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.sock.settimeout(self._timeout)
        self._connection.request("GET" if body is None else "POST", target, body, headers)
        return self._connection.getresponse()

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        data = bytearray()
        while chunk := response.read(_CHUNK):
            data += chunk
            if len(data) > self._most_bytes:
                raise EngineError(
                    f"{self.address} answered more than {self._most_bytes / 1e6:g} MB: "
                    "ask for fewer results, or for fewer of their fields"
                )
        if response.length:
            raise ConnectionError
        return bytes(data)


class _Response(http.client.HTTPResponse):
    """A response that must be complete within its socket's timeout."""

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_Timed(sock, self.fp.detach()))


class _Timed(io.RawIOBase):
    """The bytes of a socket up to a deadline, however slowly a server sends them."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock, self._raw = sock, raw
        self._until = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def new_connection(address: Address) -> http.client.HTTPConnection:
    """A connection to be opened; each answer must be complete within its socket's timeout."""
    where = (address.host, address.port)
    connection = (
        http.client.HTTPSConnection(
            *where, timeout=CONNECT_TIMEOUT, context=ssl.create_default_context()
        )
        if address.secure
        else http.client.HTTPConnection(*where, timeout=CONNECT_TIMEOUT)
    )
    connection.response_class = _Response
    return connection


def reason(host: str, error: Exception) -> EngineError:
    """The same failure, in words that hold nothing of what was sent."""
    match error:
        case EngineError():
            return error
        case TimeoutError():
            return EngineError(f"{host} did not answer in time: try later, or raise timeout")
        case socket.gaierror():
            return EngineError(f"{host} could not be found: check the name and your network")
        case ssl.SSLCertVerificationError():
            return EngineError(
                f"the certificate of {host} could not be verified ({error.verify_message}): "
                "this query was not sent"
            )
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return TransientError(f"{host} closed the connection")
        case ssl.SSLError():
            return EngineError(
                f"{host} made no secure connection: if it is on this machine, is it http://?"
            )
        case ConnectionRefusedError():
            return TransientError(
                f"{host} refused the connection: see whether the server is running there"
            )
        case http.client.IncompleteRead() | ConnectionError():
            return TransientError(f"{host} closed the connection before its answer was complete")
        case OSError():
            return TransientError(f"{host} could not be reached: check your network")
        case http.client.HTTPException():
            return EngineError(f"{host} did not answer in HTTP: check the port")
    return EngineError(f"asking {host} failed ({type(error).__name__})")


def check_clear_text(address: Address, secret: bool) -> None:
    """Refuse to send secrets in clear to another machine; warn of anything else."""
    if address.secure or not address.remote:
        return
    if secret:
        raise UsageError(f"credentials for {address} would travel in clear: use https://")
    warnings.warn(
        f"queries to {address} travel in clear, for everyone on the way to read: use https:// "
        "where the server has it",
        PrivacyWarning,
        stacklevel=4,
    )


def refuse_to_go_around_a_proxy(address: Address) -> None:
    """Refuse to connect directly where a proxy is set: its user may rely on it to stay unseen."""
    if not address.remote or urllib.request.proxy_bypass(address.host):
        return
    proxies = {"https" if address.secure else "http", "all"} & set(urllib.request.getproxies())
    if proxies:
        raise UsageError(
            f"the environment sets a proxy ({', '.join(sorted(proxies))}_proxy), which sottovoce "
            f"does not use: nothing was sent. Unset it, or list {address.host} in no_proxy, if you "
            "want to be connected directly"
        )


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise UsageError("the name of a header may hold letters, digits and '-' only")
    if not _HEADER_VALUE.fullmatch(value):
        raise UsageError(
            f"the header {name} holds a line break or a sign outside ASCII: check its value"
        )


# What a server answered.


def read_json(host: str, status: int, headers: Message, data: bytes) -> Any:
    """The JSON of a good answer; an error that says what to do about any other."""
    page = headers.get_content_type() == "text/html" or data.lstrip()[:1] == b"<"
    if page and _CAPTCHA.search(data):
        raise EngineError(
            f"{host} wants to see a person: open it in a browser, then search more slowly (a "
            "longer pause, fewer queries)"
        )
    if status == 429 or status in _BUSY:
        raise _busy(host, status, headers)
    if not 200 <= status < 300:
        raise EngineError(f"{host} {_advice(status)}")
    if page:
        raise EngineError(
            f"{host} answered with a web page instead of JSON: check the url, and whether the "
            "server offers JSON at all"
        )
    try:
        return parse_json(data)
    except ValueError:
        raise EngineError(f"{host} did not answer in JSON: check the url") from None


def _busy(host: str, status: int, headers: Message) -> EngineError:
    wait = _seconds(headers.get("Retry-After"))
    message = (
        f"{host} got too many requests (status 429): raise the pause, or lower the number of "
        "variants"
        if status == 429
        else f"{host} is not available now (status {status}): try later"
    )
    if wait is not None and wait > LONGEST_WAIT:
        return EngineError(f"{message}; it asks to be left alone for {wait:.0f} s")
    return TransientError(message, wait)


def _seconds(retry_after: str | None) -> float | None:
    """What a Retry-After header says, as a number of seconds or as a date."""
    if retry_after is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", retry_after.strip()):
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused (status {status}): it blocks you, or needs a key in the headers"
        case 404:
            return "has nothing there (status 404): check the path of the url"
        case 405:
            return "does not take this method (status 405): try the other of GET and POST"
        case _ if 300 <= status < 400:
            return (
                f"sends queries on to another address (status {status}), which is not followed: "
                "if you trust that address, make it the url"
            )
        case _ if 400 <= status < 500:
            return f"did not understand the request (status {status}): check url and body"
    return f"failed (status {status}): try later"
