"""What commands print: tables for people, JSON for programs, a progress bar where somebody watches.

Results go to standard output, everything else to standard error. Error messages do not repeat what
was typed: it may be the text itself.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from sottovoce.errors import did_you_mean

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


def escape(text: str) -> str:
    """The text for a console or a table, where rich would take brackets for styles."""
    from rich.markup import escape as escaped

    return escaped(text)


def say(sentence: str) -> None:
    """Tell people something that is not a result."""
    typer.echo(sentence, err=True)


def say_seeded() -> None:
    """Remind people that anybody can repeat what was drawn from a seed."""
    typer.secho("seeded: reproducible, for experiments only", fg="yellow", err=True)


def say_device(device: str) -> None:
    """Tell people which device did the work: a GPU is used without being asked for."""
    say("device: cuda (a GPU)" if device == "cuda" else f"device: {device}")


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


# Commands whose error messages hold no argument


def _redact(error: Exception, typed: list[str]) -> None:
    """Replace every argument in the message that is neither an option nor a number."""
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        return
    if "unexpected extra argument" in message:
        message = "more was given than this command takes: put a text of several words in quotes"
    for argument in sorted(typed, key=len, reverse=True):
        if re.search(r"[^\W\d_]", argument) and not argument.startswith("-"):
            message = message.replace(argument, "…")
    error.message = message  # type: ignore[attr-defined]


class DiscreetCommand(TyperCommand):
    """A command whose error messages hold no argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _redact(error, typed)
            raise


class DiscreetGroup(TyperGroup):
    """A group of commands that does not repeat a command it does not know."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        commands = self.list_commands(ctx)
        if args and args[0] not in commands:
            hint = did_you_mean(args[0], commands, f"there are {', '.join(commands)}.")
            ctx.fail(f"no such command: {hint} A text goes behind 'sottovoce obfuscate'.")
        return super().resolve_command(ctx, args)


def command_group(about: str, markup: Literal["markdown", "rich"]) -> typer.Typer:
    """An empty group of commands, such as ``sottovoce ledger``."""
    return typer.Typer(
        cls=DiscreetGroup,
        help=about,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=markup,
        pretty_exceptions_enable=False,
    )
