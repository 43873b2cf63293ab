"""What the ledger says, for the page and for programs."""

from __future__ import annotations

from typing import Any

from sottovoce.ledger import Budget, Ledger, NoLedgerError, in_words

RECORDS = 50


def ledger_of(*, records: bool) -> dict[str, Any]:
    """Budget, spent and left; the latest records if asked for. No text is in any of it."""
    try:
        ledger = Ledger.open(create=False)
    except NoLedgerError:
        return {"budget": Budget().to_dict(), "spent": [], "records": [] if records else None}
    return {
        "budget": ledger.budget().to_dict(),
        "spent": [
            {**each.to_dict(), "unit": each.unit, "sentence": in_words(each)}
            for each in ledger.spent()
        ],
        "records": [each.to_dict() for each in ledger.entries(RECORDS)] if records else None,
    }


def limit(per_text: float | None, total: float | None) -> dict[str, Any]:
    """Set the budget, and say how things stand."""
    Ledger.open().set_budget(per_text, total)
    return ledger_of(records=True)
