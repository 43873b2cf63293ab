"""``sottovoce calibrate``: the largest epsilon at which every word meets targets, and its cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.deniability import say_unknown
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import given_parameters
from sottovoce.cli.options import (
    AsJson,
    Parameters,
    SampleOptions,
    Seed,
    SpaceOptions,
    Spec,
    build_word_mechanism,
)
from sottovoce.cli.output import escape, new_console, print_json, progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.privacy import Calibration, Cost


@grouped
def calibrate(
    spec: Spec,
    resources: SpaceOptions,
    sample: SampleOptions,
    max_unchanged: Annotated[
        float, typer.Option(help="No word may come back more often than this, as 0.05.")
    ] = 1.0,
    min_support: Annotated[
        int, typer.Option(help="Every word needs so many substitutes, as 300.")
    ] = 1,
    parameters: Parameters = None,
    cost: Annotated[
        bool, typer.Option("--cost/--no-cost", help="Measure what the answer costs.")
    ] = True,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Find the largest epsilon at which every word keeps your targets, and say what it costs.

    Targets are about the worst of the words measured, not about the average one. An epsilon in
    SPEC is ignored: it is what is looked for.

    [bold]Examples[/bold]

      sottovoce calibrate cmp --max-unchanged 0.05 --min-support 300

      sottovoce calibrate santext --max-unchanged 0.1 --words my-words.txt

      sottovoce calibrate wbb --min-support 40 --set n=50 --no-cost --json
    """
    from sottovoce.privacy import Targets, measure_cost
    from sottovoce.privacy import calibrate as search

    targets = Targets(max_unchanged, min_support, sample.eta)
    mechanism = build_word_mechanism(spec, given_parameters(parameters, None), resources)
    word_ids, unknown = sample.word_ids(mechanism.space)
    with progress_bar("trying epsilons") as progress:
        calibration = search(
            mechanism, targets, word_ids, draws=sample.draws, rng=seed, progress=progress
        )
    measured_cost = measure_cost(calibration.measured, seed) if cost else None
    if as_json:
        described = None if measured_cost is None else measured_cost.to_dict()
        print_json(calibration.to_dict() | {"unknown_words": unknown, "cost": described})
    else:
        _print(calibration, measured_cost)
        say_unknown(unknown)


def _print(calibration: Calibration, cost: Cost | None) -> None:
    console = new_console()
    measured, targets = calibration.measured, calibration.targets
    how = "exactly" if measured.exact else f"on {measured.draws} fresh draws a word"
    console.print(
        f"\n[bold]epsilon {calibration.epsilon:g}[/bold]  {escape(calibration.mechanism.spec)} on "
        f"{escape(calibration.mechanism.space.name)}, {len(measured.words)} words, checked {how}"
    )
    demands = []
    if targets.max_unchanged < 1:
        demands.append(f"no word comes back more than {targets.max_unchanged:.3g} of the time")
    if targets.min_support > 1:
        demands.append(f"every word has at least {targets.min_support} substitutes")
    console.print(f"[bold]{'Kept' if calibration.kept else 'Wanted'}[/bold]  {'; '.join(demands)}.")
    if not calibration.kept:
        console.print(
            "Not quite kept: two sets of draws keep it and a third does not. Take a smaller "
            "epsilon, or more --draws.",
            style="bold yellow",
        )
    if not calibration.limited:
        console.print("No larger epsilon that was tried breaks this.", style="yellow")
    _print_below(calibration, console)
    _print_measured(calibration, console)
    if cost is not None:
        _print_cost(cost, console)
    console.print(
        "\nThis holds for the words measured, each on its own; what a whole text and several "
        "releases of it give away is another question: sottovoce attack.",
        style="dim",
    )
    if calibration.seeded:
        console.print("Seeded: reproducible, for experiments only.", style="yellow")


def _print_below(calibration: Calibration, console: Console) -> None:
    kept = [f"{check.epsilon:g}" for check in calibration.smaller if check.kept]
    if kept:
        console.print(f"Also kept at epsilon {', '.join(kept)}.")
    for check in calibration.smaller:
        if not check.kept:
            console.print(
                f"Not at the smaller epsilon {check.epsilon:g}: there a word may come back "
                f"{check.unchanged:.3g} of the time, or have as few as {check.support} "
                "substitutes. Smaller is not safer here.",
                style="bold yellow",
            )


def _print_measured(calibration: Calibration, console: Console) -> None:
    measured = calibration.measured
    bounds = float(measured.unchanged_bound.max()), int(measured.support_bound.min())
    console.print("\n[bold]At this epsilon[/bold]")
    sure = "" if measured.exact else f" (bound {bounds[0]:.3f})"
    console.print(
        f"  comes back (N_w): {measured.unchanged.mean():.3f} on average, "
        f"{measured.unchanged.max():.3f} at worst{sure}"
    )
    sure = "" if measured.exact else f" (bound {bounds[1]})"
    console.print(
        f"  substitutes (S_w, eta {measured.eta:g}): {measured.support.mean():.0f} on average, "
        f"{measured.support.min()} at worst{sure}"
    )
    if not measured.exact:
        console.print(
            "  Bounds hold for all these words at once with 95 % confidence.", style="dim"
        )


def _print_cost(cost: Cost, console: Console) -> None:
    console.print("\n[bold]What it costs[/bold]")
    console.print(
        f"  A released word is {cost.moved:.2f} away from the true one on average; its nearest "
        f"neighbour is {cost.nearest:.2f} away."
    )
    console.print(
        f"  One release may tell a word from its nearest neighbour by {_nats(cost.nats_nearest)}, "
        f"from a random word by {_nats(cost.nats_random)} (medians)."
    )
    if cost.similarity is not None:
        console.print(
            f"  Demo queries and their releases are alike by {cost.similarity:.2f} (cosine, light "
            "encoder; 1 is the same)."
        )
    if (answers := cost.answers) is not None:
        times = f", so {answers.sent} releases" if answers.release == "independent" else ""
        console.print(
            f"  Searching the demo collection finds nDCG@10 {answers.private:.3f}, without "
            f"privacy {answers.plain:.3f}, with unrelated queries {answers.unrelated:.3f} "
            f"({answers.sent} queries sent, {answers.release}{times}; "
            f"{answers.said_aloud:.0%} of the words of a query stand somewhere in them)."
        )
    for note in cost.notes:
        console.print(f"  {note}", style="yellow", markup=False)


def _nats(value: float) -> str:
    return f"{value:.1f} nats" if math.isfinite(value) else "any amount: nothing bounds it"
