"""``sottovoce sanitize``: a data set in, the same data set out with other words in some columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from sottovoce.choices import Format
from sottovoce.cli.obfuscate import MOSTLY
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import listed_words
from sottovoce.cli.options import (
    AsJson,
    DeviceOptions,
    MechanismOptions,
    ResourceOptions,
    Seed,
    TextOptions,
    Workers,
)
from sottovoce.cli.output import new_console, print_json, progress_bar, say_device
from sottovoce.errors import PrivacyWarning, UsageError

if TYPE_CHECKING:
    from sottovoce.sanitizing import DatasetCounts, Executor, Report


@dataclass(frozen=True)
class LinkingOptions:
    """Whether equal words get equal substitutes."""

    panel: ClassVar[str] = "Equal words"

    linkable: Annotated[
        bool,
        typer.Option(
            "--linkable/--unlinkable",
            help="Replace the same word by the same one everywhere (weaker), or each time afresh.",
        ),
    ] = False
    key_file: Annotated[
        Path | None,
        typer.Option(help="Secret of --linkable, to use it again; else made and thrown away."),
    ] = None

    def secret(self, seed: int | None) -> tuple[bytes | None, bool]:
        """The secret of linkable words, and whether it was made just now."""
        from sottovoce.sanitizing.linking import check_secret, new_secret, seeded_secret

        if not self.linkable:
            if self.key_file is not None:
                raise UsageError("--key-file is the secret of linkable words: add --linkable")
            return None, False
        if self.key_file is None:
            return (new_secret(), True) if seed is None else (seeded_secret(seed), False)
        if seed is not None:
            raise UsageError("linkable words are drawn from --key-file or from --seed: give one")
        try:
            secret = self.key_file.read_bytes()
        except OSError as error:
            raise UsageError(f"the key file cannot be read ({type(error).__name__})") from None
        check_secret(secret)
        return secret, False


@dataclass(frozen=True)
class MachineOptions(DeviceOptions):
    """Where the work is done."""

    workers: Workers = 1
    on: Annotated[
        Literal["local", "dask", "spark"],
        typer.Option(help="Work here, or on a Dask or Spark cluster."),
    ] = "local"
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of the cluster: Dask's scheduler or Spark's master; else a new one here.",
        ),
    ] = None

    def executor(self) -> Executor | None:
        """The cluster; None for this machine."""
        if self.scheduler is not None and self.on == "local":
            raise UsageError("--scheduler is the address of a cluster: add --on dask or --on spark")
        if self.scheduler is not None and self.workers != 1:
            raise UsageError("--workers is for this machine: a cluster has as many as it was given")
        if self.on == "local":
            return None
        from sottovoce.integrations import on_dask, on_spark

        return (on_dask if self.on == "dask" else on_spark)(self.scheduler, self.workers)


@grouped
def sanitize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="CSV, JSON lines or Parquet.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="New file of the same format.")],
    columns: Annotated[
        list[str], typer.Option("--column", metavar="NAME", help="Column of texts; repeat it.")
    ],
    mechanism: MechanismOptions,
    resources: ResourceOptions,
    words: TextOptions,
    linking: LinkingOptions,
    machines: MachineOptions,
    format: Annotated[
        Format | None, typer.Option(help="Format of IN, if its name does not show it.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(metavar="SIGN", help="What separates CSV fields, if not a comma.")
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD|file:PATH", help="Always replace these words, and never release them."
        ),
    ] = None,
    restore_case: Annotated[bool, typer.Option(help="Copy upper and lower case.")] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT, and forget a stopped run.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report to a file, as JSON.")
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Replace the words in columns of a data set; all else stays as it is.

    [bold]Examples[/bold]

      sottovoce sanitize tweets.csv safe.csv --column text

      sottovoce sanitize reviews.parquet safe.parquet --column title --column body -e 12.5

      sottovoce sanitize notes.jsonl safe.jsonl --column note --deny file:names.txt --workers 2

      sottovoce sanitize tweets.csv safe.csv --column text --resume

      sottovoce sanitize tweets.csv safe.csv --column text --on dask --scheduler tls://head:8786
    """
    from sottovoce.obfuscation import Obfuscator
    from sottovoce.sanitizing import Sanitizer, open_source, sanitize_file

    machines.use()
    executor = machines.executor()
    data = open_source(source, tuple(columns), format, delimiter)
    secret, own_secret = linking.secret(seed)
    denied = listed_words(deny)
    built = mechanism.build(resources)
    obfuscator = Obfuscator(
        built, pipeline=words.pipeline(built, restore_case=restore_case), rng=seed
    )
    try:
        with progress_bar("sanitizing rows") as progress:
            result = sanitize_file(
                Sanitizer(obfuscator, tuple(columns), secret, denied),
                data,
                out,
                report=report,
                resume=resume,
                overwrite=overwrite,
                own_secret=own_secret,
                workers=machines.workers,
                executor=executor,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.secho("what is done is kept: run the same command with --resume", err=True)
        raise
    _warn(result)
    if as_json:
        print_json({**result.to_dict(), "device": built.device})
    else:
        _print(result)
        say_device(built.device)


def _warn(report: Report) -> None:
    counts = report.counts
    drawn = counts.changed + counts.returned
    problems = []
    if counts.verbatim > MOSTLY * max(1, counts.rewritten):
        problems.append(
            f"{counts.verbatim} of {counts.rewritten} texts came back as they were: a smaller "
            "epsilon, or a pool without them, would change more"
        )
    if drawn and counts.returned > MOSTLY * drawn:
        problems.append(
            f"{counts.returned / drawn:.0%} of the protected words came back unchanged: a smaller "
            "epsilon would change more of them"
        )
    if report.sanitizer.linkable is not None:
        problems.append(
            "linkable: equal words have equal substitutes, so frequent ones can be guessed by "
            "counting"
        )
    for problem in problems:
        warnings.warn(problem, PrivacyWarning, stacklevel=1)


def _print(report: Report) -> None:
    from rich.table import Table

    console = new_console()
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
        ("  of them not listed: drawn for by their vectors", counts.encoded, True),
        ("  of them unknown: any word stood in", counts.uniform, True),
        ("  of them denied: any word stood in", counts.denied, True),
        ("words that came back by chance", counts.returned, True),
        ("unknown words left out", counts.dropped, True),
        ("unprotected words left out", counts.dropped_unprotected, True),
        ("unknown words in clear", counts.kept_unknown, True),
        ("listed words in clear", counts.kept_listed, True),
        ("unprotected words in clear", counts.kept_unprotected, True),
    ]
    always = ("rows", "texts", "words")
    return [line for line in lines if line[1] or line[0] in always]
