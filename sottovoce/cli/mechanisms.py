"""``sottovoce mechanisms``: what there is, and what each really promises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.spaces.space import WordSpace


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
    from sottovoce.mechanisms.resources import STAND_IN_WORDS

    kinds = [parse(spec) for spec in ([name] if name else names())]
    words = _space(space)
    if name is None and words is not None and words.size < STAND_IN_WORDS:
        words = None  # Some mechanisms need more words than that.
    built = [kind(**_parts(kind, words), **arguments) for kind, arguments in kinds]
    real = words is not None
    if as_json:
        described = [_describe(mechanism, real) for mechanism in built]
        typer.echo(json.dumps(described[0] if name else described, indent=2))
    elif name:
        _print_one(built[0], real)
    else:
        _print_table(built)


def _space(name: str | None) -> WordSpace | None:
    """The space asked for, else the default, else none: descriptions need none."""
    from sottovoce.errors import SpaceError
    from sottovoce.resources.local import load_space

    try:
        return load_space(name)
    except SpaceError:
        if name is not None:
            raise
        return None


def _parts(kind: type[Mechanism], space: WordSpace | None) -> dict[str, Any]:
    """What a mechanism needs to be described: the space, and nothing else to work on."""
    from sottovoce.mechanisms.build import stand_ins

    parts = stand_ins(kind, {"encoder": "light"})
    return {**parts, "space": space} if space is not None and "space" in parts else parts


def _describe(mechanism: Mechanism, real: bool) -> dict[str, Any]:
    space = getattr(mechanism, "space", None) if real else None
    return {
        **mechanism.describe(),
        "space": space.name if space is not None else None,
        "facts": mechanism.facts() if real and "pool" not in mechanism.resources() else {},
    }


def _print_table(mechanisms: list[Mechanism]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("mechanism", "what it does", "guarantee", "metric"):
        table.add_column(column, overflow="fold")
    for mechanism in mechanisms:
        promise = mechanism.guarantee
        table.add_row(mechanism.name, mechanism.summary, promise.notion, promise.metric or "-")
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
