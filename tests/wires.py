"""Servers that keep every byte they get, and misbehave when told to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

MOODS = (
    "hangs up",
    "cuts off",
    "is silent",
    "drips",
    "redirects",
    "answers nonsense",
    "answers another form",
    "is busy",
    "echoes",
)
"""What a web server can do instead of answering."""
STATUSES = (301, 302, 303, 307, 308)


class Kept:
    """The bytes that came, and whether anybody came at all."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.connections = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def take(self) -> bytes:
        """What came since the last time."""
        with self._lock:
            data = bytes(self.received)
            self.received.clear()
            return data

    def keep(self, data: bytes) -> None:
        with self._lock:
            self.received += data

    def close(self) -> None:
        # A thread that waits in accept would keep the port.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve_safely, args=(connection,), daemon=True).start()

    def _serve_safely(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        while data := connection.recv(1 << 16):
            self.keep(data)


class Wire(Kept):
    """A web server. Every so many requests it does what its mood says instead of answering.

    answer
        The body for a request's target and body.
    elsewhere
        The port to which it redirects.
    """

    def __init__(self, answer: Callable[[str, bytes], bytes], elsewhere: int = 1) -> None:
        self.answer, self.elsewhere = answer, elsewhere
        self.requests = 0
        self.mood, self.every = "", 0
        super().__init__()

    def behave(self, mood: str = "", every: int = 1) -> None:
        """Be in this mood at every so many requests from now on."""
        self.mood, self.every, self.requests = mood, every if mood else 0, 0

    def serve(self, connection: socket.socket) -> None:
        pending = b""
        while True:
            while (request := _whole(pending)) is None:
                data = connection.recv(1 << 16)
                if not data:
                    return
                self.keep(data)
                pending += data
            head, body, pending = request
            self.requests += 1
            if self.every and self.requests % self.every == 0:
                if not self._misbehave(connection, head, body):
                    return
            elif not self._answer(connection, head, body):
                return

    def _answer(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        data = self.answer(head.split(b" ", 2)[1].decode("latin-1"), body)
        if data.startswith(b"HTTP/"):
            connection.sendall(data)
            return False
        connection.sendall(_response(200, data))
        return True

    def _misbehave(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        """Do so; whether the connection stays open."""
        match self.mood:
            case "hangs up":
                return False
            case "cuts off":
                connection.sendall(_response(200, b'{"results": [{"id": ')[:-5])
                return False
            case "is silent":
                time.sleep(0.2)
                return False
            case "drips":
                for byte in _response(200, b'{"results": []}'):
                    connection.sendall(bytes([byte]))
                    time.sleep(0.005)
                return False
            case "redirects":
                status = STATUSES[self.requests % len(STATUSES)]
                path = head.split(b" ", 2)[1]
                place = b"Location: http://127.0.0.1:%d%s\r\n" % (self.elsewhere, path)
                connection.sendall(_response(status, b"", place))
            case "answers nonsense":
                nonsense = (b"<html>", b"\xff\xfe{", b"[" * 5000, b'"text"', b"", b"null", b"{}")
                connection.sendall(_response(200, nonsense[self.requests % len(nonsense)]))
            case "answers another form":
                row = {"id": None, "title": ["x", {"y": 1}], "score": "high"}
                rows = [{}, row, {**row, "id": 1}, {**row, "id": "\x00\ud800"}, 7][
                    self.requests % 5
                ]
                forms = {"results": [rows], "responses": [rows], "result": {"points": [rows]}}
                data = {**forms, "hits": {"hits": [rows]}, "choices": [rows]}
                connection.sendall(_response(200, json.dumps(data).encode()))
            case "is busy":
                status = (429, 503)[self.requests % 2]
                connection.sendall(_response(status, b"busy", b"Retry-After: 0\r\n"))
            case "echoes":
                request = head.replace(b"\r\n", b" ") + body
                status = (400, 401, 404, 418, 500)[self.requests % 5]
                phrase = request[:200].decode("latin-1")
                connection.sendall(_response(status, request, phrase=phrase))
        return True


class Relay(Kept):
    """Stands before a server and keeps what its clients send; it can break off, or talk nonsense.

    connect
        Opens a connection to the server.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self.mood, self.after = "", 0
        super().__init__()

    def behave(self, mood: str = "", after: int = 0) -> None:
        """From now on, do so after this many bytes from the server, in each connection."""
        self.mood, self.after = mood, after

    def serve(self, connection: socket.socket) -> None:
        with self._connect() as server:
            threading.Thread(target=self._back, args=(server, connection), daemon=True).start()
            with suppress(OSError):
                while data := connection.recv(1 << 16):
                    self.keep(data)
                    server.sendall(data)
            for end in (server, connection):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        with suppress(OSError):
            while data := server.recv(1 << 16):
                passed += len(data)
                if self.mood and passed > self.after:
                    if self.mood == "answers nonsense":
                        client.sendall(b"E\x00\x00\x00\x7fnonsense" * 20)
                    elif self.mood == "is silent":
                        time.sleep(0.2)
                    break
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _whole(data: bytes) -> tuple[bytes, bytes, bytes] | None:
    """The head and the body of a request, and what follows; None if it is not whole yet."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    length = int(lower[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return None if len(rest) < length else (head, rest[:length], rest[length:])


def _response(status: int, body: bytes, headers: bytes = b"", phrase: str = "OK") -> bytes:
    head = f"HTTP/1.1 {status} {phrase}\r\nContent-Length: {len(body)}\r\n".encode("latin-1")
    return head + headers + b"\r\n" + body
