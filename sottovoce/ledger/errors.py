"""What can go wrong with a ledger. Whoever gets one of these sends nothing."""

from __future__ import annotations

from pathlib import Path

from sottovoce.errors import SottovoceError


class LedgerError(SottovoceError):
    """The release could not be counted, so it must not happen."""


class NoLedgerError(LedgerError):
    """There is no ledger yet, and none was to be made."""


class DamagedLedgerError(LedgerError):
    """What the ledger says cannot be trusted. It is never replaced by itself."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"the ledger in {folder} is damaged ({problem}), so nothing may be released. Restore "
            "the folder from a backup, or set it aside and start anew with 'sottovoce ledger "
            "reset', which forgets what was spent"
        )


class BudgetError(SottovoceError):
    """The release would cost more than is left.

    ``cost`` is None where nothing bounds it; then ``spent`` and ``left`` are None too.
    """

    def __init__(
        self,
        message: str,
        *,
        cost: float | None = None,
        spent: float | None = None,
        left: float | None = None,
    ) -> None:
        super().__init__(message)
        self.cost, self.spent, self.left = cost, spent, left
