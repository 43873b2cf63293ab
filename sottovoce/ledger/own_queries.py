"""Whether a pool seems to be made of a person's own queries, as far as the ledger can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sottovoce.ledger.entries import LedgerError
from sottovoce.ledger.ledger import Ledger

FEW = 5
"""Fewer strings may stand in a pool by chance."""
SHARE = 0.1
"""A public list holds a smaller share of one person's queries."""


def own_queries_among(strings: Sequence[str]) -> str | None:
    """A warning where many strings of a pool are texts that the ledger has hidden; else None.

    It cannot see what was never counted there, a browser's history say. No text is in it.
    """
    least = max(FEW, math.ceil(SHARE * len(strings)))
    try:
        hidden = Ledger.open(create=False).hidden_among(strings, least)
    except LedgerError:  # There is none, or it is damaged: whoever releases something says so.
        return None
    if hidden < least:
        return None
    return (
        f"{hidden:,} of the {len(strings):,} strings of this pool are texts that you have hidden "
        "before. A pool must be public, and chosen without looking at what you ask: a pool of your "
        "own queries gives away the others as well"
    )
