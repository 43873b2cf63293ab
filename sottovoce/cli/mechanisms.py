"""``sottovoce mechanisms``: what there is, and what each really promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.options import AsJson, Space
from sottovoce.cli.output import new_console, new_table, print_json

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.spaces.space import WordSpace


def mechanisms(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|SPEC]", help="One mechanism in detail.")
    ] = None,
    space: Space = None,
    as_json: AsJson = False,
) -> None:
    """Show the mechanisms: parameters, guarantee, paper.

    Some facts depend on the word space.

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
        print_json(described[0] if name else described)
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
    table = new_table("mechanism", "what it does", "guarantee", "metric")
    for mechanism in mechanisms:
        promise = mechanism.guarantee
        table.add_row(mechanism.name, mechanism.summary, promise.notion, promise.metric or "-")
    console = new_console()
    console.print(table)
    console.print("\nMore on one: sottovoce mechanisms NAME", style="dim")


def _print_one(mechanism: Mechanism, real: bool) -> None:
    description = _describe(mechanism, real)
    console = new_console()
    console.print(f"[bold]{mechanism.name}[/bold]: {mechanism.summary}")
    console.print(f"[dim]{mechanism.paper}[/dim]\n")
    console.print("[bold]Parameters[/bold]")
    for parameter in description["parameters"]:
        default = "-" if parameter["default"] in (None, ()) else parameter["default"]
        value = default if parameter["value"] in (None, ()) else parameter["value"]
        console.print(f"  {parameter['name']} = {value}   [dim]{parameter['help']}[/dim]")
    if description["protects"] != "all":
        protected = description["protects"]
        console.print(f"  Protects as published: {protected}; other words stay in clear.")
    console.print(f"\n[bold]Guarantee[/bold]  {mechanism.guarantee.sentence}")
    for caveat in mechanism.guarantee.caveats:
        console.print(f"  - {caveat}")
    for fact, value in description["facts"].items():
        console.print(f"  - on space {description['space']}: {fact} {value:.4g}")
