"""An app on a real socket, in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import uvicorn


@contextmanager
def served(app, listening):
    """An app on a real socket, in a thread."""
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, log_level="critical", ws="none", lifespan="on")
    )
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
