"""``sottovoce membership``: tell whose releases a text model learnt from, if one can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import listed_epsilons
from sottovoce.cli.options import (
    AsJson,
    Epsilons,
    HowReleased,
    ResourceOptions,
    Seed,
    build_mechanisms,
    figure_option,
)
from sottovoce.cli.output import new_console, new_table, print_json, progress_bar, say_seeded
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.privacy import MembershipReport


@grouped
def membership(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Query log with the columns user and query.")
    ],
    resources: ResourceOptions,
    mechanism: Annotated[
        str | None,
        typer.Option("-m", "--mechanism", help="Name or spec; without it, clean text alone."),
    ] = None,
    epsilons: Epsilons = None,
    members: Annotated[int, typer.Option(help="Users whose releases train a model.")] = 100,
    shadows: Annotated[int, typer.Option(help="Models that the auditor learns from.")] = 4,
    repeats: Annotated[int, typer.Option(help="Random splits of the users.")] = 3,
    min_queries: Annotated[int, typer.Option(help="Leave out users with fewer queries.")] = 150,
    max_queries: Annotated[int, typer.Option(help="Leave out users with more queries.")] = 500,
    n: Annotated[int, typer.Option("-n", "--variants", help="Variants of each query.")] = 1,
    release: HowReleased = "independent",
    seed: Seed = None,
    figure: Annotated[Path | None, figure_option("Draw AUC against epsilon.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try to tell whose releases a text model learnt from.

    A text model learns from the obfuscated queries of half of the users. The auditor asks it about
    the queries of all users, and guesses who was among that half. FILE is CSV, TSV or JSON lines,
    and may be gzipped.

    [bold]Examples[/bold]

      sottovoce membership log.csv

      sottovoce membership log.tsv.gz -m cmp -e 5,10,15 --figure membership.svg

      sottovoce membership log.csv -m vickrey-cmp:t=0.5 -e 10 --members 20 --min-queries 30 --json
    """
    numbers = listed_epsilons(epsilons)
    if numbers and mechanism is None:
        raise UsageError("an epsilon belongs to a mechanism: give one with -m, as in -m cmp")
    if figure is not None and mechanism is None:
        raise UsageError("a figure shows AUC against epsilon: give -m and -e")
    from sottovoce.privacy import membership as audit_membership
    from sottovoce.privacy import read_user_log

    mechanisms = [] if mechanism is None else build_mechanisms([mechanism], numbers, resources)
    if figure is not None and not hasattr(mechanisms[0], "epsilon"):
        raise UsageError("a figure shows AUC against epsilon, and this mechanism has none")
    log = read_user_log(file)
    with progress_bar("training and asking models") as progress:
        report = audit_membership(
            log,
            mechanisms,
            members=members,
            shadows=shadows,
            repeats=repeats,
            min_queries=min_queries,
            max_queries=max_queries,
            n=n,
            release=release,
            rng=seed,
            progress=progress,
        )
    if figure is not None:
        from sottovoce.plotting import save_figure
        from sottovoce.privacy.membership_audit.outcomes import auc_figure

        save_figure(auc_figure(report), figure)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)


def _print(report: MembershipReport) -> None:
    table = new_table()
    table.add_column("released")
    for column in (
        "max(AUC, 1-AUC)",
        "AUC",
        "found at 1 % false alarms",
        "right",
        "AUC, auditor of clean text",
    ):
        table.add_column(column, justify="right")
    clean, *obfuscated = report.outcomes
    # Each outcome beside that of the auditor who learnt from clean text.
    pairs = [(clean, clean), *zip(obfuscated[::2], obfuscated[1::2], strict=True)]
    for outcome, naive in pairs:
        table.add_row(
            outcome.setting.mechanism or "clean text",
            f"{outcome.risk:.2f}  {_between(outcome.risk_interval)}",
            f"{outcome.auc:.2f}",
            f"{outcome.tpr:.2f}  {_between(outcome.tpr_interval)}",
            f"{outcome.accuracy:.0%}",
            f"{naive.auc:.2f}  {_between(naive.auc_interval)}",
        )
    console = new_console()
    console.print(table)
    console.print(
        f"\n{report.members} members and {report.members} non-members in each of {report.repeats} "
        f"random splits of {report.users} users, {report.shadows} shadow models; 95 % intervals. "
        "Chance is .50. The auditor learnt from text that went through the same mechanism; the "
        "last column is for one who did not, as published.\n"
        "One auditor and one kind of model: others may find more.",
        style="dim",
    )
    for remark in report.remarks:
        console.print(f"Note: {remark}.")
    if report.seeded:
        say_seeded()


def _between(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f}–{interval[1]:.2f}"
