"""``sottovoce audit``: try to refute what is said of a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import given_parameters
from sottovoce.cli.options import (
    AsJson,
    Epsilon,
    Parameters,
    ResourceOptions,
    Seed,
    Spec,
    build_mechanism,
    figure_option,
)
from sottovoce.cli.output import escape, new_console, print_json, progress_bar

if TYPE_CHECKING:
    from sottovoce.privacy import Audit

COLOURS = {"REFUTED": "bold red", "CONSISTENT": "green", "NOT REFUTED": "cyan", "NO CLAIM": "dim"}
MEANINGS = {
    "REFUTED": "a counterexample was found, or a test failed beyond chance.",
    "CONSISTENT": "every claim was computed exactly, and holds; draws show nothing else.",
    "NOT REFUTED": "it was tried, and did not succeed. That is no proof.",
    "NO CLAIM": "nothing is promised, so nothing can be refuted.",
}


@grouped
def audit(
    spec: Spec,
    resources: ResourceOptions,
    epsilon: Epsilon = None,
    parameters: Parameters = None,
    draws: Annotated[
        int | None, typer.Option(help="Draws for each word where there is no exact law.")
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="Words to compare, where not all are compared.")
    ] = None,
    seed: Seed = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer draws, and not all pairs: seconds.")
    ] = False,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with 1 if anything is refuted, for scripts.")
    ] = False,
    as_json: AsJson = False,
    figure: Annotated[
        Path | None, figure_option("Draw log-ratios against distance, with the bound.")
    ] = None,
) -> None:
    """Audit a mechanism: try to refute what is stated, and published, about it.

    Exact where it has a law (santext and tem: every two words of the space), by densities and
    draws where it has not; then tests of how it is built. A claim is REFUTED with a witness, or
    CONSISTENT when everything it speaks of was computed, or else NOT REFUTED: never proved.

    [bold]Examples[/bold]

      sottovoce audit cmp

      sottovoce audit wbb --quick

      sottovoce audit mahalanobis --set compat=pypantera --figure ratios.png

      sottovoce audit santext -e 2 --json --fail
    """
    from sottovoce.privacy import audit as run

    mechanism = build_mechanism(spec, given_parameters(parameters, epsilon), resources.settings)
    with progress_bar(f"auditing {mechanism.name}") as progress:
        result = run(mechanism, draws=draws, words=words, rng=seed, quick=quick, progress=progress)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)
    if figure is not None:
        _draw(result, figure)
    if fail and result.verdict == "REFUTED":
        raise typer.Exit(1)


def _print(audit: Audit) -> None:
    from rich.table import Table

    console = new_console()
    where = f", space {audit.space}" if audit.space else ""
    console.print(f"[bold]{escape(audit.mechanism)}[/bold]{escape(where)}\n")
    for claim in audit.claims:
        console.print(
            f"{claim.label}: {_coloured(claim.verdict)}  {escape(claim.guarantee.sentence)}"
        )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for finding in audit.findings:
        sentence = f"[bold]{finding.check}[/bold] ({finding.claim}): {escape(finding.sentence)}"
        if finding.witness is not None:
            sentence += f"\n[bold]Witness[/bold]: {escape(finding.witness.sentence)}."
        table.add_row(_coloured(finding.verdict), sentence)
    console.print()
    console.print(table)
    console.print(f"\nIn short: {_coloured(audit.verdict)}: {MEANINGS[audit.verdict]}")
    if audit.verdict == "REFUTED" and not audit.refutes_what_is_stated:
        console.print("What is refuted was published about it, and is not stated here.")
    console.print(
        f"[dim]Draws refute a sound mechanism with probability {audit.level:g} at most."
        f"{' Seeded.' if audit.seeded else ''}[/dim]"
    )


def _coloured(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/{COLOURS[verdict]}]"


def _draw(audit: Audit, path: Path) -> None:
    """One plot for each check that compared pairs: log-ratios over distance, and the bound."""
    import numpy as np

    from sottovoce.errors import SottovoceError
    from sottovoce.plotting import COLOURS as HUES
    from sottovoce.plotting import new_figure, save_figure

    compared = [
        (finding, finding.points) for finding in audit.findings if finding.points is not None
    ]
    if not compared:
        raise SottovoceError(
            "no figure: this audit compared no pairs one by one; leave --figure out"
        )
    figure, plots = new_figure(columns=len(compared), width=4.0, height=3.4)
    for plot, (finding, points) in zip(plots, compared, strict=True):
        beyond = points.losses > points.bounds + 1e-6
        order = np.argsort(points.distances)
        plot.plot(points.distances[order], points.bounds[order], color=HUES[6], label="the bound")
        for pairs, hue, label in ((~beyond, HUES[0], "within"), (beyond, HUES[1], "beyond")):
            if pairs.any():
                at = points.distances[pairs], points.losses[pairs]
                plot.scatter(*at, s=6, color=hue, label=label, rasterized=True)
        plot.set_title(f"{finding.check} ({finding.claim})")
        plot.set_xlabel("distance")
        plot.set_ylabel("log-ratio, nats")
        plot.legend()
    save_figure(figure, path)
