"""``sottovoce ledger``: what was spent, what is left, and the budgets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.options import AsJson
from sottovoce.cli.output import (
    DiscreetCommand,
    command_group,
    escape,
    new_console,
    new_table,
    print_json,
    say,
)
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.ledger import Budget, Record, Spent

DEFAULT_NEAREST, DEFAULT_RANDOM = 4.8, 9.0
"""Median Euclidean distances of the default space: to the nearest word, and between any two."""

app = command_group("The ledger: what was released, what it cost, what is left.", "markdown")


@app.command(cls=DiscreetCommand, epilog="Example: `sottovoce ledger show --last 5`")
def show(
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT|-", help="What was spent on this text; - reads it from stdin."),
    ] = None,
    last: Annotated[int, typer.Option(help="How many of the latest releases to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what was spent under each promise, the budgets, and the latest releases."""
    from sottovoce.ledger import Budget, Ledger, NoLedgerError

    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    try:
        ledger = Ledger.open(create=False)
    except NoLedgerError:
        budget, spent, records = Budget(), [], []
    else:
        budget = ledger.budget()
        spent, records = ledger.spent(text), ledger.entries(last, text=text)
    if as_json:
        print_json(
            {
                "budget": budget.to_dict(),
                "spent": [total.to_dict() for total in spent],
                "records": [record.to_dict() for record in records],
            }
        )
    else:
        _print(budget, spent, records, one_text=text is not None)


@app.command(cls=DiscreetCommand, epilog="Example: `sottovoce ledger budget --per-text 50`")
def budget(
    per_text: Annotated[
        float | None, typer.Option(metavar="NATS", help="The most for each text.")
    ] = None,
    total: Annotated[
        float | None, typer.Option(metavar="NATS", help="The most for all texts together.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove both limits.")] = False,
) -> None:
    """Limit what may be spent, in nats per unit of distance, under each promise separately.

    While there is a limit, words in clear (--keep, --unknown keep, --protect) and releases that
    nothing bounds are refused. A limit that is not named stays as it is; without any option the
    limits are shown.
    """
    from sottovoce.ledger import Ledger

    given = per_text is not None or total is not None
    if none and given:
        raise UsageError("--none removes the limits: leave out --per-text and --total")
    ledger = Ledger.open()
    if none:
        ledger.set_budget(None, None)
    elif given:
        now = ledger.budget()
        ledger.set_budget(
            now.per_text if per_text is None else per_text, now.total if total is None else total
        )
    typer.echo(_limits(ledger.budget()))


@app.command(cls=DiscreetCommand)
def check(
    accept_older: Annotated[
        bool,
        typer.Option(
            "--accept-older",
            help="Go on with an older copy, as from a backup: what was released since is not "
            "counted.",
        ),
    ] = False,
) -> None:
    """Go through the whole ledger: is a record changed or missing, is it an older copy."""
    from sottovoce.ledger import Ledger

    ledger = Ledger.accept_older() if accept_older else Ledger.open(create=False)
    count = ledger.check()
    typer.echo(f"{count:,} records, none changed or removed")
    if not ledger.anchored:
        say("Whether it is an older copy cannot be told: the note of how far it was is missing.")
    if ledger.remark:
        say(ledger.remark)


@app.command(cls=DiscreetCommand)
def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, for scripts.")] = False,
) -> None:
    """Forget what was spent, and which words were released. The budgets stay.

    This does not unsay anything: whoever got the releases still has them. Words get the same
    substitutes as before, since the key stays, and are counted again. A damaged ledger is set
    aside, and a new one begun without budgets.
    """
    from sottovoce.ledger import DamagedLedgerError, Ledger

    say(
        "This forgets what was spent, which does not unsay it: those who got your releases still "
        "have them, and new ones add to what they know."
    )
    if not yes and typer.prompt("Type yes to go on", err=True) != "yes":
        say("nothing was changed")
        raise typer.Exit(1)
    try:
        Ledger.open(create=False).reset()
    except DamagedLedgerError:
        aside = Ledger.set_aside()
        Ledger.open()
        say(f"There is a new ledger, without budgets. The damaged one is in {aside}.")
    else:
        say("The ledger is empty; the budgets are as before.")


def _print(budget: Budget, spent: list[Spent], records: list[Record], *, one_text: bool) -> None:
    console = new_console()
    if spent:
        _print_spent(console, spent)
        console.print()
    else:
        console.print("Nothing has been released" + (" of this text." if one_text else "."))
    console.print(_limits(budget))
    if records:
        console.print()
        _print_records(console, records)


def _print_spent(console: Console, spent: list[Spent]) -> None:
    from sottovoce.ledger import in_words

    numbers = ("nats", "left", "releases", "in clear")
    table = new_table("promise", "space", *numbers, numbers=numbers)
    for total in spent:
        table.add_row(
            escape(" ".join(filter(None, (total.notion, total.metric)))),
            escape(total.space or "-"),
            _nats(total.nats),
            "-" if total.left is None else f"{total.left:g}",
            f"{total.releases:,}",
            f"{total.in_clear:,}",
        )
    console.print(table)
    for total in spent:
        console.print(f"\n{in_words(total, **_distances(total))}", markup=False)


def _print_records(console: Console, records: list[Record]) -> None:
    table = new_table()
    table.add_column("time (UTC)", no_wrap=True)
    for column in ("to", "mechanism", "release"):
        table.add_column(column, overflow="fold")
    for column in ("variants", "nats"):
        table.add_column(column, justify="right")
    for record in records:
        table.add_row(
            record.time[:16].replace("T", " "),
            escape(record.destination),
            escape(record.mechanism),
            record.release if record.repeats is None else "remembered",
            str(record.variants),
            _nats(record.spent),
        )
    console.print(table)


def _distances(spent: Spent) -> dict[str, float]:
    """The typical distances that are known without reading a space."""
    from sottovoce.resources.catalogue import DEFAULT

    if spent.metric == "euclidean" and spent.space == DEFAULT.name:
        return {"nearest": DEFAULT_NEAREST, "random": DEFAULT_RANDOM}
    return {}


def _limits(budget: Budget) -> str:
    limits = {"for each text": budget.per_text, "in total": budget.total}
    parts = [f"{limit:g} nats {name}" for name, limit in limits.items() if limit is not None]
    if not parts:
        return "No budget: everything is counted, nothing refused."
    return f"Budget: {' and '.join(parts)}, under each promise."


def _nats(nats: float | None) -> str:
    return "no bound" if nats is None else f"{nats:g}"
