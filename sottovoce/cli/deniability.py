"""``sottovoce deniability``: how often words come back, and how many words stand in for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import given_parameters
from sottovoce.cli.options import (
    AsJson,
    DeviceOptions,
    Parameters,
    SampleOptions,
    Seed,
    SpaceOptions,
    Spec,
    build_word_mechanism,
    figure_option,
)
from sottovoce.cli.output import escape, new_console, print_json, progress_bar, say_device

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from sottovoce.privacy import Deniability
    from sottovoce.types import Float64Array

SAMPLED = (
    " Bound: holds for all these words at once with 95 % confidence. Missing mass: estimated "
    "probability of words that no draw showed (Good and Turing); the more, the more S_w is too low."
)


@grouped
def deniability(
    spec: Spec,
    resources: SpaceOptions,
    sample: SampleOptions,
    machine: DeviceOptions,
    epsilons: Annotated[
        list[float] | None,
        typer.Option("-e", "--epsilon", help="Budget for each word; several are compared."),
    ] = None,
    parameters: Parameters = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: Annotated[Path | None, figure_option("Draw histograms of N_w and S_w.")] = None,
) -> None:
    """Measure plausible deniability: how often words come back, how many stand in for each.

    Exact where the mechanism has a law, else counted. It is no measure of what can be guessed from
    a text: for that, see sottovoce attack.

    [bold]Examples[/bold]

      sottovoce deniability cmp -e 5 -e 10 -e 15

      sottovoce deniability santext:epsilon=2 --words my-words.txt --json

      sottovoce deniability vickrey-cmp -e 12.5 --figure deniability.png
    """
    from sottovoce.privacy import deniability as measure
    from sottovoce.privacy.plausible_deniability import check_eta, neighbour_distances

    machine.use()
    check_eta(sample.eta)
    compared: list[float | None] = [*epsilons] if epsilons else [None]
    mechanisms = [
        build_word_mechanism(spec, given_parameters(parameters, epsilon), resources)
        for epsilon in compared
    ]
    space = mechanisms[0].space
    word_ids, unknown = sample.word_ids(space)
    distances = neighbour_distances(space, word_ids)
    with progress_bar("measuring words") as progress:
        results = [
            measure(
                mechanism, word_ids, eta=sample.eta, draws=sample.draws, rng=seed, progress=progress
            )
            for mechanism in mechanisms
        ]
    if figure is not None:
        from sottovoce.plotting import save_figure

        save_figure(_draw(results, distances), figure)
    if as_json:
        print_json(_described(results, distances, unknown))
    else:
        _print(results, distances, unknown)


def say_unknown(unknown: int) -> None:
    """Say that some words of a file were left out."""
    if unknown:
        left_out = f"{unknown} word(s) of the file are not in the space and were left out"
        typer.secho(left_out, fg="yellow", err=True)


def _described(
    results: list[Deniability], distances: dict[int, Float64Array], unknown: int
) -> dict[str, Any]:
    from sottovoce.privacy.plausible_deniability import summary

    return {
        "space": results[0].mechanism.space.name,
        "device": results[0].mechanism.device,
        "words": len(results[0].words),
        "unknown_words": unknown,
        "neighbour_distances": {str(rank): summary(far) for rank, far in distances.items()},
        "results": [result.to_dict() for result in results],
    }


def _print(results: list[Deniability], distances: dict[int, Float64Array], unknown: int) -> None:
    console = new_console()
    for result in results:
        facts = result.to_dict()
        how = "exact" if result.exact else f"sampled, {result.draws} draws a word"
        if result.seeded:
            how += ", seeded (for experiments only)"
        console.print(
            f"\n[bold]{escape(facts['mechanism'])}[/bold] on {escape(facts['space'])}, "
            f"{len(result.words)} words, {how}"
        )
        console.print(_words_table(result, facts))
    console.print("\n[bold]Neighbours[/bold]  Euclidean distance to the k-th nearest word")
    console.print(_neighbours_table(distances))
    console.print(
        "\nN_w: probability that a word is released for itself. S_w: the fewest words that make up "
        f"{1 - results[0].eta:g} of its releases. Worst: of the words measured, others may be "
        "worse." + ("" if results[0].exact else SAMPLED),
        style="dim",
    )
    say_unknown(unknown)
    say_device(results[0].mechanism.device)


def _words_table(result: Deniability, facts: dict[str, Any]) -> Table:
    numbers = ("mean", "5 %", "median", "95 %", "worst", *(() if result.exact else ("bound",)))
    table = _wide_table("", *numbers, "worst word", numbers=numbers)

    def add_row(name: str, values: dict[str, Any], form: str, bound: str = "") -> None:
        cells = [format(values[key], form) for key in ("mean", "p5", "p50", "p95")]
        worst = format(values["worst"], form) if "worst" in values else ""
        bounds = () if result.exact else (bound,)
        table.add_row(name, *cells, worst, *bounds, escape(values.get("worst_word", "")))

    back, support = facts["unchanged"], facts["support"]
    add_row("N_w, comes back", back, ".3f", f"≤ {back['worst_bound']:.3f}")
    add_row(f"S_w({result.eta:g}), substitutes", support, ".0f", f"≥ {support['worst_bound']}")
    add_row(f"different in {result.draws} draws", facts["distinct"], ".0f")
    if not result.exact:
        add_row("missing mass", facts["missing_mass"], ".3f")
    add_row("distance moved", facts["moved"], ".2f")
    return table


def _neighbours_table(distances: dict[int, Float64Array]) -> Table:
    from sottovoce.privacy.plausible_deniability import summary

    columns = ("k", "mean", "5 %", "median", "95 %")
    table = _wide_table(*columns, numbers=columns)
    for rank, far in distances.items():
        table.add_row(str(rank), *(f"{value:.2f}" for value in summary(far).values()))
    return table


def _wide_table(*columns: str, numbers: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left")
    return table


def _draw(results: list[Deniability], distances: dict[int, Float64Array]) -> Figure:
    """Histograms of N_w and S_w (figures 2 to 4 of the paper), and neighbours (figure 1)."""
    from sottovoce.plotting import histogram, lines, new_figure
    from sottovoce.privacy.plausible_deniability import PERCENTILES, summary

    figure, (unchanged_plot, support_plot, neighbour_plot) = new_figure(1, 3, width=4.5, height=3.5)
    by_epsilon = {f"epsilon {result.mechanism.epsilon:g}": result for result in results}
    name = results[0].mechanism.name
    back = {epsilon: result.unchanged for epsilon, result in by_epsilon.items()}
    title = f"{name}: how often a word comes back"
    histogram(unchanged_plot, back, title=title, x="N_w", y="share of words")
    support = {epsilon: result.support for epsilon, result in by_epsilon.items()}
    title, x = f"{name}: words that stand in", f"S_w({results[0].eta:g})"
    histogram(support_plot, support, title=title, x=x, y="share of words")
    summaries = [summary(far) for far in distances.values()]
    curves = {
        f"{percent} %": (list(distances), [cuts[f"p{percent}"] for cuts in summaries])
        for percent in PERCENTILES
    }
    title = "distance to the k-th nearest word"
    lines(neighbour_plot, curves, title=title, x="k", y="Euclidean distance", log_x=True)
    return figure
