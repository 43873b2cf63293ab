"""The demo of `make demo`: one sensitive query, said in a lower and lower voice."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import sottovoce

QUERY = "treatment for skin cancer"
VOICES = (("cmp", 20.0), ("cmp", 15.0), ("cmp", 10.0), ("vickrey-cmp", 10.0), ("mahalanobis", 10.0))


def main() -> None:
    """Show variants at several epsilons, and what they cost."""
    console = Console()
    space = sottovoce.load_space("default")
    console.print(f"\nWhat you mean (it stays here): [bold]{QUERY}[/bold]\n")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for column in ("mechanism", "epsilon", "what would leave this machine"):
        table.add_column(column)
    for name, epsilon in VOICES:
        mechanism = sottovoce.mechanism(name, space=space, epsilon=epsilon)
        for row, variant in enumerate(mechanism.obfuscate(QUERY, n=3)):
            table.add_row(*((name, f"{epsilon:g}") if row == 0 else ("", "")), variant)
        table.add_section()
    console.print(table)

    mechanism = sottovoce.mechanism("cmp", space=space, epsilon=15.0)
    for release in ("independent", "once"):
        obfuscator = sottovoce.Obfuscator(mechanism, n=20, release=release)
        (result,) = obfuscator.obfuscate([QUERY])
        unchanged = sum(QUERY.split()[3] in variant.split() for variant in result.variants)
        console.print(
            f"\n20 variants of cmp at epsilon 15, release [bold]{release}[/bold]: "
            f"{result.spent:g} nats per unit of distance; 'cancer' is still in {unchanged} of 20."
        )
    console.print(
        "An attacker may still guess a word from the neighbours it left in the variants: epsilon "
        "bounds what he learns, it does not measure it.",
        style="dim",
    )
    console.print(f"\nThe promise: {mechanism.guarantee.sentence}")
    for caveat in mechanism.guarantee.caveats:
        console.print(f"  - {caveat}", style="dim")
    console.print("\nNext: sottovoce obfuscate --help, sottovoce mechanisms\n")


if __name__ == "__main__":
    main()
