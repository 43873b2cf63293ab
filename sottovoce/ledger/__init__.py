"""What has been released, what it cost, what is left: counted before anything is sent."""

from sottovoce.ledger.entries import (
    Budget,
    BudgetError,
    DamagedLedgerError,
    Entry,
    LedgerError,
    NoLedgerError,
    OlderLedgerError,
    OtherCompanyError,
    Promise,
    Receipt,
    Record,
    Spent,
    in_words,
    unit,
)
from sottovoce.ledger.ledger import Ledger
from sottovoce.ledger.own_queries import own_queries_among

__all__ = [
    "Budget",
    "BudgetError",
    "DamagedLedgerError",
    "Entry",
    "Ledger",
    "LedgerError",
    "NoLedgerError",
    "OlderLedgerError",
    "OtherCompanyError",
    "Promise",
    "Receipt",
    "Record",
    "Spent",
    "in_words",
    "own_queries_among",
    "unit",
]
