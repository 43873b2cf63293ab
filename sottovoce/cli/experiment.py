"""``sottovoce experiment``: run a grid, report on it, check it against the papers."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import DeviceOptions
from sottovoce.cli.output import (
    DiscreetCommand,
    command_group,
    escape,
    new_console,
    new_table,
    progress_bar,
)
from sottovoce.errors import SottovoceError, UsageError

if TYPE_CHECKING:
    from sottovoce.experiments.check import Checked, Verdict
    from sottovoce.experiments.grid import Size
    from sottovoce.experiments.report.table import Table

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="For programs.")]
COLUMNS = ("draw", "search", "privacy", "words", "tasks", "audits", "done", "variants", "queries")
"""Numbers of a plan, in the order in which they are shown."""
HEADINGS = {"queries": "sent"}
STYLES: dict[Verdict, str] = {
    "OK": "green",
    "OKish": "yellow",
    "FAIL": "bold red",
    "NOT MEASURED": "dim",
}

app = command_group("Experiments: one file in, tables, figures and one report out.", "rich")


@app.command(cls=DiscreetCommand)
@grouped
def run(
    machine: DeviceOptions,
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
    as_json: AsJson = False,
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
    from sottovoce.experiments.tables import FILES

    machine.use()
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
        described = {
            "folder": str(out),
            "cells": outcome.cells,
            "done_before": outcome.done_before,
            "seconds": round(outcome.seconds, 3),
            "seeded": True,
            "device": ", ".join(outcome.devices),
            "tables": {kind: f"{name}.parquet" for kind, name in FILES.items()},
        }
        _print_json(described)
        return
    before = f", {outcome.done_before:,} of them done before" if outcome.done_before else ""
    typer.echo(f"Done    {outcome.cells:,} cells{before}; {outcome.seconds:,.0f} s")
    typer.echo(f"Table   {out / 'results.parquet'}, and results.csv: a value a row")
    typer.echo(f"Device  {', '.join(outcome.devices)}")
    typer.echo("Seeded  reproducible, for experiments only: it protects nobody")
    typer.echo(f"Next    sottovoce experiment report {shlex.quote(str(out))}")


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False, indent=2))


def _show_size(size: Size) -> None:
    shown = [column for column in COLUMNS if column == "done" or size.total(column)]
    table = new_table("on", "mechanism")
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
    new_console().print(table)
    typer.echo("\nCells by kind; variants to draw and queries sent at most.")
    typer.echo("Nothing was run, nothing written: leave --dry-run out to run it.")


@app.command(cls=DiscreetCommand)
def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Of a finished experiment: what 'run' had as --out."),
    ],
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in your browser.")] = False,
    no_figures: Annotated[
        bool, typer.Option("--no-figures", help="Tables only: quicker, and without matplotlib.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Report on an experiment: one HTML page, its figures (SVG, PNG), its tables (CSV, LaTeX).

    The page holds everything, and asks the network for nothing. All goes to DIR/report.

    [bold]Examples[/bold]

      sottovoce experiment report out

      sottovoce experiment report out --open

      sottovoce experiment report out --no-figures --json
    """
    from sottovoce.experiments.report.risk_tables import best_trades
    from sottovoce.experiments.report.write import FIGURES, TABLES, write_report
    from sottovoce.experiments.results import Results

    with progress_bar("figures") as progress:
        page = write_report(folder, progress, figures=not no_figures)
    tables = sorted(file.stem for file in (page.parent / TABLES).glob("*.csv"))
    figures = sorted(file.stem for file in (page.parent / FIGURES).glob("*.svg"))
    if as_json:
        content = {"report": str(page), "tables": tables, "figures": figures}
        typer.echo(json.dumps(content, indent=2))
    else:
        results = Results(folder)
        for place in results.places:
            if (trades := best_trades(results, place)) is not None:
                _print_table(trades)
        typer.echo(f"{len(tables)} tables, {len(figures)} figures: {page}")
    if open_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _print_table(table: Table) -> None:
    from sottovoce.experiments.report.render import to_text

    console = new_console()
    console.print(table.title, style="bold", markup=False)
    drawn = new_table()
    for column, number in zip(table.columns, table.numeric, strict=True):
        drawn.add_column(escape(column), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(escape(to_text(cell)) for cell in row))
    console.print(drawn)
    for text in (table.caption, *table.notes):
        console.print(text, style="dim", markup=False)
    console.print()


@app.command(cls=DiscreetCommand)
def check(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a finished experiment.")
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Expectations of this file, not of the experiment's own."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a finished experiment with the figures and orders that its file expects.

    OK is within the tolerance, OKish within three times that, FAIL beyond; the exit code is 1 if
    anything fails. An order is OKish where something is behind by no more than the tolerance.

    [bold]Examples[/bold]

      sottovoce experiment check results/001

      sottovoce experiment check results/001 --json

      sottovoce experiment check results/001 --against replication/001-quipu.toml
    """
    from sottovoce.experiments.check import VERDICTS
    from sottovoce.experiments.check import check as compare
    from sottovoce.experiments.results import Results
    from sottovoce.experiments.schema.expectations import expectations_of
    from sottovoce.experiments.store import EXPERIMENT

    results = Results(folder)
    expected, orders = expectations_of(against or folder / EXPERIMENT)
    checks = compare(results, expected, orders)
    if not checks:
        raise UsageError(
            "the experiment expects nothing: write [[expected]] or [[expected_order]] into its "
            "file, or name another one with --against"
        )
    counts = Counter(checked.verdict for checked in checks)
    if as_json:
        verdicts = {verdict: counts[verdict] for verdict in VERDICTS}
        listed = [checked.to_dict() for checked in checks]
        typer.echo(json.dumps({"verdicts": verdicts, "checks": listed}, indent=2))
    else:
        _print_checks(checks, counts)
    if counts["NOT MEASURED"] == len(checks):
        raise SottovoceError("nothing of what is expected was measured")
    if counts["FAIL"]:
        raise typer.Exit(1)


def _print_checks(checks: list[Checked], counts: Counter[Verdict]) -> None:
    from sottovoce.experiments.check import VERDICTS

    table = new_table("name")
    for column in ("expected", "ours", "difference"):
        table.add_column(column, overflow="fold", justify="right")
    table.add_column("", overflow="fold")
    source = ""
    for checked in checks:
        if checked.source != source:
            source = checked.source
            table.add_row(f"[dim]{escape(source)}[/dim]")
        table.add_row(
            escape(checked.name),
            escape(checked.expected),
            escape(checked.ours),
            "" if checked.difference is None else f"{checked.difference:+.3f}",
            f"[{STYLES[checked.verdict]}]{checked.verdict}[/]",
        )
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    console = new_console()
    console.print(table)
    console.print()
    console.print(summary)
