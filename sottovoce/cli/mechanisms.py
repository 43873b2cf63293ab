"""``sottovoce mechanisms``: what there is, and what each really promises."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.spaces.space import WordSpace

ENOUGH_WORDS = 5000


def mechanisms(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|SPEC]", help="One mechanism in detail.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="Word space for facts that depend on one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the mechanisms: parameters, guarantee, paper.

    [bold]Examples[/bold]

      sottovoce mechanisms

      sottovoce mechanisms mahalanobis

      sottovoce mechanisms vickrey-cmp:epsilon=12.5 --json
    """
    from sottovoce.mechanisms import names, parse

    wanted = [parse(spec) for spec in ([name] if name else names())]
    words, real = _space(space)
    if name is None and words.size < ENOUGH_WORDS:
        words, real = _some_words(), False  # Some mechanisms need more words than that.
    chosen = [kind(**_resources(kind, words), **arguments) for kind, arguments in wanted]
    if as_json:
        described = [_describe(each, real) for each in chosen]
        typer.echo(json.dumps(described[0] if name else described, indent=2))
    elif name:
        _print_one(chosen[0], real)
    else:
        _print_table(chosen)


def _space(name: str | None) -> tuple[WordSpace, bool]:
    """The space asked for, else the default, else some words: descriptions need none."""
    from sottovoce.errors import SpaceError
    from sottovoce.spaces.sources import resolve

    try:
        return resolve(name), True
    except SpaceError:
        if name is not None:
            raise
        return _some_words(), False


def _some_words() -> WordSpace:
    from sottovoce.spaces.space import WordSpace

    numbers = range(ENOUGH_WORDS)
    return WordSpace.from_arrays(list(map(str, numbers)), [[number] for number in numbers])


def _resources(kind: type[Mechanism], space: WordSpace) -> dict[str, Any]:
    """What a mechanism needs to be described: a space, an encoder, and nothing to work on."""
    from sottovoce.encoders.pool import Pool
    from sottovoce.engines.bm25 import BM25

    given: dict[str, Callable[[], Any]] = {
        "space": lambda: space,
        "engine": lambda: BM25([]),
        "wordnet": lambda: None,
        "pool": lambda: Pool(["any"], "light", name="any"),
    }
    return {name: given[name]() for name in kind.resources()}


def _describe(mechanism: Mechanism, real: bool) -> dict[str, Any]:
    from sottovoce.mechanisms.base import public_name

    return {
        "name": mechanism.name,
        "summary": mechanism.summary,
        "paper": mechanism.paper,
        "spec": mechanism.spec,
        "parameters": [
            {
                "name": public_name(p),
                "value": getattr(mechanism, p.name),
                "default": p.default,
                "help": p.metadata.get("help", ""),
            }
            for p in mechanism.parameters()
        ],
        "guarantee": mechanism.guarantee.to_dict(),
        "protects": mechanism.protects,
        "space": space.name if real and (space := getattr(mechanism, "space", None)) else None,
        "facts": mechanism.facts() if real and "pool" not in mechanism.resources() else {},
    }


def _print_table(chosen: list[Mechanism]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("mechanism", "what it does", "guarantee", "metric"):
        table.add_column(column, overflow="fold")
    for each in chosen:
        promise = each.guarantee
        table.add_row(each.name, each.summary, promise.notion, promise.metric or "-")
    console = Console()
    console.print(table)
    console.print("\nMore on one: sottovoce mechanisms NAME", style="dim")


def _print_one(mechanism: Mechanism, real: bool) -> None:
    from rich.console import Console

    said = _describe(mechanism, real)
    console = Console(highlight=False)
    console.print(f"[bold]{mechanism.name}[/bold]: {mechanism.summary}")
    console.print(f"[dim]{mechanism.paper}[/dim]\n")
    console.print("[bold]Parameters[/bold]")
    for each in said["parameters"]:
        default = "-" if each["default"] in (None, ()) else each["default"]
        value = default if each["value"] in (None, ()) else each["value"]
        console.print(f"  {each['name']} = {value}   [dim]{each['help']}[/dim]")
    if said["protects"] != "all":
        console.print(f"  Protects as published: {said['protects']}; other words stay in clear.")
    console.print(f"\n[bold]Guarantee[/bold]  {mechanism.guarantee.sentence}")
    for caveat in mechanism.guarantee.caveats:
        console.print(f"  - {caveat}")
    for fact, value in said["facts"].items():
        console.print(f"  - on space {said['space']}: {fact} {value:.4g}")
