"""``sottovoce experiment run``: a file in, tables out; or, before that, what it would do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sottovoce.cli.output import progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.experiments.grid import Size
    from sottovoce.experiments.run import Outcome

COLUMNS = ("draw", "search", "privacy", "words", "tasks", "done", "variants", "queries")
"""Numbers of a plan, in the order in which they are shown."""
HEADINGS = {"queries": "sent"}


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="What to do, on what, how often.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where results go, and go on.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; the results are the same.")] = 1,
    on: Annotated[
        Literal["local", "dask"], typer.Option(help="This machine, or a Dask cluster.")
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of the cluster; a local one if not given."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="What {data} in paths stands for; or SOTTOVOCE_DATA."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Run the experiment that a file describes. What is done is never done twice.

    Every problem of the file is told before anything runs. Stopped, or killed, it goes on where it
    was when you type the same again. All is drawn from seeds: it measures, and protects nobody.

    [bold]Examples[/bold]

      sottovoce experiment run demo.toml --out demo --dry-run

      sottovoce experiment run demo.toml --out demo --workers 2

      sottovoce experiment run replication/001-quipu.toml --out quipu --data ~/data
    """
    from sottovoce.experiments.grid import size_of
    from sottovoce.experiments.run import finished_jobs, run_experiment
    from sottovoce.experiments.schema.reading import read_experiment
    from sottovoce.experiments.store import check_folder

    experiment = read_experiment(file, data)
    if out is not None:
        check_folder(out, experiment.name)
    if dry_run:
        size = size_of(experiment, finished_jobs(experiment, out) if out is not None else ())
        if as_json:
            _print_json(size.to_dict())
        else:
            _show_size(size)
        return
    if out is None:
        raise UsageError("say where the results go, as in --out results; or try --dry-run first")
    try:
        with progress_bar("cells", slow=True) as progress:
            outcome = run_experiment(
                experiment,
                out,
                file=file,
                workers=workers,
                on=on,
                scheduler=scheduler,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.secho("stopped; what is done is kept: type the same again to go on", err=True)
        raise typer.Exit(130) from None
    if as_json:
        _print_json(_described(outcome, out))
    else:
        _show(outcome, out)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False, indent=2))


def _show_size(size: Size) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = [column for column in COLUMNS if column == "done" or size.total(column)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("on", overflow="fold")
    table.add_column("mechanism", overflow="fold")
    for column in shown:
        table.add_column(HEADINGS.get(column, column), justify="right", no_wrap=True)
    above = None
    for (on, mechanism), counts in size.lines.items():
        table.add_row(
            "" if on == above else escape(on),
            escape(mechanism) or "[dim]none[/dim]",
            *(f"{counts[column]:,}" if counts[column] else "" for column in shown),
        )
        above = on
    table.add_row("in all", "", *(f"{size.total(column):,}" for column in shown), style="bold")
    typer.echo(f"{size.name}: {size.total('cells'):,} cells\n")
    Console(highlight=False).print(table)
    typer.echo("\nCells by kind; variants to draw and queries sent at most.")
    typer.echo("Nothing was run, nothing written: leave --dry-run out to run it.")


def _described(outcome: Outcome, out: Path) -> dict[str, Any]:
    from sottovoce.experiments.tables import FILES

    return {
        "folder": str(out),
        "cells": outcome.cells,
        "done_before": outcome.done_before,
        "seconds": round(outcome.seconds, 3),
        "seeded": True,
        "tables": {kind: f"{name}.parquet" for kind, name in FILES.items()},
    }


def _show(outcome: Outcome, out: Path) -> None:
    before = f", {outcome.done_before:,} of them done before" if outcome.done_before else ""
    typer.echo(f"Done    {outcome.cells:,} cells{before}; {outcome.seconds:,.0f} s")
    typer.echo(f"Table   {out / 'results.parquet'}, and results.csv: a value a row")
    typer.echo("Seeded  reproducible, for experiments only: it protects nobody")
    typer.echo(f"Next    sottovoce experiment report {shlex.quote(str(out))}")
