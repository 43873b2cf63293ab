"""``sottovoce attack``: what an attacker reads off a file of releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sottovoce.cli.progress import progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import WordMechanism
    from sottovoce.privacy import Released, RiskReport
    from sottovoce.privacy.attacks.risk import Headline


def attack(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Releases: JSON lines of 'obfuscate -o jsonl', or CSV id,text,obfuscatedText.",
        ),
    ],
    log: Annotated[
        str | None,
        typer.Option(
            metavar="LOG|demo",
            help="Query log that the attacker searches: one query a line, CSV, TSV, JSON lines.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("-m", "--mechanism", help="What made the releases; as the file says if not."),
    ] = None,
    release: Annotated[
        Literal["independent", "once"] | None,
        typer.Option(help="How they were released; as the file says if not given."),
    ] = None,
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    output_vocabulary: Annotated[
        str, typer.Option(help="Words that could be released: all, clean, dictionary, file:PATH …")
    ] = "all",
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
        bool, typer.Option("--add-originals", help="Put originals that the log lacks beside it.")
    ] = False,
    prior: Annotated[
        Literal["uniform", "log"],
        typer.Option(help="Words beforehand: all alike, or as frequent as in the log."),
    ] = "uniform",
    variants: Annotated[
        list[int] | None,
        typer.Option("-n", "--variants", help="Variants the attacker sees; 1, 5, 20, 50."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Reproducible draws of the attacker.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Picture (.png or .svg): recovery against variants seen.")
    ] = None,
) -> None:
    """Attack releases: show which words and queries can still be read off them.

    The headline is the strongest attack's. Attacks that know the mechanism need its name (a file
    of ours holds it) and the word space it used.

    [bold]Examples[/bold]

      sottovoce obfuscate - -n 20 -o jsonl < queries.txt > releases.jsonl

      sottovoce attack releases.jsonl --log demo --add-originals

      sottovoce attack theirs.csv --log log.tsv -m cmp:epsilon=10 --figure risk.svg
    """
    from sottovoce.plotting import check_figure_path
    from sottovoce.privacy import QueryLog, attacker_encoders, read_log, read_releases
    from sottovoce.privacy import attack as assess
    from sottovoce.privacy.attacks.run import COUNTS

    if figure is not None:
        check_figure_path(figure)
    if variants is not None and min(variants) < 1:
        raise UsageError("-n: an attacker sees at least one variant")
    if log is None and (encoder or engine_encoder or add_originals):
        raise UsageError("--encoder and --add-originals are about query inference: give a --log")
    releases = read_releases(file)
    known, whole = _mechanism(mechanism, releases, space, output_vocabulary)
    how = release or _said(releases, "release") or "independent"
    if how not in ("independent", "once"):
        raise UsageError("the file names a release strategy that does not exist: give --release")
    searched = QueryLog(read_log(log)) if log is not None else None
    with progress_bar("attacking") as progress:
        report = assess(
            releases,
            mechanism=known,
            whole_texts=whole is not None,
            release=how,  # type: ignore[arg-type]
            log=searched,
            encoders=attacker_encoders(engine_encoder, encoder) if searched is not None else (),
            add_originals=add_originals,
            prior=prior,
            counts=variants or COUNTS,
            rng=seed,
            progress=progress,
        )
    if figure is not None:
        _draw(report, figure)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        _print(report, searched is not None, whole)


def _mechanism(
    spec: str | None, releases: list[Released], space: str | None, output_vocabulary: str
) -> tuple[WordMechanism | None, str | None]:
    """The mechanism asked for, or named by the file in our own words.

    The second answer is the name of one that replaces whole texts: it has no positions to attack.
    """
    from sottovoce.cli.building import build_mechanism
    from sottovoce.mechanisms import WordMechanism, parse

    said = spec or _said(releases, "mechanism")
    if said is None:
        return None, None
    try:
        kind, given = parse(said)
    except UsageError:
        if spec is not None:
            raise
        return None, None  # Somebody else's name for it.
    if not issubclass(kind, WordMechanism):
        return None, kind.name
    budget = _said(releases, "epsilon")
    settings = {} if budget is None or "epsilon" in given else {"epsilon": float(budget)}
    built = build_mechanism(said, settings, space, output_vocabulary, None)
    assert isinstance(built, WordMechanism)  # noqa: S101 - its class was asked before
    if budget is not None and built.epsilon != float(budget):
        raise UsageError(
            "the file says another epsilon than -m: attack with the one that was used, or leave "
            "it out of -m"
        )
    if _said(releases, "made_with") not in (None, built.made_with):
        raise UsageError(
            "the releases were made with another word space or output vocabulary, so attacks that "
            "know the mechanism would fail for nothing: name it with --space and "
            "--output-vocabulary"
        )
    return built, None


def _said(releases: list[Released], what: str) -> str | None:
    """What the file says of all its releases alike."""
    values = {getattr(each, what) for each in releases}
    if len(values) > 1:
        raise UsageError(
            f"the file holds releases with more than one {what}: attack each in a file of its own"
        )
    (value,) = values
    return value if value is None else str(value)


def _print(report: RiskReport, searched: bool, whole: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("attack", "variants", "words", "95 %", "whole texts", "95 %", box=None)
    skipped: dict[str, str] = {}
    for each in report.recoveries:
        if not each.applies:
            skipped.setdefault(each.attack, each.why)
            continue
        table.add_row(
            "(seeing the noisy points)" if each.bound else each.attack,
            str(each.n),
            _share(each.word_share),
            _range(each.word_interval),
            _share(each.query_share),
            _range(each.query_interval),
        )
    left_out = max((each.left_out for each in report.recoveries), default=0)
    console.print(f"{report.releases} texts; words got back, by attack and variants seen:\n")
    if table.row_count:
        console.print(table)
    if left_out:
        console.print(
            f"  {left_out} texts left out: their variants differ in their number of words",
            style="yellow",
        )
    for name, why in skipped.items():
        if not any(each.attack == name for each in report.attacks):
            console.print(f"  {name}: does not apply; {why}", style="dim")
    if searched:
        _print_inference(report, console)
    else:
        console.print("\nNo query inference: give a query log with --log.", style="dim")
    console.print()
    for what, found in (("words", report.words), ("whole texts", report.texts)):
        console.print(_headline(what, found), style="bold")
    if whole is not None:
        console.print(
            f"There is no attack here that knows {whole}: its risk may be larger.", style="yellow"
        )
    elif report.mechanism is None:
        console.print(
            "Attacks that know the mechanism were not tried: name it with -m.", style="yellow"
        )
    if report.seeded:
        console.print("seeded: the attacker's draws can be repeated", style="yellow")


def _print_inference(report: RiskReport, console: Any) -> None:
    from rich.table import Table

    one = report.inferences[0][1]
    shown = ("lazy", "active", "motivated", "rank_biased")
    table = Table("encoder", "variants", box=None, padding=(0, 1, 0, 0))
    for name in shown:
        table.add_column(one.risks[name].measure, no_wrap=True)
    for n, each in report.inferences:
        risks = [each.risks[name] for name in shown]
        cells = [f"{r.value:.2f} ({r.low:.2f}–{r.high:.2f})" for r in risks]
        table.add_row(each.encoder, str(n), *cells)
    chances = ", ".join(f"{one.risks[name].measure} {one.risks[name].chance:.1g}" for name in shown)
    console.print(
        f"\nQuery inference in a log of {one.log:,} queries"
        + (f", {one.added:,} of them originals that were added" if one.added else "")
        + ":\n"
    )
    console.print(table)
    console.print(f"  a blind guess: {chances}", style="dim")


def _headline(what: str, found: Headline | None) -> str:
    if found is None:
        return f"No attack on {what} applies: their risk was not measured."
    return (
        f"The strongest attack ({found.attack}, {found.n} variants) gets {found.share:.0%} of the "
        f"{what} back (95 %: {found.low:.0%}–{found.high:.0%})."
    )


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _range(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.0%}–{ends[1]:.0%}"


def _draw(report: RiskReport, path: Path) -> None:
    from sottovoce.plotting import lines, new_figure, save_figure

    shown, plots = new_figure(columns=2 if report.inferences else 1)
    names = dict.fromkeys(each.attack for each in report.attacks)
    curves, bands = {}, {}
    for name in names:
        points = [each for each in report.attacks if each.attack == name]
        at = [each.n for each in points]
        ends = [each.word_interval or (0.0, 1.0) for each in points]
        curves[name] = (at, [each.word_share or 0.0 for each in points])
        bands[name] = ([low for low, _ in ends], [high for _, high in ends])
    lines(
        plots[0],
        curves,
        bands=bands,
        title="words got back",
        x="variants seen",
        y="share of the words",
        log_x=True,
    )
    plots[0].set_ylim(-0.02, 1.02)
    if report.inferences:
        _draw_inference(report, plots[1])
    save_figure(shown, path)


def _draw_inference(report: RiskReport, plot: Any) -> None:
    from sottovoce.plotting import lines

    curves, bands = {}, {}
    for encoder in dict.fromkeys(each.encoder for _, each in report.inferences):
        mine = [(n, each.risks) for n, each in report.inferences if each.encoder == encoder]
        at = [n for n, _ in mine]
        for kind in ("lazy", "active"):
            name = f"{mine[0][1][kind].measure}, {encoder}"
            curves[name] = (at, [risks[kind].value for _, risks in mine])
            bands[name] = (
                [risks[kind].low for _, risks in mine],
                [risks[kind].high for _, risks in mine],
            )
    lines(
        plot,
        curves,
        bands=bands,
        title="query inference",
        x="variants seen",
        y="share of the queries",
        log_x=True,
    )
    plot.set_ylim(-0.02, 1.02)
