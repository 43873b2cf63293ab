"""``sottovoce audit``: try to refute what is said of a mechanism."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.progress import progress_bar

if TYPE_CHECKING:
    from sottovoce.privacy import Audit

COLOURS = {"REFUTED": "bold red", "CONSISTENT": "green", "NOT REFUTED": "cyan", "NO CLAIM": "dim"}
MEANINGS = {
    "REFUTED": "a counterexample was found, or a test failed beyond chance.",
    "CONSISTENT": "every claim was computed exactly, and holds; draws show nothing else.",
    "NOT REFUTED": "it was tried, and did not succeed. That is no proof.",
    "NO CLAIM": "nothing is promised, so nothing can be refuted.",
}


def audit(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A mechanism by name or spec, as cmp:epsilon=10.")
    ],
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Budget for each word and release.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Mechanism parameter.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    output_vocabulary: Annotated[
        str, typer.Option(help="Words that may be released: all, clean, dictionary, file:PATH …")
    ] = "all",
    corpus: Annotated[
        Path | None, typer.Option(help="Documents that fea reads its words off.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="FILE|demo", help="Public strings that comet releases.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder of comet.")] = "auto",
    draws: Annotated[
        int | None, typer.Option(help="Draws for each word where there is no exact law.")
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="Words looked at, where not all of them are.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat an audit exactly.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer draws, and not all pairs: seconds.")
    ] = False,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with 1 if anything is refuted, for scripts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png|svg", help="Log-ratios against distance, with the bound."),
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
    from sottovoce.cli.building import build_mechanism, parsed_settings
    from sottovoce.plotting import check_figure_path
    from sottovoce.privacy import audit as run

    if figure is not None:
        check_figure_path(figure)
    given = parsed_settings(settings, epsilon)
    chosen = build_mechanism(spec, given, space, output_vocabulary, corpus, pool, encoder)
    with progress_bar(f"auditing {chosen.name}") as progress:
        found = run(chosen, draws=draws, words=words, rng=seed, quick=quick, progress=progress)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=2))
    else:
        _print(found)
    if figure is not None:
        _draw(found, figure)
    if fail and found.verdict == "REFUTED":
        raise typer.Exit(1)


def _print(found: Audit) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    where = f", space {found.space}" if found.space else ""
    console.print(f"[bold]{escape(found.mechanism)}[/bold]{escape(where)}\n")
    for claim in found.claims:
        colour = COLOURS[claim.verdict]
        said = claim.guarantee.sentence
        console.print(f"{claim.label}: [{colour}]{claim.verdict}[/{colour}]  {escape(said)}")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for finding in found.findings:
        said = f"[bold]{finding.check}[/bold] ({finding.claim}): {escape(finding.sentence)}"
        if finding.witness is not None:
            said += f"\n[bold]Witness[/bold]: {escape(finding.witness.sentence)}."
        colour = COLOURS[finding.verdict]
        table.add_row(f"[{colour}]{finding.verdict}[/{colour}]", said)
    console.print()
    console.print(table)
    colour = COLOURS[found.verdict]
    meaning = MEANINGS[found.verdict]
    console.print(f"\nIn short: [{colour}]{found.verdict}[/{colour}]: {meaning}")
    if found.verdict == "REFUTED" and not found.refutes_what_is_stated:
        console.print("What is refuted was published about it, and is not stated here.")
    console.print(
        f"[dim]Draws refute a sound mechanism with probability {found.level:g} at most."
        f"{' Seeded.' if found.seeded else ''}[/dim]"
    )


def _draw(found: Audit, path: Path) -> None:
    """One plot for each check that compared pairs."""
    import numpy as np

    from sottovoce.errors import SottovoceError
    from sottovoce.plotting import COLOURS as HUES
    from sottovoce.plotting import new_figure, save_figure

    drawn = [each for each in found.findings if each.points is not None]
    if not drawn:
        raise SottovoceError(
            "no figure: this audit compared no pairs one by one; leave --figure out"
        )
    figure, plots = new_figure(columns=len(drawn), width=4.0, height=3.4)
    for plot, finding in zip(plots, drawn, strict=True):
        points = finding.points
        if points is None:
            continue
        over = points.losses > points.bounds + 1e-6
        order = np.argsort(points.distances)
        plot.plot(points.distances[order], points.bounds[order], color=HUES[6], label="the bound")
        for chosen, hue, label in ((~over, HUES[0], "within"), (over, HUES[1], "beyond")):
            if chosen.any():
                some = points.distances[chosen], points.losses[chosen]
                plot.scatter(*some, s=6, color=hue, label=label, rasterized=True)
        plot.set_title(f"{finding.check} ({finding.claim})")
        plot.set_xlabel("distance")
        plot.set_ylabel("log-ratio, nats")
        plot.legend()
    save_figure(figure, path)
