"""``sottovoce experiment run``."""

from __future__ import annotations


def run() -> None:
    """To be written."""
    raise NotImplementedError
