"""What commands print: tables for people, JSON for programs, a progress bar where somebody watches.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sottovoce.types import Progress

SLOW_STEPS = 3600.0
"""Seconds that the time left is judged by where a single step may take many."""


def print_json(data: Any) -> None:
    """Print JSON; in ASCII where standard output is not UTF-8, so that it is JSON anywhere."""
    utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    typer.echo(json.dumps(data, ensure_ascii=not utf8, indent=2))


def new_console() -> Console:
    """Standard output for people: styles as written, numbers not coloured."""
    from rich.console import Console

    return Console(highlight=False)


def new_table(*columns: str, numbers: Collection[str] = ()) -> Table:
    """A table without lines; the columns of ``numbers`` are flush right, long texts are wrapped."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        if column in numbers:
            table.add_column(column, justify="right")
        else:
            table.add_column(column, overflow="fold")
    return table


def say(sentence: str) -> None:
    """Tell people something that is not a result."""
    typer.echo(sentence, err=True)


def say_seeded() -> None:
    """Remind people that anybody can repeat what was drawn from a seed."""
    typer.secho("seeded: reproducible, for experiments only", fg="yellow", err=True)


@contextmanager
def progress_bar(doing: str, slow: bool = False) -> Iterator[Progress | None]:
    """Give a callback (done, of all) that draws on stderr; none where that is no terminal.

    ``slow`` is for few long steps: they are counted, and the time left looks far back.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = Progress.get_default_columns()
    bar = Progress(
        *((*columns, MofNCompleteColumn()) if slow else columns),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=SLOW_STEPS if slow else 30.0,
    )
    with bar:
        task = bar.add_task(doing, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
