"""``sottovoce quipu``: one score for the trade of risk against utility."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.options import AsJson, figure_option
from sottovoce.cli.output import escape, new_console, new_table, print_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from sottovoce.privacy import Curve, QuipuScore
    from sottovoce.privacy.quipu_score import Interval


def quipu(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV with the columns system,parameter,risk,utility, and query for intervals "
            "(may be gzipped; - is standard input).",
        ),
    ],
    best: Annotated[
        float | None,
        typer.Option(metavar="U", help="Utility of the original query, for the anchored score."),
    ] = None,
    descending: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM", help="A system that is more private the larger its parameter is."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Resamplings of the queries.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the resampling; it protects nothing.")] = 0,
    as_json: AsJson = False,
    figure: Annotated[Path | None, figure_option("Draw risk against utility.")] = None,
) -> None:
    """Score systems by risk and utility over their parameter: above 0 the person gains more.

    Rows that repeat a parameter (and query) are averaged. Parameters that are numbers go from the
    smallest, the most private, to the largest; names keep the order of the file.

    [bold]Examples[/bold]

      sottovoce quipu measured.csv --best 0.674

      sottovoce quipu measured.csv --descending aea --figure plane.svg

      sottovoce quipu measured.csv --json
    """
    from sottovoce.plotting import save_figure
    from sottovoce.privacy import quipu_score as scoring
    from sottovoce.privacy import read_curves

    curves = read_curves(file, tuple(descending or ()))
    scores = [
        scoring.quipu(curve.risks, curve.utilities, best=best, samples=samples, seed=seed)
        for curve in curves
    ]
    if figure is not None:
        save_figure(_draw(curves, best), figure)
    if as_json:
        print_json(_describe(curves, scores, best, samples, seed))
    else:
        _print(curves, scores)


def _describe(
    curves: list[Curve], scores: list[QuipuScore], best: float | None, samples: int, seed: int
) -> dict[str, Any]:
    from sottovoce.statistics import LEVEL

    resampled = any(score.interval for score in scores)
    return {
        "best": best,
        "bootstrap": {"level": LEVEL, "samples": samples, "seed": seed} if resampled else None,
        "systems": [
            {"system": curve.system, "parameters": list(curve.parameters), **score.to_dict()}
            for curve, score in zip(curves, scores, strict=True)
        ],
    }


def _draw(curves: list[Curve], best: float | None) -> Figure:
    from sottovoce.plotting import new_figure, plane

    paths: dict[str, tuple[ArrayLike, ArrayLike]] = {c.system: c.means() for c in curves}
    if best is not None:
        paths["the query itself"] = ([1.0], [best])
    figure, (plot,) = new_figure(width=5.5, height=5.5)
    plane(plot, paths)
    return figure


def _print(curves: list[Curve], scores: list[QuipuScore]) -> None:
    from sottovoce.privacy.quipu_score import MEANING

    anchored = any(score.anchored is not None for score in scores)
    numbers = ("points", "QuIPU", "by nu", *(["anchored"] if anchored else []))
    table = new_table("system", *numbers, "flags", numbers=numbers)
    for curve, score in zip(curves, scores, strict=True):
        table.add_row(
            escape(curve.system),
            str(score.points),
            _cell(score.value, score.interval),
            _cell(score.nu_sorted, None),
            *([_cell(score.anchored, score.anchored_interval)] if anchored else []),
            ", ".join(score.flags),
        )
    console = new_console()
    console.print(table)
    console.print()
    raised = {flag for score in scores for flag in score.flags}
    notes = [f"{flag}: {meaning}." for flag, meaning in MEANING.items() if flag in raised]
    if any(score.interval for score in scores):
        notes.append("In brackets: the 95 % bootstrap interval over queries.")
    notes.append(
        "The score depends on which parameters were measured: compare systems over their whole "
        "range" + (", or by the anchored score." if anchored else "; --best U gives anchored ones.")
    )
    for note in notes:
        console.print(note, style="dim", markup=False)


def _cell(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    ends = "" if interval is None else f" ({interval[0]:+.3f}, {interval[1]:+.3f})"
    return f"{value:+.3f}{ends}".replace("0.", ".")
