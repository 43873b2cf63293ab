"""``sottovoce sanitize``: a data set in, the same data set out with other words in some columns."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sottovoce.choices import Format, UnknownPolicy
from sottovoce.cli.obfuscate import MOSTLY
from sottovoce.cli.progress import progress_bar
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.sanitizing import DatasetCounts, Executor, Report, Sanitizer

Where = Literal["local", "dask", "spark"]

FROM_FILE = "file:"


def sanitize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="CSV, JSON lines or Parquet.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="New file of the same format.")],
    columns: Annotated[
        list[str], typer.Option("--column", metavar="NAME", help="Column of texts; repeat it.")
    ],
    format: Annotated[
        Format | None, typer.Option(help="Where the name of IN does not tell.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Between CSV fields, if not a comma.")
    ] = None,
    mechanism: Annotated[
        str, typer.Option("-m", "--mechanism", help="Name or spec, as cmp:epsilon=12.5.")
    ] = "cmp",
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Budget for each word.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Mechanism parameter.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    output_vocabulary: Annotated[
        str, typer.Option(help="Words that may be released: all, clean, dictionary, file:PATH …")
    ] = "all",
    unknown: Annotated[UnknownPolicy, typer.Option(help="Words the space lacks.")] = "uniform",
    protect: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Words to protect: all, content, or parts of speech as noun,adjective. "
            "As in the mechanism's paper if not given.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD|file:PATH", help="Release these words in clear."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD|file:PATH", help="Always replace these words, and never release them."
        ),
    ] = None,
    restore_case: Annotated[bool, typer.Option(help="Copy upper and lower case.")] = True,
    drop_punctuation: Annotated[
        bool, typer.Option("--drop-punctuation", help="Leave punctuation out.")
    ] = False,
    linkable: Annotated[
        bool,
        typer.Option(
            "--linkable/--unlinkable",
            help="Replace the same word by the same one everywhere (weaker), or each time afresh.",
        ),
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(help="Secret of --linkable, to use it again; else made and thrown away."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Documents of yours (JSON lines or text) that fea reads its words off."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(metavar="FILE|demo", help="Public strings that comet releases.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder of comet.")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT, and forget a stopped run.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the side report as JSON.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Reproducible draws, for experiments only.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Worker processes on this machine.")] = 1,
    on: Annotated[Where, typer.Option(help="Work here, or on a Dask or Spark cluster.")] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of the cluster: Dask's scheduler or Spark's master; else one on this machine.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report for programs.")] = False,
) -> None:
    """Replace the words in columns of a data set; all else stays as it is.

    [bold]Examples[/bold]

      sottovoce sanitize tweets.csv safe.csv --column text

      sottovoce sanitize reviews.parquet safe.parquet --column title --column body -e 12.5

      sottovoce sanitize notes.jsonl safe.jsonl --column note --deny file:names.txt --workers 2

      sottovoce sanitize tweets.csv safe.csv --column text --resume

      sottovoce sanitize tweets.csv safe.csv --column text --on dask --scheduler tls://head:8786
    """
    from sottovoce.sanitizing import open_source, sanitize_file

    executor = _executor(on, scheduler, workers)
    data = open_source(source, tuple(columns), format, delimiter)
    sanitizer, own_secret = _sanitizer(
        columns=columns,
        mechanism=mechanism,
        epsilon=epsilon,
        settings=settings,
        space=space,
        output_vocabulary=output_vocabulary,
        unknown=unknown,
        protect=protect,
        keep=keep,
        deny=deny,
        restore_case=restore_case,
        drop_punctuation=drop_punctuation,
        linkable=linkable,
        key_file=key_file,
        corpus=corpus,
        pool=pool,
        encoder=encoder,
        seed=seed,
    )
    try:
        with progress_bar("sanitising rows") as progress:
            result = sanitize_file(
                sanitizer,
                data,
                out,
                report=report,
                resume=resume,
                overwrite=overwrite,
                own_secret=own_secret,
                workers=workers,
                executor=executor,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.secho("what is done is kept: run the same command with --resume", err=True)
        raise
    _warn(result)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        show(result)


def _executor(on: Where, scheduler: str | None, workers: int) -> Executor | None:
    """Where the work is done; None for here."""
    if scheduler is not None and on == "local":
        raise UsageError("--scheduler is the address of a cluster: add --on dask or --on spark")
    if scheduler is not None and workers != 1:
        raise UsageError("--workers is for this machine: a cluster has as many as it was given")
    if on == "local":
        return None
    from sottovoce.integrations import on_dask, on_spark

    return (on_dask if on == "dask" else on_spark)(scheduler, workers)


def _sanitizer(
    *,
    columns: list[str],
    mechanism: str,
    epsilon: float | None,
    settings: list[str] | None,
    space: str | None,
    output_vocabulary: str,
    unknown: UnknownPolicy,
    protect: str | None,
    keep: list[str] | None,
    deny: list[str] | None,
    restore_case: bool,
    drop_punctuation: bool,
    linkable: bool,
    key_file: Path | None,
    corpus: Path | None,
    pool: str | None,
    encoder: str,
    seed: int | None,
) -> tuple[Sanitizer, bool]:
    """The sanitizer, and whether its secret was made for this run."""
    from sottovoce.cli.building import build_mechanism, parsed_settings, refuse_word_options
    from sottovoce.obfuscation import Obfuscator
    from sottovoce.sanitizing import Sanitizer
    from sottovoce.text import TextPipeline

    secret, own_secret = _secret(linkable, key_file, seed)
    kept, denied = _words(keep), _words(deny)
    given = parsed_settings(settings, epsilon)
    chosen = build_mechanism(mechanism, given, space, output_vocabulary, corpus, pool, encoder)
    refuse_word_options(
        chosen,
        {
            "--keep": bool(keep),
            "--unknown": unknown != "uniform",
            "--protect": protect is not None,
            "--drop-punctuation": drop_punctuation,
        },
    )
    pipeline = TextPipeline(
        unknown=unknown,
        protect=protect or chosen.protects,
        keep=kept,
        punctuation="drop" if drop_punctuation else "keep",
        restore_case=restore_case,
    )
    obfuscator = Obfuscator(chosen, pipeline=pipeline, rng=seed)
    return Sanitizer(obfuscator, tuple(columns), secret, denied), own_secret


def _secret(linkable: bool, key_file: Path | None, seed: int | None) -> tuple[bytes | None, bool]:
    """The secret of linkable words, and whether it was made just now."""
    from sottovoce.sanitizing.linking import check_secret, new_secret, seeded_secret

    if not linkable:
        if key_file is not None:
            raise UsageError("--key-file is the secret of linkable words: add --linkable")
        return None, False
    if key_file is None:
        return (new_secret(), True) if seed is None else (seeded_secret(seed), False)
    if seed is not None:
        raise UsageError("linkable words are drawn from --key-file or from --seed: give one")
    try:
        secret = key_file.read_bytes()
    except OSError as error:
        raise UsageError(f"the key file cannot be read ({type(error).__name__})") from None
    check_secret(secret)
    return secret, False


def _words(entries: list[str] | None) -> frozenset[str]:
    """Words as typed, and those of files, one a line."""
    from sottovoce.files import read_words

    words: set[str] = set()
    for entry in entries or ():
        if not entry.startswith(FROM_FILE):
            words.add(entry)
            continue
        try:
            words |= read_words(entry.removeprefix(FROM_FILE))
        except SottovoceError as error:
            raise UsageError(
                f"a list of words cannot be read ({error}): give file:PATH of a UTF-8 text file "
                "with one word a line"
            ) from None
    return frozenset(words)


def _warn(report: Report) -> None:
    counts = report.counts
    if counts.verbatim > MOSTLY * max(1, counts.rewritten):
        warnings.warn(
            f"{counts.verbatim} of {counts.rewritten} texts came back as they were: a smaller "
            "epsilon, or a pool without them, would change more",
            PrivacyWarning,
            stacklevel=1,
        )
    drawn = counts.changed + counts.returned
    if drawn and counts.returned > MOSTLY * drawn:
        warnings.warn(
            f"{counts.returned / drawn:.0%} of the protected words came back unchanged: a smaller "
            "epsilon would change more of them",
            PrivacyWarning,
            stacklevel=1,
        )
    if report.sanitizer.linkable is not None:
        warnings.warn(
            "linkable: equal words have equal substitutes, so frequent ones can be guessed by "
            "counting",
            PrivacyWarning,
            stacklevel=1,
        )


def show(report: Report, console: Console | None = None) -> None:
    """The report for people."""
    from rich.console import Console
    from rich.table import Table

    console = console or Console(highlight=False)
    table = Table("what", "how many", "of all words", box=None)
    table.columns[1].justify = table.columns[2].justify = "right"
    for what, number, of_words in _lines(report.counts):
        share = of_words and number and f"{number / report.counts.words:.1%}"
        table.add_row(what, f"{number:,}", share or "")
    console.print(table)
    guarantee = report.guarantee
    console.print(f"\n[bold]Promise[/bold]  {guarantee.sentence}")
    for caveat in guarantee.caveats:
        console.print(f"  - {caveat}", style="dim", markup=False)


def _lines(counts: DatasetCounts) -> list[tuple[str, int, bool]]:
    """What to show, how many, and whether that is a share of all words."""
    lines = [
        ("rows", counts.rows, False),
        ("texts", counts.texts, False),
        ("texts without words", counts.empty, False),
        ("texts rewritten as a whole", counts.rewritten, False),
        ("of these, texts that came back by chance", counts.verbatim, True),
        ("texts left empty: nothing was found", counts.withheld, False),
        ("words", counts.words, False),
        ("words changed", counts.changed, True),
        ("  of them unknown, now any word", counts.uniform, True),
        ("  of them denied, now any word", counts.denied, True),
        ("words that came back by chance", counts.returned, True),
        ("unknown words left out", counts.dropped, True),
        ("unknown words in clear", counts.kept_unknown, True),
        ("listed words in clear", counts.kept_listed, True),
        ("unprotected words in clear", counts.kept_unprotected, True),
    ]
    always = ("rows", "texts", "words")
    return [line for line in lines if line[1] or line[0] in always]
