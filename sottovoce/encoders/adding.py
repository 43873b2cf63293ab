"""Adding what the catalogue holds: fetched and converted, made with an encoder, or opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sottovoce.encoders import word_spaces
from sottovoce.encoders.opened_spaces import add_opened
from sottovoce.errors import UsageError
from sottovoce.resources import catalogue, install
from sottovoce.resources.catalogue import Resource
from sottovoce.types import Progress


def add(
    resource: Resource,
    *,
    archives: Sequence[Path] = (),
    progress: Progress | None = None,
    say: install.Say | None = None,
) -> None:
    """Add a resource, unless it is already there; the arguments are those of ``resources.add``."""
    if resource.computed is None:
        install.add(resource, archives=archives, progress=progress, say=say)
        return
    if archives:
        catalogued = {entry.name for entry in catalogue.CATALOGUE}
        parts = ", ".join(part for part in resource.computed.parts if part in catalogued)
        raise UsageError(
            f"{resource.name} is made on this machine: give --archive to the resources that it is "
            f"made of, one by one ({parts}), and then add it without"
        )
    if resource.opening is not None:
        add_opened(resource, resource.opening, progress, say)
    elif resource.making is not None:
        word_spaces.add_made(resource, resource.making, progress, say)
