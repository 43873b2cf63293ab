"""``sottovoce experiment report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.output import progress_bar

if TYPE_CHECKING:
    from sottovoce.experiments.report.table import Table


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Of a finished experiment: what 'run' had as --out."),
    ],
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in your browser.")] = False,
    no_figures: Annotated[
        bool, typer.Option("--no-figures", help="Tables only: quicker, and without matplotlib.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
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
        typer.echo(
            json.dumps({"report": str(page), "tables": tables, "figures": figures}, indent=2)
        )
    else:
        results = Results(folder)
        for place in results.places:
            if (trades := best_trades(results, place)) is not None:
                _print(trades)
        typer.echo(f"{len(tables)} tables, {len(figures)} figures: {page}")
    if open_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _print(table: Table) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    from sottovoce.experiments.report.render import to_text

    console = Console(highlight=False)
    console.print(table.title, style="bold", markup=False)
    drawn = RichTable(box=None, pad_edge=False, header_style="bold")
    for column, number in zip(table.columns, table.numeric, strict=True):
        drawn.add_column(escape(column), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(escape(to_text(cell)) for cell in row))
    console.print(drawn)
    for text in (table.caption, *table.notes):
        console.print(text, style="dim", markup=False)
    console.print()
