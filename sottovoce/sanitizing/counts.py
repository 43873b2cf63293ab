"""How many words met which fate: numbers that add up over batches, in any order."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from sottovoce.text import PreparedText


@dataclass(frozen=True)
class Counts:
    """Of rows, of texts (the cells of the chosen columns) and of their words.

    ``words`` = ``changed`` + ``returned`` + ``dropped`` + the three that were kept in clear.
    """

    rows: int = 0
    texts: int = 0
    empty: int = 0
    """Texts that are missing or hold no word."""
    words: int = 0
    changed: int = 0
    """Words in whose place another one stands now."""
    returned: int = 0
    """Words that the mechanism drew for themselves."""
    uniform: int = 0
    """Unknown words replaced by a uniform draw; among ``changed``."""
    denied: int = 0
    """Words of the deny-list, replaced by a uniform draw; among ``changed``."""
    dropped: int = 0
    kept_unknown: int = 0
    kept_listed: int = 0
    kept_unprotected: int = 0
    verbatim: int = 0
    """Texts of these that came back as they were."""
    rewritten: int = 0
    """Texts rewritten as a whole, by a mechanism that does so: their words are not counted."""
    withheld: int = 0
    """Texts left empty, because such a mechanism found nothing to release for them."""

    @property
    def kept(self) -> int:
        """Words released in clear, for whatever reason."""
        return self.kept_unknown + self.kept_listed + self.kept_unprotected

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_dict(self) -> dict[str, int]:
        """For JSON; ``Counts(**…)`` reads it back."""
        return asdict(self)


def count_text(prepared: PreparedText, denied: int, returned: int) -> Counts:
    """Count one text, ``returned`` of whose words came back as they were."""
    fates = prepared.counts
    return Counts(
        texts=1,
        empty=not (len(prepared) or fates.dropped or fates.kept),
        words=len(prepared) + fates.dropped + fates.kept,
        changed=len(prepared) - returned,
        returned=returned,
        uniform=fates.uniform,
        denied=denied,
        dropped=fates.dropped,
        kept_unknown=fates.kept_unknown,
        kept_listed=fates.kept_listed,
        kept_unprotected=fates.kept_unprotected,
    )
