"""An app on a real socket, in this process, as ``sottovoce serve`` configures it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import uvicorn

from sottovoce.app.server import configuration


@contextmanager
def served(app, listening):
    """An app on a real socket, in a thread."""
    server = uvicorn.Server(configuration(app))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True
    )
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
