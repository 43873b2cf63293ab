"""Options of ``serve`` and ``mcp``: the public queries that attackers know, and that leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from sottovoce.cli.options import PoolSource
from sottovoce.cli.output import progress_bar
from sottovoce.cli.own_pools import say_if_own

if TYPE_CHECKING:
    from sottovoce.app.loaded import LoadedParts


@dataclass(frozen=True)
class PublicOptions:
    """Public queries: those of an attacker, and those in whose company one's own leave."""

    panel: ClassVar[str] = "Public queries: not your own"

    log: Annotated[
        str,
        typer.Option(
            metavar="FILE|demo",
            help="Queries of many people: attackers are assumed to have them, and without --pool a "
            "query in company leaves among them.",
        ),
    ] = "demo"
    pool: PoolSource = None

    @staticmethod
    def load(parts: LoadedParts) -> None:
        """Load what was named; warn where public queries seem to be the person's own."""
        with progress_bar("reading the pool") as progress:
            parts.load_named(progress)
        if parts.settings.names_public_queries:
            say_if_own(parts.public_queries().strings)
