"""``sottovoce obfuscate``: texts in, variants out."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import (
    DeviceOptions,
    HowReleased,
    LayoutOptions,
    MechanismOptions,
    ResourceOptions,
    Seed,
    TextOptions,
    Workers,
    refuse_for_whole_texts,
)
from sottovoce.cli.output import say_device, say_seeded
from sottovoce.errors import PrivacyWarning, UsageError

if TYPE_CHECKING:
    from sottovoce.obfuscation import Obfuscation, Obfuscator


Output = Literal["text", "jsonl"]

MOSTLY = 0.5
"""Beyond this share of words that came back unchanged, people are warned."""


@grouped
def obfuscate(
    mechanism: MechanismOptions,
    resources: ResourceOptions,
    words: TextOptions,
    layout: LayoutOptions,
    machine: DeviceOptions,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT…|-", help="Texts; - reads lines from stdin.")
    ] = None,
    n: Annotated[int, typer.Option("-n", "--variants", help="Variants of each text.")] = 1,
    release: HowReleased = "independent",
    restore_case: Annotated[
        bool, typer.Option("--restore-case", help="Copy upper and lower case.")
    ] = False,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Count what is printed in the ledger.")
    ] = False,
    seed: Seed = None,
    workers: Workers = 1,
    output: Annotated[
        Output, typer.Option("-o", "--output", help="One variant a line, or JSON lines.")
    ] = "text",
) -> None:
    """Obfuscate texts into variants that say less.

    [bold]Examples[/bold]

      sottovoce obfuscate "treatment for skin cancer" -n 5

      sottovoce obfuscate "treatment for skin cancer" -m vickrey-cmp -e 12.5 --set t=0.5

      sottovoce obfuscate "treatment for skin cancer" -m fea --corpus articles.jsonl -n 10

      sottovoce obfuscate "treatment for skin cancer" -m comet-cmp --pool demo --encoder light -e 5

      sottovoce obfuscate "treatment for skin cancer" -m cover:k=20 --pool demo --encoder light

      cat queries.txt | sottovoce obfuscate - -n 20 --release once -o jsonl > variants.jsonl
    """
    if not texts:
        raise UsageError("give a text to obfuscate, or - to read lines from standard input")
    if "-" in texts and len(texts) > 1:
        raise UsageError("- stands for standard input and cannot be mixed with texts")
    from sottovoce.obfuscation import Obfuscator

    machine.use()
    built = mechanism.build(resources)
    if restore_case:
        refuse_for_whole_texts(built, "--restore-case")
    layout.check(built)
    pipeline = words.pipeline(built, restore_case=restore_case)
    obfuscator = Obfuscator(
        built,
        n=n,
        release=release,
        pipeline=pipeline.laid_out(shuffle=bool(layout.shuffle), pad_to=layout.pad),
        rng=seed,
        workers=workers,
    )
    streamed = texts == ["-"]
    results = _stream(obfuscator) if streamed else obfuscator.obfuscate(texts)
    if ledger:
        results = _counted(results, obfuscator)
    show = _print_text if output == "text" else partial(_print_json, device=built.device)
    last: Obfuscation | None = None
    too_loud = too_few = 0
    for last in _with_progress(results, streamed):
        show(last)
        too_loud += (last.unchanged or 0.0) > MOSTLY
        too_few += len(last.variants) < n and last.company is None
    if too_few:
        typer.secho(
            f"{too_few} text(s) got fewer variants than asked for: {built.name} found no more",
            fg="yellow",
            err=True,
        )
    if too_loud:
        whole = not built.cuts_texts
        most = "variants are the text itself" if whole else "protected words came back unchanged"
        warnings.warn(
            f"in {too_loud} text(s) most {most}: a smaller epsilon would change more of them",
            PrivacyWarning,
            stacklevel=1,
        )
    if last is not None:
        _say_what_it_means(last)
        if sys.stderr.isatty():
            say_device(built.device)


def _counted(results: Iterator[Obfuscation], obfuscator: Obfuscator) -> Iterator[Obfuscation]:
    """Count each result before it is printed; a spent budget ends the output."""
    from sottovoce.ledger import Entry, Ledger

    book = Ledger.open()
    for result in results:
        book.charge(Entry.of(result, obfuscator, "standard output", elsewhere=False))
        yield result


def _stream(obfuscator: Obfuscator) -> Iterator[Obfuscation]:
    """Answer the lines of standard input as they come: at once to a person, in bulk to a pipe."""
    if obfuscator.workers > 1:
        yield from obfuscator.obfuscate(chain.from_iterable(_arriving_lines()))
        return
    first = 0
    for lines in _arriving_lines():
        yield from obfuscator.obfuscate(lines, first=first)
        first += len(lines)


def _arriving_lines() -> Iterator[list[str]]:
    """Whole lines, as many as there are by now."""
    rest = b""
    while data := os.read(sys.stdin.fileno(), 1 << 20):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [_decode(line) for line in lines]
    if rest:
        yield [_decode(rest)]


def _decode(line: bytes) -> str:
    # Bytes that are not UTF-8 become lone surrogates: protected like any unknown word.
    return line.decode("utf-8", "surrogateescape").rstrip("\r")


def _with_progress(results: Iterator[Obfuscation], streamed: bool) -> Iterator[Obfuscation]:
    """A counter on a terminal, when results go elsewhere and input is a stream."""
    if not streamed or sys.stdout.isatty() or sys.stdin.isatty() or not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} texts"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("obfuscating")
        for result in results:
            yield result
            progress.advance(task)


def _print_text(result: Obfuscation) -> None:
    for variant in result.variants:
        _write(variant)


def _print_json(result: Obfuscation, device: str) -> None:
    _write(json.dumps({**result.to_dict(), "device": device}, ensure_ascii=False))


def _write(line: str) -> None:
    # Only JSON, which is for the owner, can hold what is not valid UTF-8: the original text.
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.flush()


def _say_what_it_means(result: Obfuscation) -> None:
    """What was promised and spent; only where a person reads it."""
    if result.seeded:
        say_seeded()
    if not sys.stderr.isatty():
        return
    typer.secho(f"\n{result.mechanism}: {result.guarantee.sentence}", dim=True, err=True)
    if result.spent is not None:
        from sottovoce.ledger import Promise

        per = Promise.of(result.guarantee, None).unit
        typer.secho(
            f"Spent on this text: {result.spent:g} nats {per} "
            f"({len(result.variants)} variants, {result.release}).",
            dim=True,
            err=True,
        )
    if result.unchanged is not None:
        whole = result.company is not None or result.guarantee.scope == "text"
        what = "Variants that are the text itself" if whole else "Words that came back unchanged"
        typer.secho(f"{what}: {result.unchanged:.0%}.", dim=True, err=True)
    for caveat in result.guarantee.caveats:
        typer.secho(f"  - {caveat}", dim=True, err=True)
