"""``sottovoce deniability``: how often words come back, and how many words stand in for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.progress import progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sottovoce.mechanisms import WordMechanism
    from sottovoce.privacy import Deniability
    from sottovoce.types import Float64Array, IntArray

SAMPLED = (
    " Bound: holds for all these words at once with 95 % confidence. Missing mass: estimated "
    "probability of words that no draw showed (Good and Turing); the more, the more S_w is too low."
)
SPEC = typer.Argument(metavar="SPEC", help="A mechanism by name or spec, as cmp:epsilon=10.")
SPACE = typer.Option(help="Word space: a name or a folder.")
VOCABULARY = typer.Option(help="Words that may be released: all, clean, dictionary, file:PATH …")
SETTINGS = typer.Option("--set", metavar="KEY=VALUE", help="Mechanism parameter.")
WORDS = typer.Option(metavar="N|FILE", help="So many words of all kinds, or a file, one a line.")
DRAWS = typer.Option(help="Draws for each word, where there is no exact law.")
ETA = typer.Option(help="Share of a word's releases that S_w leaves out.")
SEED = typer.Option(help="Reproducible draws, for experiments only.")


def deniability(
    spec: Annotated[str, SPEC],
    epsilons: Annotated[
        list[float] | None,
        typer.Option("-e", "--epsilon", help="Budget for each word; several are compared."),
    ] = None,
    settings: Annotated[list[str] | None, SETTINGS] = None,
    space: Annotated[str | None, SPACE] = None,
    output_vocabulary: Annotated[str, VOCABULARY] = "all",
    words: Annotated[str, WORDS] = "200",
    draws: Annotated[int, DRAWS] = 1000,
    eta: Annotated[float, ETA] = 0.01,
    seed: Annotated[int | None, SEED] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="OUT.png|svg", help="Histograms of N_w and S_w.")
    ] = None,
) -> None:
    """Measure plausible deniability: how often words come back, how many stand in for each.

    Exact where the mechanism has a law, else counted. It is no measure of what can be guessed from
    a text: for that, see sottovoce attack.

    [bold]Examples[/bold]

      sottovoce deniability cmp -e 5 -e 10 -e 15

      sottovoce deniability santext:epsilon=2 --words my-words.txt --json

      sottovoce deniability vickrey-cmp -e 12.5 --figure deniability.png
    """
    from sottovoce.plotting import check_figure_path, save_figure
    from sottovoce.privacy import deniability as measure
    from sottovoce.privacy.plausible_deniability import check_eta, neighbour_distances

    check_eta(eta)
    if figure is not None:
        check_figure_path(figure)
    wanted: list[float | None] = [*epsilons] if epsilons else [None]
    chosen = [
        word_mechanism(spec, settings, epsilon, space, output_vocabulary) for epsilon in wanted
    ]
    ids, unknown = chosen_words(chosen[0], words)
    near = neighbour_distances(chosen[0].space, ids)
    found: list[Deniability] = []
    with progress_bar("measuring words") as progress:
        for each in chosen:
            found.append(measure(each, ids, eta=eta, draws=draws, rng=seed, progress=progress))
    if figure is not None:
        save_figure(draw(found, near), figure)
    if as_json:
        typer.echo(json.dumps(_described(found, near, unknown), ensure_ascii=False, indent=2))
    else:
        _print(found, near, unknown)


def word_mechanism(
    spec: str,
    settings: list[str] | None,
    epsilon: float | None,
    space: str | None,
    output_vocabulary: str,
) -> WordMechanism:
    """The mechanism asked for, if it replaces words one by one."""
    from sottovoce.cli.building import build_mechanism, parsed_settings
    from sottovoce.mechanisms import WordMechanism, parse
    from sottovoce.privacy.plausible_deniability import word_mechanism as checked

    if spec.strip() == "none":
        raise UsageError(
            "none protects nothing: every word comes back. Name a mechanism that replaces words, "
            "such as cmp"
        )
    given = parsed_settings(settings, epsilon)
    kind, _ = parse(spec, **given)
    if not issubclass(kind, WordMechanism):
        raise UsageError(
            f"{kind.name} rewrites whole texts; this is about mechanisms that replace word by "
            "word, such as cmp: see 'sottovoce mechanisms'"
        )
    return checked(build_mechanism(spec, given, space, output_vocabulary, None))


def chosen_words(mechanism: WordMechanism, words: str) -> tuple[IntArray, int]:
    """The ids of the words asked for, and how many words of a file the space lacks."""
    from sottovoce.privacy.word_samples import choose_words

    count = int(words) if words.isascii() and words.isdigit() else None
    return choose_words(mechanism.space, Path(words) if count is None else count)


def say_unknown(unknown: int) -> None:
    """Say that some words of a file were left out."""
    if unknown:
        typer.secho(
            f"{unknown} word(s) of the file are not in the space and were left out",
            fg="yellow",
            err=True,
        )


def _described(
    found: list[Deniability], near: dict[int, Float64Array], unknown: int
) -> dict[str, Any]:
    from sottovoce.privacy.plausible_deniability import summary

    return {
        "space": found[0].mechanism.space.name,
        "words": len(found[0].words),
        "unknown_words": unknown,
        "neighbour_distances": {str(rank): summary(far) for rank, far in near.items()},
        "results": [each.to_dict() for each in found],
    }


def _print(found: list[Deniability], near: dict[int, Float64Array], unknown: int) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    for each in found:
        said = each.to_dict()
        how = "exact" if each.exact else f"sampled, {each.draws} draws a word"
        if each.seeded:
            how += ", seeded (for experiments only)"
        console.print(
            f"\n[bold]{escape(said['mechanism'])}[/bold] on {escape(said['space'])}, "
            f"{len(each.words)} words, {how}"
        )
        console.print(_table(each, said))
    console.print("\n[bold]Neighbours[/bold]  Euclidean distance to the k-th nearest word")
    console.print(_neighbours(near))
    console.print(
        "\nN_w: probability that a word is released for itself. S_w: the fewest words that make up "
        f"{1 - found[0].eta:g} of its releases. Worst: of the words measured, others may be worse."
        + ("" if found[0].exact else SAMPLED),
        style="dim",
    )
    say_unknown(unknown)


def _table(each: Deniability, said: dict[str, Any]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    columns = ("mean", "5 %", "median", "95 %", "worst", *(() if each.exact else ("bound",)))
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("worst word")

    def row(name: str, values: dict[str, Any], form: str, bound: str) -> None:
        cells = [format(values[key], form) for key in ("mean", "p5", "p50", "p95")]
        worst = format(values["worst"], form) if "worst" in values else ""
        extra = () if each.exact else (bound,)
        table.add_row(name, *cells, worst, *extra, escape(values.get("worst_word", "")))

    back, support = said["unchanged"], said["support"]
    row("N_w, comes back", back, ".3f", f"≤ {back['worst_bound']:.3f}")
    row(f"S_w({each.eta:g}), substitutes", support, ".0f", f"≥ {support['worst_bound']}")
    row(f"different in {each.draws} draws", said["distinct"], ".0f", "")
    if not each.exact:
        row("missing mass", said["missing_mass"], ".3f", "")
    row("distance moved", said["moved"], ".2f", "")
    return table


def _neighbours(near: dict[int, Float64Array]) -> Any:
    from rich.table import Table

    from sottovoce.privacy.plausible_deniability import summary

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("k", "mean", "5 %", "median", "95 %"):
        table.add_column(column, justify="right")
    for rank, far in near.items():
        table.add_row(str(rank), *(f"{value:.2f}" for value in summary(far).values()))
    return table


def draw(found: list[Deniability], near: dict[int, Float64Array]) -> Figure:
    """Histograms of N_w and S_w (figures 2 to 4 of the paper), and neighbours (figure 1)."""
    from sottovoce.plotting import histogram, lines, new_figure
    from sottovoce.privacy.plausible_deniability import PERCENTILES, summary

    figure, (back, stand_ins, distances) = new_figure(1, 3, width=4.5, height=3.5)
    by_epsilon = {f"epsilon {each.mechanism.epsilon:g}": each for each in found}
    title = found[0].mechanism.name
    histogram(
        back,
        {name: each.unchanged for name, each in by_epsilon.items()},
        title=f"{title}: how often a word comes back",
        x="N_w",
        y="share of words",
    )
    histogram(
        stand_ins,
        {name: each.support for name, each in by_epsilon.items()},
        title=f"{title}: words that stand in",
        x=f"S_w({found[0].eta:g})",
        y="share of words",
    )
    cuts = {f"{at} %": [summary(far)[f"p{at}"] for far in near.values()] for at in PERCENTILES}
    lines(
        distances,
        {name: (list(near), values) for name, values in cuts.items()},
        title="distance to the k-th nearest word",
        x="k",
        y="Euclidean distance",
        log_x=True,
    )
    return figure
