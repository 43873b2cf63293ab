"""The warning that a pool seems to be made of a person's own queries."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def say_if_own(strings: Sequence[str]) -> None:
    """Warn where many strings of a pool are texts that the ledger has hidden."""
    from sottovoce.ledger import own_queries_among

    if warning := own_queries_among(strings):
        typer.secho(warning, fg="yellow", err=True)
