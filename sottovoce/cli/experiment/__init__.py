"""``sottovoce experiment``: run a grid, report on it, check it against the papers."""

from __future__ import annotations

import typer

from sottovoce.cli.discreet import DiscreetCommand, DiscreetGroup
from sottovoce.cli.experiment import check, report, run

app = typer.Typer(
    cls=DiscreetGroup,
    help="Experiments: one file in, tables, figures and one report out.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for command in (run.run, report.report, check.check):
    app.command(command.__name__, cls=DiscreetCommand)(command)
