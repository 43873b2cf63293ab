"""``sottovoce attack``: what an attacker reads off a file of releases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sottovoce.choices import RELEASES, Release
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import (
    AsJson,
    Corpus,
    DeviceOptions,
    PoolSource,
    Seed,
    SpaceOptions,
    build_mechanism,
    figure_option,
)
from sottovoce.cli.output import new_console, new_table, print_json, progress_bar, say_device
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sottovoce.engines import LocalEngine
    from sottovoce.mechanisms import Mechanism
    from sottovoce.privacy import (
        CompanyReport,
        Inference,
        Naming,
        Released,
        RiskReport,
        WordRecovery,
    )
    from sottovoce.text import TextPipeline

SHOWN_RISKS = ("lazy", "active", "motivated", "rank_biased")


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
    machine: DeviceOptions,
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
            help="The attacker's encoder: light, strong, or a model's folder; all if not given. "
            "Words are compared in any case."
        ),
    ] = None,
    engine_encoder: Annotated[
        str | None,
        typer.Option(help="The engine's encoder, if it has one: the engine is an attacker, too."),
    ] = None,
    corpus: Corpus = None,
    add_originals: Annotated[
        bool, typer.Option("--add-originals", help="Add originals that the log lacks to it.")
    ] = False,
    prior: Annotated[
        Literal["log", "wordfreq", "uniform"] | None,
        typer.Option(
            help="What words are expected beforehand: as often as in the log (if there is one), as "
            "in English, or all alike."
        ),
    ] = None,
    pool: PoolSource = None,
    pool_encoder: Annotated[
        str,
        typer.Option(help="The encoder that comet used: auto, light, strong, a folder."),
    ] = "auto",
    variants: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            "--variants",
            help="Variants that the attacker sees; 1, 5, 20 and 50 if not given.",
        ),
    ] = None,
    train: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            help="Train a network on releases of the log's queries, unless one is kept already: "
            "one more attack on words. Needs torch.",
        ),
    ] = None,
    session: Annotated[
        bool,
        typer.Option(
            "--session",
            help="The releases are one person's: attack what persists through sets of cover.",
        ),
    ] = False,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --session: what this person asked before, read as --log is, six queries at "
            "least. Attackers on sets of cover then know it.",
        ),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: Annotated[Path | None, figure_option("Draw recovery against variants seen.")] = None,
) -> None:
    """Attack releases: show which words and queries can still be read off them.

    The two sentences at the end are about the strongest of the attacks tried: of an attacker who
    has the very query in a list, and of one who has not. Attacks that know the mechanism need its
    name (a file of ours holds it) and the word space it used. Texts are compared with the log by
    encoders, by their words in the mechanism's space, else in that of --space, and with --corpus by
    what they find. Of sets of cover
    it is shown how often what stands for the query is named; then the log is what people of this
    kind ask.

    [bold]Examples[/bold]

      sottovoce obfuscate - -n 20 -o jsonl < queries.txt > releases.jsonl

      sottovoce attack releases.jsonl --log demo --add-originals

      sottovoce attack theirs.csv --log log.tsv -m cmp:epsilon=10 --figure risk.svg

      sottovoce attack covered.jsonl --pool demo --session --history asked-before.txt
    """
    from sottovoce.privacy import QueryLog, attacker_encoders, read_log, read_releases
    from sottovoce.privacy import attack as run
    from sottovoce.privacy.attacks.denoiser_training import denoiser_for
    from sottovoce.resources.local import load_space

    if variants is not None and min(variants) < 1:
        raise UsageError("-n: an attacker sees at least one variant")
    if log is None and (encoder or engine_encoder or add_originals):
        raise UsageError("--encoder and --add-originals are about query inference: give a --log")
    if log is None and corpus is not None and mechanism is None:
        raise UsageError("--corpus is about query inference: give a --log")
    machine.use()
    releases = read_releases(file)
    settings = {"corpus": corpus, "pool": pool, "encoder": pool_encoder}
    built = _mechanism(mechanism, releases, {**resources.settings, **settings})
    query_log = None if log is None else QueryLog(read_log(log))
    strategy, pipeline = release or _release(releases), _pipeline(releases)
    if train is not None and (query_log is None or prior == "uniform"):
        raise UsageError("--train learns from a log: give a --log, and no uniform prior")
    denoiser = None
    if query_log is not None and prior != "uniform":
        with progress_bar("training") as progress:
            denoiser = denoiser_for(
                releases, built, strategy, query_log, pipeline, train, rng=seed, progress=progress
            )
    with progress_bar("attacking") as progress:
        report = run(
            releases,
            mechanism=built,
            release=strategy,
            pipeline=pipeline,
            denoiser=denoiser,
            log=query_log,
            encoders=() if query_log is None else attacker_encoders(engine_encoder, encoder),
            engine=_engine(corpus, built),
            space=None if resources.space is None else load_space(resources.space),
            add_originals=add_originals,
            prior=prior,
            counts=variants,
            session=session,
            history=() if history is None else read_log(history),
            rng=seed,
            progress=progress,
        )
    device = "cpu" if built is None else built.device
    if figure is not None:
        _draw(report, figure)
    if as_json:
        print_json({**report.to_dict(), "device": device})
    else:
        _print(report)
        say_device(device)


def _mechanism(
    spec: str | None, releases: list[Released], settings: dict[str, Any]
) -> Mechanism | None:
    """The mechanism asked for, or named by the file in our own words."""
    from sottovoce.mechanisms import parse
    from sottovoce.mechanisms.build import settings_of

    named = spec or _common(releases, "mechanism")
    if named is None:
        return None
    try:
        kind, parameters = parse(named)
    except UsageError:
        if spec is not None:
            raise
        return None  # Somebody else's name for it.
    if "corpus" not in settings_of(kind):
        settings = {name: value for name, value in settings.items() if name != "corpus"}
    epsilon = _common(releases, "epsilon")
    added = {} if epsilon is None or "epsilon" in parameters else {"epsilon": float(epsilon)}
    built = build_mechanism(named, added, settings)
    built_epsilon = getattr(built, "epsilon", None)
    if epsilon is not None and built_epsilon != float(epsilon):
        raise UsageError(
            f"the file says another epsilon ({float(epsilon):g}) than -m ({built_epsilon:g}): "
            "attack with the one that was used, or leave it out of -m"
        )
    if _common(releases, "made_with") not in (None, built.made_with):
        raise UsageError(
            "the releases were made with another word space, output vocabulary or pool, so attacks "
            "that know the mechanism would fail for nothing: name it with --space, "
            "--output-vocabulary or --pool"
        )
    return built


def _engine(corpus: Path | None, mechanism: Mechanism | None) -> LocalEngine | None:
    """An engine with the corpus, unless the mechanism has it already."""
    from sottovoce.collections import read_corpus
    from sottovoce.engines import BM25

    if corpus is None or hasattr(mechanism, "engine"):
        return None
    return BM25(read_corpus(corpus))


def _pipeline(releases: list[Released]) -> TextPipeline | None:
    """How the file says that texts were cut; None where it does not."""
    pipelines = {release.pipeline for release in releases}
    if len(pipelines) > 1:
        raise UsageError(
            "the file holds releases of texts that were cut in more than one way: attack each in a "
            "file of its own"
        )
    return pipelines.pop()


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


def _print(report: RiskReport) -> None:
    console = new_console()
    made = f", made by {report.mechanism}, {report.release}" if report.mechanism else ""
    console.print(f"{report.releases} texts{made}.\n")
    if report.recoveries:
        console.print("[bold]Without the query in a list[/bold], an attacker guesses its words:\n")
        console.print(_words_table(report))
        _print_knowledge(console, [recovery for _, recovery in report.recoveries])
    if report.left_out:
        console.print(
            f"  {report.left_out} texts left out: their variants differ in their number of words",
            style="yellow",
        )
    if report.inferences:
        first = report.inferences[0][1]
        added = f", {first.added:,} of them originals that were added" if first.added else ""
        console.print(
            f"\n[bold]With the query in a list[/bold] of {first.log:,} queries{added}, an attacker "
            "names it:\n"
        )
        console.print(_queries_table(report))
        _print_knowledge(console, [inference for _, inference in report.inferences])
        chances = ", ".join(
            f"{first.risks[name].measure} {first.risks[name].chance:.1g}" for name in SHOWN_RISKS
        )
        console.print(f"  a blind guess: {chances}", style="dim")
    if report.company is not None:
        _print_company(console, report.company)
    console.print()
    headlines = [("words", report.words), ("queries", report.queries)]
    if report.company is not None:
        headlines = [("groups", report.groups)]
    for what, headline in headlines:
        unmeasured = f"No attack on {what} was tried: their risk was not measured."
        console.print(unmeasured if headline is None else headline.sentence, style="bold")
    for name, why in report.not_tried.items():
        console.print(f"Not tried: {name}; {why}.", style="yellow")
    if report.seeded:
        console.print("seeded: the attacker's draws can be repeated", style="yellow")


def _print_knowledge(
    console: Console, attacks: Sequence[WordRecovery | Inference | Naming]
) -> None:
    """What each attacker of a table knows: no risk is shown without it."""
    for name, knows in dict.fromkeys((made.attack, made.knows) for made in attacks):
        console.print(f"  {name}: the attacker knows {knows}", style="dim")


def _print_company(console: Console, company: CompanyReport) -> None:
    """What attacks on sets named, and what a blind guess would."""
    console.print(
        f"\n[bold]Which of {company.strings} strings was meant?[/bold] At the first guess an "
        "attacker names what stands for the query, the query itself, a string on its subject:\n"
    )
    numbers = ("named", "95 %", "query", "subject")
    table = new_table("attack", *numbers, numbers=numbers)
    for made in company.namings:
        table.add_row(
            made.attack,
            _share(made.group.value),
            f"{made.group.low:.0%}–{made.group.high:.0%}",
            _share(made.query.value),
            _share(made.subject.value),
        )
    console.print(table)
    _print_knowledge(console, company.namings)
    console.print(
        f"  a blind guess: {company.chance:.1%}; at a string on the subject: "
        f"{company.subject_chance:.1%}",
        style="dim",
    )


def _words_table(report: RiskReport) -> Table:
    numbers = ("variants", "words", "95 %", "content", "function", "whole texts")
    table = new_table("attack", *numbers, numbers=numbers)
    for n, recovery in report.recoveries:
        words = recovery.words
        table.add_row(
            recovery.attack,
            str(n),
            _share(words.value),
            f"{words.low:.0%}–{words.high:.0%}",
            _share(recovery.content.value),
            _share(recovery.function.value),
            _share(recovery.whole.value),
        )
    return table


def _queries_table(report: RiskReport) -> Table:
    first = report.inferences[0][1]
    measures = [first.risks[name].measure for name in SHOWN_RISKS]
    table = new_table("attack", "variants", *measures, numbers=("variants", *measures))
    for n, inference in report.inferences:
        risks = [inference.risks[name] for name in SHOWN_RISKS]
        cells = [f"{risk.value:.2f} ({risk.low:.2f}–{risk.high:.2f})" for risk in risks]
        table.add_row(inference.attack, str(n), *cells)
    return table


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


Point = tuple[int, float, float, float]
"""Variants seen, a share, and the ends of its interval."""


def _draw(report: RiskReport, path: Path) -> None:
    """What attacks get back against the variants they see: words, and whole queries."""
    from sottovoce.plotting import new_figure, save_figure

    figure, plots = new_figure(columns=2 if report.inferences else 1)
    words: dict[str, list[Point]] = {}
    for n, recovery in report.recoveries:
        share = recovery.words
        words.setdefault(recovery.attack, []).append((n, share.value or 0, share.low, share.high))
    _draw_curves(plots[0], words, "words got back", "share of the words")
    queries: dict[str, list[Point]] = {}
    for n, inference in report.inferences:
        for risk in (inference.lazy, inference.active):
            label = f"{risk.measure}, {inference.attack}"
            queries.setdefault(label, []).append((n, risk.value, risk.low, risk.high))
    if queries:
        _draw_curves(plots[1], queries, "queries named", "share of the queries")
    save_figure(figure, path)


def _draw_curves(plot: Any, curves: dict[str, list[Point]], title: str, y: str) -> None:
    from sottovoce.plotting import lines

    shares, intervals = {}, {}
    for name, points in curves.items():
        seen, values, lows, highs = map(list, zip(*points, strict=True))
        shares[name], intervals[name] = (seen, values), (lows, highs)
    lines(plot, shares, bands=intervals, title=title, x="variants seen", y=y, log_x=True)
    plot.set_ylim(-0.02, 1.02)
