"""What has been released, what it cost, what is left: counted before anything is sent."""

from sottovoce.ledger.entries import Budget, Entry, Promise, Receipt, Record, Spent, request_key
from sottovoce.ledger.errors import BudgetError, DamagedLedgerError, LedgerError, NoLedgerError
from sottovoce.ledger.ledger import Ledger
from sottovoce.ledger.words import in_words

__all__ = [
    "Budget",
    "BudgetError",
    "DamagedLedgerError",
    "Entry",
    "Ledger",
    "LedgerError",
    "NoLedgerError",
    "Promise",
    "Receipt",
    "Record",
    "Spent",
    "in_words",
    "request_key",
]
