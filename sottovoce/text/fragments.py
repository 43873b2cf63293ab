"""Fragments, what becomes of one chunk of text, and how they are put together to a prepared text.

A fragment is a chunk (a stretch without whitespace) with slots where substitutes will stand
and literals, the text between them. It depends on the chunk, the space and the options alone. So
it is made once, and a text of millions of words costs one look-up per word. Where the neighbours
decide, they do so through one flag for each token.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from sottovoce.choices import UnknownPolicy, Unprotected
from sottovoce.text.comparing import comparable, visible
from sottovoce.text.prepared import Counts, PreparedText
from sottovoce.text.protection import InClear
from sottovoce.text.resolve import Lexicon, Part, can_be_encoded, resolve
from sottovoce.text.tokens import punctuation, spans
from sottovoce.types import ENCODED, UNKNOWN, IntArray

_LINE_BREAKS = frozenset("\n\r\u2028\u2029")

Fate: TypeAlias = Literal[
    "encoded",
    "uniform",
    "dropped",
    "dropped_unprotected",
    "kept_unknown",
    "kept_listed",
    "kept_unprotected",
]


_SLOTS = frozenset({"encoded", "uniform"})
_LEFT_OUT = frozenset({"dropped", "dropped_unprotected"})
_LACKING = frozenset({"uniform", "dropped", "kept_unknown"})


class Event(NamedTuple):
    """A word that no mechanism substitutes, and what becomes of it instead."""

    surface: str
    fate: Fate

    def __repr__(self) -> str:
        return f"Event({self.fate})"


class Fragment(NamedTuple):
    """A chunk made ready: ``literals[0] slot literals[1] slot ... literals[-1]``.

    ``ids`` has one entry for each slot, ``spans`` two, its start and end in the chunk.
    """

    literals: tuple[str, ...]
    ids: tuple[int, ...]
    spans: tuple[int, ...]
    events: tuple[Event, ...]

    def __repr__(self) -> str:
        return f"Fragment({len(self.ids)} slots)"


class Rules(NamedTuple):
    """The options of a pipeline that decide about a chunk."""

    unknown: UnknownPolicy
    in_clear: InClear
    keep: frozenset[str]
    punctuation: bool
    unprotected: Unprotected
    encodes: bool

    def exempt(self, surface: str, unprotected: bool = False) -> Fate | None:
        """Say whether an option exempts this word from protection, and what becomes of it."""
        if self.keep and comparable(surface) in self.keep:
            return "kept_listed"
        if not (unprotected or self.in_clear(surface)):
            return None
        return "kept_unprotected" if self.unprotected == "keep" else "dropped_unprotected"

    def unlisted(self, surface: str, position: int) -> Fate | None:
        """Say what becomes of a word that is to be protected; ``None`` leaves it to a mechanism."""
        if position != UNKNOWN:
            return None
        if self.unknown == "keep" and visible(surface):
            return "kept_unknown"
        if self.encodes and can_be_encoded(surface):
            return "encoded"
        return "uniform" if self.unknown in ("encode", "uniform", "error") else "dropped"


def fragment(
    chunk: str, lexicon: Lexicon, rules: Rules, in_clear: tuple[bool, ...] = ()
) -> Fragment:
    """Cut a chunk into slots and literals; ``in_clear`` says which of its tokens stay as they are.

    Without it, the rules alone decide.
    """
    if chunk.isalnum() and not (any(in_clear) or rules.exempt(chunk)):
        word_id = resolve(chunk, lexicon)[0].id
        if word_id != UNKNOWN:  # by far the most frequent case
            return Fragment(("", ""), (word_id,), (0, len(chunk)), ())
    builder = _Builder(lexicon, rules)
    position = 0
    for number, (start, end) in enumerate(spans(chunk)):
        builder.gap(chunk[position:start])
        builder.token(chunk[start:end], start, bool(in_clear) and in_clear[number])
        position = end
    builder.gap(chunk[position:])
    return builder.finish()


def phrase_fragment(chunk: str, start: int, end: int, phrase: int, punctuated: bool) -> Fragment:
    """The fragment of a chunk that holds a phrase: one slot, and the punctuation around it."""
    before, after = (
        (punctuation(chunk[:start]), punctuation(chunk[end:])) if punctuated else ("", "")
    )
    return Fragment((before, after), (phrase,), (start, end), ())


class _Builder:
    def __init__(self, lexicon: Lexicon, rules: Rules) -> None:
        self.lexicon, self.rules = lexicon, rules
        self.resolved: dict[str, tuple[Part, ...]] = {}
        self.literals: list[str] = []
        self.pieces: list[str] = []
        self.ids: list[int] = []
        self.spans: list[int] = []
        self.events: list[Event] = []
        self.after_word = False

    def gap(self, text: str) -> None:
        """Release the punctuation between words."""
        released = punctuation(text) if text and self.rules.punctuation else ""
        if released:
            self.pieces.append(released)
            self.after_word = False

    def token(self, surface: str, offset: int, in_clear: bool) -> None:
        """Decide about a token, whole or in parts; a joiner stays if both its sides do."""
        if fate := self.rules.exempt(surface, in_clear):
            self._settle(surface, fate)
            return
        if surface not in self.resolved:
            self.resolved[surface] = resolve(surface, self.lexicon)
        joiner_from = None
        for start, end, position in self.resolved[surface]:
            part = surface[start:end]
            fate = self.rules.exempt(part) or self.rules.unlisted(part, position)
            if fate in _LEFT_OUT:
                self._settle(part, fate)
                continue
            if joiner_from is not None:
                self.gap(surface[joiner_from:start])
            joiner_from = end
            if fate is None or fate in _SLOTS:
                slot = ENCODED if fate == "encoded" else position
                self._slot(slot, offset + start, offset + end)
                if fate:
                    self.events.append(Event(part, fate))
            else:
                self._settle(part, fate)

    def finish(self) -> Fragment:
        self._end_literal()
        return Fragment(
            tuple(self.literals), tuple(self.ids), tuple(self.spans), tuple(self.events)
        )

    def _settle(self, surface: str, fate: Fate) -> None:
        """Leave a word out, or keep it as it is."""
        if fate in _LEFT_OUT:
            self.events.append(Event(surface, fate))
            return
        self._begin_word()
        self.pieces.append(visible(surface))
        self.events.append(Event(visible(surface), fate))

    def _slot(self, position: int, start: int, end: int) -> None:
        self._begin_word()
        self._end_literal()
        self.ids.append(position)
        self.spans += (start, end)

    def _begin_word(self) -> None:
        """Put a blank between two words that touch, as a word and an emoji do."""
        if self.after_word:
            self.pieces.append(" ")
        self.after_word = True

    def _end_literal(self) -> None:
        self.literals.append("".join(self.pieces))
        self.pieces.clear()


class Assembly:
    """Collects fragments and the whitespace between them; used up by :meth:`finish`."""

    def __init__(self) -> None:
        self._offset = 0
        self._slots: list[IntArray] = []
        self._spans: list[IntArray] = []
        self._events: Counter[Event] = Counter()
        self._literals: list[str] = []
        # Text since the last slot: pieces long settled, the last piece, and the blank after it,
        # which may yet be taken back.
        self._settled: list[str] = []
        self._tail = self._blank = ""

    def add(self, chunks: list[str], pieces: list[Fragment], blanks: list[str]) -> None:
        """Append chunks, the fragment of each, and the whitespace after each.

        Where a chunk is left out altogether, so is a blank beside it.
        """
        ids: list[int] = []
        edges: list[int] = []
        literals, settled, tail, blank = self._literals, self._settled, self._tail, self._blank
        offset = self._offset
        for chunk, piece, blank_after in zip(chunks, pieces, blanks, strict=True):
            piece_literals, piece_ids, piece_spans, events = piece
            if piece_ids:
                # All text since the last slot becomes the literal before this one.
                ids += piece_ids
                for edge in piece_spans:
                    edges.append(offset + edge)
                before = tail + blank + piece_literals[0]
                if settled:
                    before = "".join(settled) + before
                    settled.clear()
                literals.append(before or (" " if literals else ""))
                if len(piece_literals) > 2:
                    literals += piece_literals[1:-1]
                tail, blank = piece_literals[-1], blank_after
            elif piece_literals[0] or not chunk:
                # Text without a slot.
                settled += (tail, blank, piece_literals[0])
                tail, blank = "", blank_after
            elif _breaks_line(blank) and _breaks_line(blank_after):
                # A line of which nothing is left stays as an empty line.
                settled += (tail, blank)
                tail, blank = "", blank_after
            else:
                blank = _one_of_two_blanks(blank, blank_after)
            for event in events:
                self._events[event] += 1
            offset += len(chunk) + len(blank_after)
        self._tail, self._blank, self._offset = tail, blank, offset
        self._slots.append(np.array(ids, dtype=np.int64))
        self._spans.append(np.array(edges, dtype=np.int64).reshape(-1, 2))

    def finish(self, text: str, *, restores_case: bool, releases_punctuation: bool) -> PreparedText:
        """Close the last literal and hand out the whole."""
        self._literals.append("".join((*self._settled, self._tail, self._blank)))
        slots = np.concatenate(self._slots)
        fates: Counter[str] = Counter()
        unknown: dict[str, None] = {}
        kept: dict[str, None] = {}
        for (surface, fate), times in self._events.items():
            fates[fate] += times
            if fate in _LACKING:
                unknown[surface] = None
            if fate not in _SLOTS | _LEFT_OUT:
                kept[surface] = None
        return PreparedText(
            text=text,
            slots=slots,
            spans=np.concatenate(self._spans),
            literals=tuple(self._literals),
            unknown=tuple(unknown),
            kept=tuple(kept),
            counts=Counts(
                known=len(slots) - fates["uniform"] - fates["encoded"],
                **fates,
            ),
            restores_case=restores_case,
            releases_punctuation=releases_punctuation,
        )


def _one_of_two_blanks(before: str, after: str) -> str:
    """Choose what stays of the whitespace around a chunk left out; nothing at a text's edge."""
    if _breaks_line(before):
        return before
    if _breaks_line(after):
        return after
    return before if after else ""


def _breaks_line(blank: str) -> bool:
    return not _LINE_BREAKS.isdisjoint(blank)
