"""``sottovoce experiment check``."""

from __future__ import annotations


def check() -> None:
    """To be written."""
    raise NotImplementedError
