"""The server process: bind a port, say where it is, serve, end cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.app.settings import Settings
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import write_whole
from sottovoce.paths import data_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CONNECTIONS = 4000
BACKLOG = 2048
HEADER_SECONDS = 15.0
"""For the head of each request, from the beginning of a connection or the answer before."""
ANSWER_SECONDS = 30.0
"""For whoever asked to take what waits to be sent; then the connection ends."""
ENDING = 3
"""Seconds that requests get to finish when the service ends."""


def bind(host: str, port: int) -> socket.socket:
    """The socket to listen on; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except PermissionError:
        listening.close()
        raise UsageError("this port needs rights you do not have: use one above 1023") from None
    except (OSError, OverflowError, UnicodeError):
        listening.close()
        raise SottovoceError(
            f"port {port} cannot be had on this address: another program (perhaps another "
            "'sottovoce serve') has it, or the address is not this machine's. Choose another port "
            "with --port, or any free one with --port 0"
        ) from None
    return listening


def run(
    app: ASGIApp,
    settings: Settings,
    listening: socket.socket,
    ready: Callable[[], None],
    name: str = "serve",
) -> None:
    """Serve until a signal ends it; ``ready`` is called when requests are answered.

    Programs find it by the address file of its ``name``.
    """
    import uvicorn

    _raise_file_limit()
    server = uvicorn.Server(configuration(app))

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_say_the_kind)
        announcing = asyncio.create_task(_announce(server, settings, ready, name))
        try:
            await server.serve(sockets=[listening])
        finally:
            announcing.cancel()

    try:
        with _signals_end(), suppress(SystemExit):
            asyncio.run(serve())
    finally:
        file = address_file(name)
        if file.exists() and file.read_bytes() == _announcement(settings):
            file.unlink()


def configuration(app: ASGIApp) -> Any:
    """How requests are read and answered: nothing of them is logged, and nobody waited for long."""
    import uvicorn

    return uvicorn.Config(
        app,
        http=_patient_protocol(),
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=int(HEADER_SECONDS),
        backlog=BACKLOG,
        timeout_graceful_shutdown=ENDING,
        h11_max_incomplete_event_size=16 << 10,
    )


async def _announce(server: Any, settings: Settings, ready: Callable[[], None], name: str) -> None:
    """Tell people and programs where the service is, once it answers."""
    while not server.started:
        await asyncio.sleep(0.01)
    file = address_file(name)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, _announcement(settings), 0o600)
    except OSError as error:
        kind = type(error).__name__
        sys.stderr.write(f"sottovoce: programs will not find the service ({kind})\n")
    ready()


def address_file(name: str = "serve") -> Path:
    """Where programs of the same user find the running service: port, token, process."""
    return data_folder() / f"{name}.json"


def _announcement(settings: Settings) -> bytes:
    """The content of the address file."""
    content = {"port": settings.port, "token": settings.token, "pid": os.getpid()}
    return json.dumps(content).encode()


def _say_the_kind(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio would print with a traceback: an exception could hold a text."""
    kind = type(context.get("exception")).__name__
    sys.stderr.write(f"sottovoce: something went wrong in the background ({kind})\n")


def _patient_protocol() -> Any:
    """HTTP that waits for each request, and for each answer to be taken, and not for ever."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _patience: asyncio.TimerHandle | None = None
        _until_taken: asyncio.TimerHandle | None = None

        def _wait_for_head(self) -> None:
            """Begin to count while the head of a request is awaited, and stop when it is there."""
            awaited = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
            if awaited and self._patience is None:
                self._patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)
            elif not awaited and self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait_for_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            for timer in (self._patience, self._until_taken):
                if timer is not None:
                    timer.cancel()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._until_taken = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._until_taken is not None:
                self._until_taken.cancel()

    return Patient


def _raise_file_limit() -> None:
    """Each connection is a file: take as many as the system lets us have."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


@contextmanager
def _signals_end() -> Iterator[None]:
    """Have SIGTERM and Ctrl-C end the service, and the code after it run.

    The server sees them first, finishes, and raises them again when it is done.
    """

    def end(*_: object) -> None:
        raise SystemExit(0)

    handlers = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
