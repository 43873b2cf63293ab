"""``sottovoce pools``: make, list, look at and remove pools of public strings."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sottovoce.cli.options import AsJson
from sottovoce.cli.output import (
    DiscreetCommand,
    command_group,
    new_console,
    new_table,
    print_json,
    progress_bar,
    say,
)
from sottovoce.cli.own_pools import say_if_own

app = command_group("Pools: public strings among which a query is hidden.", "markdown")


@app.command(
    cls=DiscreetCommand,
    epilog="Example: `sottovoce pools make medical --from queries.tsv.gz --from titles:articles`",
)
def make(
    name: Annotated[str, typer.Argument(help="What to call the pool; then --pool NAME opens it.")],
    sources: Annotated[
        list[str],
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="A file of strings, demo, ir_datasets:ID (its queries); titles:, sentences: or "
            "phrases: and a collection. Repeat it to join several.",
        ),
    ],
    encoder: Annotated[
        str, typer.Option(help="Gives strings their vectors: auto, light, strong, a folder.")
    ] = "auto",
    least: Annotated[
        int, typer.Option(metavar="N", help="Leave out strings that come less often than this.")
    ] = 1,
    thin: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Keep one string in N, chosen by hash: each then stands for several queries, "
            "and lists of queries tell less of a set.",
        ),
    ] = 1,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE",
            help="Public queries of the kind that you ask, a source as above: by them the "
            "popularity of strings is learned, for --decoys popular. Not your own.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a pool of that name.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read, clean and embed public strings once. They must be public, and not your own queries.

    Left out: control characters, web and e-mail addresses, numbers of seven digits or more, more
    than 32 words or 256 characters, no letter. Strings that are the same but for case and blanks
    are one, and how often it came is its popularity.
    """
    from sottovoce.pool_making import make_pool
    from sottovoce.pools import load_pool

    start = time.monotonic()
    with progress_bar("encoding") as progress:
        facts = make_pool(
            name,
            sources,
            encoder,
            least=least,
            thin=thin,
            like=like,
            replace=replace,
            progress=progress,
        )
    say_if_own(load_pool(name).strings)
    if as_json:
        print_json(facts.to_dict())
        return
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in facts.left_out.items())
    say(
        f"read {facts.read:,}, the same as another {facts.joined:,}, left out: {left_out or 'none'}"
    )
    say(
        f"{name}: {facts.strings:,} strings, {facts.encoder}, {facts.dimension} dimensions, made "
        f"in {time.monotonic() - start:.1f} s; use it with --pool {name}"
        + (f" --decoys popular: {facts.popularity}" if like else "")
    )


@app.command("list", cls=DiscreetCommand)
def list_pools(as_json: AsJson = False) -> None:
    """Show the pools that were made on this machine."""
    from sottovoce.errors import SottovoceError
    from sottovoce.pool_store import made_pools, pool_facts

    pools, damaged = [], []
    for name in made_pools():
        try:
            pools.append(pool_facts(name))
        except SottovoceError:
            damaged.append(name)
    if as_json:
        print_json([*(facts.to_dict() for facts in pools), *({"name": name} for name in damaged)])
        return
    if not pools and not damaged:
        say("no pool was made yet: --pool demo is always there; see 'sottovoce pools make --help'")
        return
    table = new_table("NAME", "STRINGS", "ENCODER", "ON DISK", "FROM", numbers=("STRINGS",))
    for facts in pools:
        size, sources = f"{facts.disk_bytes / 1e6:.1f} MB", ", ".join(facts.sources)
        table.add_row(facts.name, f"{facts.strings:,}", facts.encoder, size, sources)
    for name in damaged:
        table.add_row(name, "", "", "", "damaged: make it again with --replace")
    new_console().print(table)


@app.command(cls=DiscreetCommand)
def info(
    name: Annotated[str, typer.Argument(help="The name of a pool.")], as_json: AsJson = False
) -> None:
    """Show where a pool comes from, what was left out, and what its vectors were made with."""
    from sottovoce.pool_store import pool_facts

    facts = pool_facts(name)
    if as_json:
        print_json(facts.to_dict())
        return
    lines = {
        "name": facts.name,
        "strings": f"{facts.strings:,}",
        "from": ", ".join(facts.sources),
        "read": f"{facts.read:,}, of which {facts.joined:,} the same as another",
        "left out": "; ".join(f"{n:,} {reason}" for reason, n in facts.left_out.items()),
        "popularity": facts.popularity or "none: all strings are alike",
        "encoder": f"{facts.encoder}, {facts.dimension} dimensions",
        "sha256": facts.sha256,
        "folder": str(facts.folder),
        "on disk": f"{facts.disk_bytes / 1e6:.1f} MB",
    }
    for label, value in lines.items():
        typer.echo(f"{label:<12} {value or 'none'}")


@app.command(cls=DiscreetCommand)
def remove(name: Annotated[str, typer.Argument(help="The name of a pool.")]) -> None:
    """Remove a pool from this machine. Company that queries had from it is not had again."""
    from sottovoce.pool_store import remove_pool

    remove_pool(name)
    say(f"{name} is removed")
