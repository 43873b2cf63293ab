"""A progress bar for people; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback (done, of all) that draws on stderr; none where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
