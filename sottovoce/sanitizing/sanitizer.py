"""Sanitizer: what is done to one batch of rows, the same on every machine and for every cut."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator, SeedSequence

from sottovoce.errors import SottovoceError, UnknownWordError, UsageError
from sottovoce.mechanisms.base import Mechanism, PoolMechanism, WordMechanism, require
from sottovoce.obfuscation import Obfuscator
from sottovoce.obfuscation.words import WordRelease
from sottovoce.randomness import Streams
from sottovoce.sanitizing.counts import Counts, count_text
from sottovoce.sanitizing.denying import deny_list, denying, never_releasing
from sottovoce.sanitizing.linking import check_secret, linked
from sottovoce.text import PreparedText
from sottovoce.types import IntArray

if TYPE_CHECKING:
    import pyarrow

ROWS_TOGETHER = 1024
"""Texts that are cut and drawn together; it bounds memory and changes no result."""


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
        Words that are always replaced, by a uniform draw, and that are never released; exact
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
        require(self.obfuscator.n == 1, "a data set gets one variant of each text: use n=1")
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
    ) -> tuple[pyarrow.RecordBatch, Counts]:
        """Sanitise an Arrow record batch; ``first_row`` is its first row's number in the data set.

        The schema stays the same, and so do all other columns.
        """
        from sottovoce.sanitizing.arrow import texts_in, with_texts

        counts = Counts(rows=batch.num_rows)
        replaced = []
        for column in self.columns:
            texts, own = self.texts(column, texts_in(batch, column), first_row)
            replaced.append(texts)
            counts += own
        return with_texts(batch, self.columns, replaced), counts

    def texts(
        self, column: str, texts: Sequence[str | None], first_row: int
    ) -> tuple[list[str | None], Counts]:
        """Sanitise cells of one column, in rows ``first_row`` and following; None stays None."""
        streams = Streams(self.obfuscator.rng, f"{self.obfuscator.mechanism.spec}\n{column}")
        released: list[str | None] = []
        counts = Counts()
        for start in range(0, len(texts), ROWS_TOGETHER):
            some, first = texts[start : start + ROWS_TOGETHER], first_row + start
            given = [text or "" for text in some]
            try:
                new, own = self._together(given, first, streams)
            except SottovoceError:
                raise
            except Exception as error:
                # The cause could name a word: say what kind of error it was, and nothing of it.
                raise SottovoceError(
                    f"{self.obfuscator.mechanism.name} failed ({type(error).__name__}) between "
                    f"rows {first + 1} and {first + len(some)}; nothing of them was released"
                ) from None
            released += [None if old is None else one for old, one in zip(some, new, strict=True)]
            counts += own
        return released, counts

    def _together(self, texts: list[str], first: int, streams: Streams) -> tuple[list[str], Counts]:
        mechanism = self.mechanism
        if isinstance(mechanism, WordMechanism):
            return self._word_by_word(mechanism, texts, first, streams)
        return self._as_wholes(texts, first, streams)

    def _word_by_word(
        self, mechanism: WordMechanism, texts: list[str], first: int, streams: Streams
    ) -> tuple[list[str], Counts]:
        cut = [self._prepared(mechanism, text, first + i) for i, text in enumerate(texts)]
        prepared = [each for each, _ in cut]
        if self.linkable is not None:
            chosen = linked(self.linkable, mechanism).substitutes(prepared)
        else:
            chosen = WordRelease(mechanism, 1, False, prepared, first, streams).substitutes()
        ids = np.concatenate(chosen, axis=1)[0]
        words = mechanism.space.words(ids)
        returned = self._returned(mechanism, prepared, ids, words)
        released, counts, at = [], Counts(), 0
        for text, denied in cut:
            end = at + len(text)
            released.append(text.render(words[at:end]))
            counts += count_text(text, denied, sum(returned[at:end]))
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
        """Which words came back as they were, as a reader sees it: case tells nothing apart."""
        slots = np.concatenate([text.slots for text in texts])
        known = np.maximum(slots, 0)
        before = mechanism.space.words(known)
        return [
            slot >= 0 and (slot == new or old.casefold() == word.casefold())
            for slot, new, old, word in zip(
                slots.tolist(), ids.tolist(), before, words, strict=True
            )
        ]

    def _as_wholes(
        self, texts: list[str], first: int, streams: Streams
    ) -> tuple[list[str], Counts]:
        released, counts = [], Counts(texts=len(texts))
        answers_blanks = isinstance(self.obfuscator.mechanism, PoolMechanism)
        for result in self.obfuscator.obfuscate_batch(texts, first, streams):
            empty = not (answers_blanks or result.text.strip())
            found = bool(result.variants) and not empty
            released.append(result.variants[0] if found else "")
            counts += Counts(
                empty=empty,
                rewritten=found,
                verbatim=found and result.unchanged == 1,
                withheld=not (found or empty),
                kept_unprotected=len(result.kept) if found else 0,
                words=len(result.kept) if found else 0,
            )
        return released, counts

    def fingerprint(self) -> str:
        """A hash of everything that decides the result, but for the secret."""
        mechanism = self.obfuscator.mechanism
        rng = self.obfuscator.rng
        seed = (rng.entropy, rng.spawn_key) if isinstance(rng, SeedSequence) else rng
        pipeline = self.obfuscator.pipeline
        options: dict[str, Any] = {f.name: getattr(pipeline, f.name) for f in fields(pipeline)}
        known: list[Any] = [mechanism.spec, self.columns, repr(seed), sorted(self.deny)]
        known += [{**options, "keep": sorted(pipeline.keep)}, mechanism.made_with]
        return hashlib.sha256(json.dumps(known).encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        linkable = "unlinkable" if self.linkable is None else "linkable"
        return f"Sanitizer({self.obfuscator.mechanism!r}, {len(self.columns)} columns, {linkable})"
