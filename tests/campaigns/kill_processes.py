"""Processes of the kill campaign: forked children."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def forked(function: Callable[[Path, int], None], place: Path, who: int) -> int:
    """Call a function in a child; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        function(place, who)
        status = 0
    except BaseException as error:
        message = f"{type(error).__name__}: {str(error)[:200]}"
        Path(f"{place}.{os.getpid()}.error").write_text(message)
    finally:
        os._exit(status)


def told(place: Path, child: int) -> str:
    """What a child said when it failed."""
    file = Path(f"{place}.{child}.error")
    return f" ({file.read_text()})" if file.exists() else ""
