"""``sottovoce attack``: what an attacker reads off a file of releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sottovoce.choices import RELEASES, Release
from sottovoce.cli.options import (
    AsJson,
    Seed,
    SpaceOptions,
    build_word_mechanism,
    figure_option,
    grouped,
)
from sottovoce.cli.output import new_console, print_json, progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.mechanisms import WordMechanism
    from sottovoce.privacy import Released, RiskReport
    from sottovoce.privacy.attacks.risk import Headline


@grouped
def attack(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Releases: JSON lines of 'obfuscate -o jsonl', or CSV id,text,obfuscatedText.",
        ),
    ],
    resources: SpaceOptions,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="LOG|demo",
            help="Query log that the attacker searches: one query a line, CSV, TSV, JSON lines.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("-m", "--mechanism", help="What made the releases; else as the file says."),
    ] = None,
    release: Annotated[
        Release | None,
        typer.Option(help="How they were released; else as the file says."),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The attacker's encoder: light, strong, or a model's folder; all if not given."
        ),
    ] = None,
    engine_encoder: Annotated[
        str | None,
        typer.Option(help="The engine's encoder, if it has one: the attacker takes another."),
    ] = None,
    add_originals: Annotated[
        bool, typer.Option("--add-originals", help="Add originals that the log lacks to it.")
    ] = False,
    prior: Annotated[
        Literal["uniform", "log"],
        typer.Option(help="What words are expected: all alike, or as often as in the log."),
    ] = "uniform",
    variants: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            "--variants",
            help="Variants that the attacker sees; 1, 5, 20 and 50 if not given.",
        ),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: Annotated[Path | None, figure_option("Draw recovery against variants seen.")] = None,
) -> None:
    """Attack releases: show which words and queries can still be read off them.

    The headline is the strongest attack's. Attacks that know the mechanism need its name (a file
    of ours holds it) and the word space it used.

    [bold]Examples[/bold]

      sottovoce obfuscate - -n 20 -o jsonl < queries.txt > releases.jsonl

      sottovoce attack releases.jsonl --log demo --add-originals

      sottovoce attack theirs.csv --log log.tsv -m cmp:epsilon=10 --figure risk.svg
    """
    from sottovoce.privacy import QueryLog, attacker_encoders, read_log, read_releases
    from sottovoce.privacy import attack as assess
    from sottovoce.privacy.attacks.run import COUNTS

    if variants is not None and min(variants) < 1:
        raise UsageError("-n: an attacker sees at least one variant")
    if log is None and (encoder or engine_encoder or add_originals):
        raise UsageError("--encoder and --add-originals are about query inference: give a --log")
    releases = read_releases(file)
    word_mechanism, whole_texts = _mechanism(mechanism, releases, resources)
    strategy = release or _release(releases)
    query_log = None if log is None else QueryLog(read_log(log))
    with progress_bar("attacking") as progress:
        report = assess(
            releases,
            mechanism=word_mechanism,
            whole_texts=whole_texts is not None,
            release=strategy,
            log=query_log,
            encoders=() if query_log is None else attacker_encoders(engine_encoder, encoder),
            add_originals=add_originals,
            prior=prior,
            counts=variants or COUNTS,
            rng=seed,
            progress=progress,
        )
    if figure is not None:
        _draw(report, figure)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report, whole_texts)


def _mechanism(
    spec: str | None, releases: list[Released], resources: SpaceOptions
) -> tuple[WordMechanism | None, str | None]:
    """The mechanism asked for, or named by the file in our own words.

    The second answer is the name of one that replaces whole texts: it has no positions to attack.
    """
    from sottovoce.mechanisms import parse

    named = spec or _common(releases, "mechanism")
    if named is None:
        return None, None
    try:
        kind, parameters = parse(named)
    except UsageError:
        if spec is not None:
            raise
        return None, None  # Somebody else's name for it.
    if not kind.by_word:
        return None, kind.name
    epsilon = _common(releases, "epsilon")
    added = {} if epsilon is None or "epsilon" in parameters else {"epsilon": float(epsilon)}
    built = build_word_mechanism(named, added, resources)
    if epsilon is not None and built.epsilon != float(epsilon):
        raise UsageError(
            f"the file says another epsilon ({float(epsilon):g}) than -m ({built.epsilon:g}): "
            "attack with the one that was used, or leave it out of -m"
        )
    if _common(releases, "made_with") not in (None, built.made_with):
        raise UsageError(
            "the releases were made with another word space or output vocabulary, so attacks that "
            "know the mechanism would fail for nothing: name it with --space and "
            "--output-vocabulary"
        )
    return built, None


def _release(releases: list[Released]) -> Release:
    """The strategy that the file names; independent if it names none."""
    named = _common(releases, "release") or "independent"
    for strategy in RELEASES:
        if strategy == named:
            return strategy
    raise UsageError("the file names a release strategy that does not exist: give --release")


def _common(releases: list[Released], what: str) -> str | None:
    """What the file says of all its releases alike."""
    values = {getattr(release, what) for release in releases}
    if len(values) > 1:
        raise UsageError(
            f"the file holds releases with more than one {what}: attack each in a file of its own"
        )
    (value,) = values
    return None if value is None else str(value)


def _print(report: RiskReport, whole_texts: str | None) -> None:
    from rich.table import Table

    console = new_console()
    table = Table("attack", "variants", "words", "95 %", "whole texts", "95 %", box=None)
    reasons: dict[str, str] = {}
    for recovery in report.recoveries:
        if not recovery.applies:
            reasons.setdefault(recovery.attack, recovery.why)
            continue
        table.add_row(
            "(seeing the noisy points)" if recovery.bound else recovery.attack,
            str(recovery.n),
            _share(recovery.word_share),
            _range(recovery.word_interval),
            _share(recovery.query_share),
            _range(recovery.query_interval),
        )
    left_out = max((recovery.left_out for recovery in report.recoveries), default=0)
    console.print(f"{report.releases} texts; words got back, by attack and variants seen:\n")
    if table.row_count:
        console.print(table)
    if left_out:
        console.print(
            f"  {left_out} texts left out: their variants differ in their number of words",
            style="yellow",
        )
    applied = {recovery.attack for recovery in report.attacks}
    for name, why in reasons.items():
        if name not in applied:
            console.print(f"  {name}: does not apply; {why}", style="dim")
    if report.inferences:
        _print_inference(report, console)
    else:
        console.print("\nNo query inference: give a query log with --log.", style="dim")
    console.print()
    for what, headline in (("words", report.words), ("whole texts", report.texts)):
        console.print(_headline(what, headline), style="bold")
    if whole_texts is not None:
        console.print(
            f"There is no attack here that knows {whole_texts}: its risk may be larger.",
            style="yellow",
        )
    elif report.mechanism is None:
        console.print(
            "Attacks that know the mechanism were not tried: name it with -m.", style="yellow"
        )
    if report.seeded:
        console.print("seeded: the attacker's draws can be repeated", style="yellow")


def _print_inference(report: RiskReport, console: Console) -> None:
    from rich.table import Table

    first = report.inferences[0][1]
    shown = ("lazy", "active", "motivated", "rank_biased")
    table = Table("encoder", "variants", box=None, padding=(0, 1, 0, 0))
    for name in shown:
        table.add_column(first.risks[name].measure, no_wrap=True)
    for n, inference in report.inferences:
        risks = [inference.risks[name] for name in shown]
        cells = [f"{risk.value:.2f} ({risk.low:.2f}–{risk.high:.2f})" for risk in risks]
        table.add_row(inference.encoder, str(n), *cells)
    measures = [first.risks[name] for name in shown]
    chances = ", ".join(f"{risk.measure} {risk.chance:.1g}" for risk in measures)
    console.print(
        f"\nQuery inference in a log of {first.log:,} queries"
        + (f", {first.added:,} of them originals that were added" if first.added else "")
        + ":\n"
    )
    console.print(table)
    console.print(f"  a blind guess: {chances}", style="dim")


def _headline(what: str, headline: Headline | None) -> str:
    if headline is None:
        return f"No attack on {what} applies: their risk was not measured."
    return (
        f"The strongest attack ({headline.attack}, {headline.n} variants) gets "
        f"{headline.share:.0%} of the {what} back (95 %: {headline.low:.0%}–{headline.high:.0%})."
    )


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _range(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.0%}–{ends[1]:.0%}"


Point = tuple[int, float, float, float]
"""Variants seen, a share, and the ends of its interval."""


def _draw(report: RiskReport, path: Path) -> None:
    """What attacks get back against the variants they see: words, and whole queries."""
    from sottovoce.plotting import new_figure, save_figure

    figure, plots = new_figure(columns=2 if report.inferences else 1)
    words: dict[str, list[Point]] = {}
    for recovery in report.attacks:
        low, high = recovery.word_interval or (0.0, 1.0)
        point = recovery.n, recovery.word_share or 0.0, low, high
        words.setdefault(recovery.attack, []).append(point)
    _draw_curves(plots[0], words, "words got back", "share of the words")
    if report.inferences:
        queries: dict[str, list[Point]] = {}
        encoders = dict.fromkeys(inference.encoder for _, inference in report.inferences)
        for encoder in encoders:
            for kind in ("lazy", "active"):
                for n, inference in report.inferences:
                    if inference.encoder == encoder:
                        risk = inference.risks[kind]
                        point = n, risk.value, risk.low, risk.high
                        queries.setdefault(f"{risk.measure}, {encoder}", []).append(point)
        _draw_curves(plots[1], queries, "query inference", "share of the queries")
    save_figure(figure, path)


def _draw_curves(plot: Any, curves: dict[str, list[Point]], title: str, y: str) -> None:
    from sottovoce.plotting import lines

    shares, intervals = {}, {}
    for name, points in curves.items():
        seen, values, lows, highs = map(list, zip(*points, strict=True))
        shares[name], intervals[name] = (seen, values), (lows, highs)
    lines(plot, shares, bands=intervals, title=title, x="variants seen", y=y, log_x=True)
    plot.set_ylim(-0.02, 1.02)
