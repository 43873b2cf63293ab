"""``sottovoce experiment check``: what came out against what the papers say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sottovoce.experiments.check import Checked, Verdict

STYLES: dict[Verdict, str] = {
    "OK": "green",
    "OKish": "yellow",
    "FAIL": "bold red",
    "NOT MEASURED": "dim",
}


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
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare a finished experiment with the figures and orders that its file expects.

    OK is within the tolerance, OKish within three times that, FAIL beyond; the exit code is 1 if
    anything fails. An order is OKish where something is behind by no more than the tolerance.

    [bold]Examples[/bold]

      sottovoce experiment check results/001

      sottovoce experiment check results/001 --json

      sottovoce experiment check results/001 --against replication/001-quipu.toml
    """
    from sottovoce.errors import SottovoceError, UsageError
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
        _print(checks, counts)
    if counts["NOT MEASURED"] == len(checks):
        raise SottovoceError("nothing of what is expected was measured")
    if counts["FAIL"]:
        raise typer.Exit(1)


def _print(checks: list[Checked], counts: Counter[Verdict]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from sottovoce.experiments.check import VERDICTS

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "expected", "ours", "difference", ""):
        table.add_column(
            column,
            overflow="fold",
            justify="right" if column in ("expected", "ours", "difference") else "left",
        )
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
    console = Console(highlight=False)
    console.print(table)
    console.print()
    console.print(
        ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    )
