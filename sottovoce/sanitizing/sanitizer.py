"""Sanitizer: sanitizes rows, with the same result on any machine and in any batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator, SeedSequence

from sottovoce.errors import SottovoceError, UnknownWordError, UsageError
from sottovoce.mechanisms.base import Mechanism, PoolMechanism, WordMechanism, require
from sottovoce.obfuscation import Obfuscator
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.obfuscation.words import WordRelease
from sottovoce.randomness import Streams
from sottovoce.sanitizing.denying import deny_list, denying, never_releasing
from sottovoce.sanitizing.linking import check_secret, linked
from sottovoce.sanitizing.sources import Texts
from sottovoce.text import PreparedText
from sottovoce.types import IntArray

if TYPE_CHECKING:
    import pyarrow

ROWS_TOGETHER = 1024
"""Texts that are cut and drawn together; it bounds memory and changes no result."""


@dataclass(frozen=True)
class DatasetCounts:
    """How many rows, texts (the cells of the chosen columns) and words met which fate.

    Counts of batches add up, in any order.

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
    encoded: int = 0
    """Words that the space does not list, drawn for by their vectors; among ``changed``."""
    uniform: int = 0
    """Unknown words for which a uniform word stood in; among ``changed``."""
    denied: int = 0
    """Words of the deny-list, for which a uniform word stood in; among ``changed``."""
    dropped: int = 0
    dropped_unprotected: int = 0
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

    def __add__(self, other: DatasetCounts) -> DatasetCounts:
        return DatasetCounts(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        )

    def to_dict(self) -> dict[str, int]:
        """For JSON; ``DatasetCounts(**…)`` reads it back."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Sanitizer:
    """Replaces the texts in some columns of a table.

    obfuscator
        Mechanism and pipeline; one variant. Its ``rng`` is None (secure) or a seed: each row and
        column then has generators of its own, by its number and name, so that neither the size of
        the batches nor the machine they run on changes anything.
    columns
        Those that hold text; all others are left alone.
    linkable
        None, or a secret: the same word then gets the same substitute in all rows and columns.
    deny
        Words that are never released, and for which a uniform word always stands in; exact
        matches in any case, also inside compounds and with 's.

    It does not change, and pickles as the path of its space and a few options.
    """

    obfuscator: Obfuscator
    columns: tuple[str, ...]
    linkable: bytes | None = None
    deny: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "deny", deny_list(self.deny))
        require(
            self.obfuscator.n == 1,
            "a data set gets one variant of each text: use n=1, and no mechanism that releases "
            "sets, such as cover",
        )
        pipeline = self.obfuscator.pipeline
        require(
            (pipeline.order, pipeline.pad_to) == ("kept", 0),
            "the texts of a data set are for reading: their words are neither shuffled nor padded",
        )
        require(len(self.columns) > 0, "name at least one column that holds text")
        require(
            len(set(self.columns)) == len(self.columns), "a column was named twice: name it once"
        )
        if isinstance(self.obfuscator.rng, Generator):
            raise UsageError("give a whole number as the seed: a generator has no row numbers")
        Streams(self.obfuscator.rng, "")  # Refuses what is no seed, before any work.
        mechanism = self.obfuscator.mechanism
        if not isinstance(mechanism, WordMechanism):
            require(
                self.linkable is None and not self.deny,
                f"{mechanism.name} rewrites whole texts: it has neither linkable words nor a "
                "deny-list",
            )
            return
        if self.linkable is not None:
            check_secret(self.linkable)
        if self.deny:
            lexicon = denying(mechanism.space, self.deny)
            require(
                not any(map(lexicon.denies, self.obfuscator.pipeline.keep)),
                "a word cannot be both kept in clear and denied: take it off one of the lists",
            )
            never_releasing(mechanism, self.deny)  # Refuses if no word would be left.

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, with the words of the deny-list out of what it may release."""
        mechanism = self.obfuscator.mechanism
        if self.deny and isinstance(mechanism, WordMechanism):
            return never_releasing(mechanism, self.deny)
        return mechanism

    def batch(
        self, batch: pyarrow.RecordBatch, first_row: int
    ) -> tuple[pyarrow.RecordBatch, DatasetCounts]:
        """Sanitize an Arrow record batch; ``first_row`` is its first row's number in the data set.

        The schema stays the same, and so do all other columns.
        """
        from sottovoce.sanitizing.arrow import texts_in, with_texts

        cells = [texts_in(batch, column) for column in self.columns]
        replaced, counts = self.rows(cells, first_row)
        return with_texts(batch, self.columns, replaced), counts

    def rows(self, columns: Texts, first_row: int) -> tuple[list[list[str | None]], DatasetCounts]:
        """Sanitize the cells of all columns, in rows ``first_row`` and following."""
        counts = DatasetCounts(rows=len(columns[0]))
        replaced = []
        for name, cells in zip(self.columns, columns, strict=True):
            texts, column_counts = self.texts(name, cells, first_row)
            replaced.append(texts)
            counts += column_counts
        return replaced, counts

    def texts(
        self, column: str, texts: Sequence[str | None], first_row: int
    ) -> tuple[list[str | None], DatasetCounts]:
        """Sanitize cells of one column, in rows ``first_row`` and following; None stays None."""
        streams = Streams(self.obfuscator.rng, f"{self.obfuscator.mechanism.spec}\n{column}")
        released: list[str | None] = []
        counts = DatasetCounts()
        for start in range(0, len(texts), ROWS_TOGETHER):
            cells, first = texts[start : start + ROWS_TOGETHER], first_row + start
            try:
                new, new_counts = self._together([cell or "" for cell in cells], first, streams)
            except SottovoceError:
                raise
            except Exception as error:
                # The cause could name a word: say what kind of error it was, and nothing of it.
                raise SottovoceError(
                    f"{self.obfuscator.mechanism.name} failed ({type(error).__name__}) between "
                    f"rows {first + 1} and {first + len(cells)}; nothing of them was released"
                ) from None
            released += [
                None if cell is None else text for cell, text in zip(cells, new, strict=True)
            ]
            counts += new_counts
        return released, counts

    def _together(
        self, texts: list[str], first: int, streams: Streams
    ) -> tuple[list[str], DatasetCounts]:
        mechanism = self.mechanism
        if isinstance(mechanism, WordMechanism):
            return self._word_by_word(mechanism, texts, first, streams)
        return self._as_wholes(texts, first, streams)

    def _word_by_word(
        self, mechanism: WordMechanism, texts: list[str], first: int, streams: Streams
    ) -> tuple[list[str], DatasetCounts]:
        cut = [self._prepared(mechanism, text, first + i) for i, text in enumerate(texts)]
        opened = OpenWords(mechanism.space, [text for text, _ in cut])
        prepared = opened.texts
        if self.linkable is not None:
            substitutes = linked(self.linkable, mechanism).substitutes(opened)
        else:
            release = WordRelease(mechanism, 1, False, opened, first, streams)
            substitutes = release.substitutes()
        ids = np.concatenate(substitutes, axis=1)[0]
        words = mechanism.space.words(ids)
        returned = self._returned(mechanism, prepared, ids, words)
        released, counts, at = [], DatasetCounts(), 0
        for text, (_, denied) in zip(prepared, cut, strict=True):
            end = at + len(text)
            released.append(text.render(words[at:end]))
            counts += _count_text(text, denied, sum(returned[at:end]))
            at = end
        return released, counts

    def _prepared(self, mechanism: WordMechanism, text: str, row: int) -> tuple[PreparedText, int]:
        try:
            lexicon = denying(mechanism.space, self.deny)
            return lexicon.prepare(text, self.obfuscator.pipeline)
        except UnknownWordError as error:
            raise UnknownWordError(f"row {row + 1}: {error}") from None

    def _returned(
        self, mechanism: WordMechanism, texts: list[PreparedText], ids: IntArray, words: list[str]
    ) -> list[bool]:
        """Which words came back as they were, ignoring case."""
        slots = np.concatenate([text.slots for text in texts])
        # An unknown word is never returned; any id will do for it here.
        before = mechanism.space.words(np.maximum(slots, 0))
        return [
            slot >= 0 and (slot == new or old.casefold() == word.casefold())
            for slot, new, old, word in zip(
                slots.tolist(), ids.tolist(), before, words, strict=True
            )
        ]

    def _as_wholes(
        self, texts: list[str], first: int, streams: Streams
    ) -> tuple[list[str], DatasetCounts]:
        released, counts = [], DatasetCounts(texts=len(texts))
        answers_blanks = isinstance(self.obfuscator.mechanism, PoolMechanism)
        for result in self.obfuscator.obfuscate_batch(texts, first, streams):
            empty = not (answers_blanks or result.text.strip())
            rewritten = bool(result.variants) and not empty
            released.append(result.variants[0] if rewritten else "")
            counts += DatasetCounts(
                empty=empty,
                rewritten=rewritten,
                verbatim=rewritten and result.unchanged == 1,
                withheld=not (rewritten or empty),
                kept_unprotected=len(result.kept) if rewritten else 0,
                words=len(result.kept) if rewritten else 0,
            )
        return released, counts

    def fingerprint(self) -> str:
        """A hash of everything that decides the result, but for the secret."""
        mechanism = self.obfuscator.mechanism
        rng = self.obfuscator.rng
        seed = (rng.entropy, rng.spawn_key) if isinstance(rng, SeedSequence) else rng
        pipeline = self.obfuscator.pipeline
        options: dict[str, Any] = {f.name: getattr(pipeline, f.name) for f in fields(pipeline)}
        deciding = [
            *(mechanism.spec, self.columns, repr(seed), sorted(self.deny)),
            {**options, "keep": sorted(pipeline.keep)},
            mechanism.made_with,
        ]
        return hashlib.sha256(json.dumps(deciding).encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        linkable = "unlinkable" if self.linkable is None else "linkable"
        return f"Sanitizer({self.obfuscator.mechanism!r}, {len(self.columns)} columns, {linkable})"


def _count_text(prepared: PreparedText, denied: int, returned: int) -> DatasetCounts:
    """Count one text, ``returned`` of whose words came back as they were."""
    fates = prepared.counts
    return DatasetCounts(
        texts=1,
        empty=not (len(prepared) or fates.left_out or fates.kept),
        words=len(prepared) + fates.left_out + fates.kept,
        changed=len(prepared) - returned,
        returned=returned,
        encoded=fates.encoded,
        uniform=fates.uniform,
        denied=denied,
        dropped=fates.dropped,
        dropped_unprotected=fates.dropped_unprotected,
        kept_unknown=fates.kept_unknown,
        kept_listed=fates.kept_listed,
        kept_unprotected=fates.kept_unprotected,
    )
