"""Obfuscation: the variants of one text, what they cost, and what became of its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sottovoce.choices import Release
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.company import Company
from sottovoce.text import Counts, TextPipeline


class Choir(NamedTuple):
    """Variants of several texts, those of each next to each other: how many, and which is own."""

    k: int
    own: int
    """The place of the text itself among the k."""


@dataclass(frozen=True, repr=False)
class Obfuscation:
    """What came of one text. ``text``, ``unknown`` and ``kept`` are for its owner alone."""

    text: str
    variants: tuple[str, ...]
    mechanism: str
    epsilon: float | None
    release: Release
    guarantee: Guarantee
    spent: float | None
    """Nats per unit of distance (per word for notion ``local``); None: nothing bounds it."""
    unchanged: float | None
    """Share of the protected words that came back as they were, over all variants; counted, not
    a measure of privacy: a word that changed may still be guessed. None: no word was protected.
    Where texts are replaced as a whole, the share of variants that are the text."""
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    seeded: bool
    made_with: str | None = None
    """A hash of the word space and output vocabulary, or of the pool."""
    pipeline: TextPipeline | None = None
    """How the text was cut and laid out."""
    counts: Counts = Counts()  # noqa: RUF009 - immutable
    """What became of the words. A text that is replaced as a whole counts as one known word."""
    word_hashes: tuple[str, ...] = ()
    """Where draws are remembered, keyed hashes of the words: what the ledger knows them by."""
    remembered_by: str | None = None
    """The fingerprint of the key by which draws are remembered; None: they were drawn afresh."""
    company: Company | None = None
    """For its owner alone: the set of public strings in which the text is hidden, if it is."""
    choir: Choir | None = None
    """For its owner alone: which of the variants are the text's, if others were added."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON line of ``sottovoce obfuscate``."""
        return {
            "text": self.text,
            "variants": list(self.variants),
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "release": self.release,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent,
            "unchanged": self.unchanged,
            "unknown": list(self.unknown),
            "kept": list(self.kept),
            "seeded": self.seeded,
            "made_with": self.made_with,
            "texts": self.pipeline and self.pipeline.to_dict(),
            "company": self.company and self.company.to_dict(),
            "choir": self.choir and self.choir._asdict(),
        }

    def __repr__(self) -> str:
        return f"Obfuscation({self.mechanism}, {len(self.variants)} variants, spent={self.spent})"
