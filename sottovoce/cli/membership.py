"""``sottovoce membership``: tell whose releases a text model learnt from, if one can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.choices import Release
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.privacy import MembershipReport
    from sottovoce.privacy.membership_audit import Outcome


def membership(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Query log with the columns user and query.")
    ],
    mechanism: Annotated[
        str | None,
        typer.Option("-m", "--mechanism", help="Name or spec; without it, clean text alone."),
    ] = None,
    epsilons: Annotated[
        list[str] | None,
        typer.Option("-e", "--epsilon", metavar="E[,E…]", help="One or more epsilons."),
    ] = None,
    members: Annotated[int, typer.Option(help="Users whose releases train a model.")] = 100,
    shadows: Annotated[int, typer.Option(help="Models that the auditor learns from.")] = 4,
    repeats: Annotated[int, typer.Option(help="Random splits of the users.")] = 3,
    min_queries: Annotated[int, typer.Option(help="Leave out users with fewer queries.")] = 150,
    max_queries: Annotated[int, typer.Option(help="Leave out users with more queries.")] = 500,
    n: Annotated[int, typer.Option("-n", "--variants", help="Variants of each query.")] = 1,
    release: Annotated[
        Release, typer.Option(help="N fresh draws, or N readings of one draw.")
    ] = "independent",
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="FILE|demo", help="Public strings that comet releases.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder of comet.")] = "auto",
    corpus: Annotated[
        Path | None, typer.Option(help="Documents of yours that fea reads its words off.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Reproducible splits and draws, for experiments.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="OUT.png|svg", help="Draw AUC against epsilon.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Try to tell whose releases a text model learnt from.

    Half of some users release their queries, and a text model learns from them. The auditor asks it
    about the queries of all, and says who was in. FILE is CSV, TSV or JSON lines, or gzipped.

    [bold]Examples[/bold]

      sottovoce membership log.csv

      sottovoce membership log.tsv.gz -m cmp -e 5,10,15 --figure membership.svg

      sottovoce membership log.csv -m vickrey-cmp:t=0.5 -e 10 --members 20 --min-queries 30 --json
    """
    values = _epsilons(epsilons)
    if values and mechanism is None:
        raise UsageError("an epsilon belongs to a mechanism: give one with -m, as in -m cmp")
    if figure is not None:
        from sottovoce.plotting import check_figure_path

        if mechanism is None:
            raise UsageError("a figure shows AUC against epsilon: give -m and -e")
        check_figure_path(figure)
    from sottovoce.cli.progress import progress_bar
    from sottovoce.privacy import membership as audit_membership
    from sottovoce.privacy import read_user_log

    chosen = (
        [] if mechanism is None else _mechanisms(mechanism, values, space, corpus, pool, encoder)
    )
    if figure is not None and not all(hasattr(each, "epsilon") for each in chosen):
        raise UsageError("a figure shows AUC against epsilon, and this mechanism has none")
    log = read_user_log(file)
    with progress_bar("training and asking models") as progress:
        report = audit_membership(
            log,
            chosen,
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
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        _print(report)


def _epsilons(given: list[str] | None) -> list[float]:
    try:
        return [float(part) for each in given or () for part in each.split(",")]
    except ValueError:
        raise UsageError("an epsilon is a number: write -e 10, or -e 5,10,15") from None


def _mechanisms(
    spec: str,
    epsilons: list[float],
    space: str | None,
    corpus: Path | None,
    pool: str | None,
    encoder: str,
) -> list[Mechanism]:
    from sottovoce.cli.building import build_mechanism

    settings = [{"epsilon": each} for each in dict.fromkeys(epsilons)] or [{}]
    return [build_mechanism(spec, each, space, "all", corpus, pool, encoder) for each in settings]


def _print(report: MembershipReport) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("released")
    for column in (
        "max(AUC, 1-AUC)",
        "AUC",
        "found at 1 % false alarms",
        "right",
        "AUC, auditor of clean text",
    ):
        table.add_column(column, justify="right")
    for outcome, naive in _rows(report):
        table.add_row(
            outcome.setting.mechanism or "clean text",
            f"{outcome.risk:.2f}  {_between(outcome.risk_interval)}",
            f"{outcome.auc:.2f}",
            f"{outcome.tpr:.2f}  {_between(outcome.tpr_interval)}",
            f"{outcome.accuracy:.0%}",
            f"{naive.auc:.2f}  {_between(naive.auc_interval)}",
        )
    console = Console(highlight=False)
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
        typer.secho("seeded: reproducible, for experiments only", fg="yellow", err=True)


def _rows(report: MembershipReport) -> list[tuple[Outcome, Outcome]]:
    """Each outcome beside that of the auditor who learnt from clean text."""
    clean, *others = report.outcomes
    return [(clean, clean), *zip(others[::2], others[1::2], strict=True)]


def _between(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f}–{interval[1]:.2f}"
