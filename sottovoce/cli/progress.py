"""A progress bar for people; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW_STEPS = 3600.0
"""Seconds that the time left is judged by where a single step may take many."""


@contextmanager
def progress_bar(doing: str, slow: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback (done, of all) that draws on stderr; none where that is no terminal.

    ``slow`` is for few long steps: they are counted, and the time left looks far back.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = Progress.get_default_columns()
    shown = Progress(
        *((*columns, MofNCompleteColumn()) if slow else columns),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=SLOW_STEPS if slow else 30.0,
    )
    with shown as bar:
        task = bar.add_task(doing, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
