"""What becomes of one chunk of text: the part of the work that repeats, so it is done once.

A fragment is a chunk (a stretch without whitespace) with slots where substitutes will stand
and literals, the text between them. It depends on the chunk, the space and the options alone,
never on the neighbours, so that a text of millions of words costs one look-up per word.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from sottovoce.text.protection import InClear
from sottovoce.text.resolve import UNKNOWN, Lexicon, comparable, resolve, visible
from sottovoce.text.tokens import punctuation, spans

UnknownPolicy: TypeAlias = Literal["uniform", "drop", "error", "keep"]
Reason: TypeAlias = Literal["unknown", "keep", "protect"]


class KeptWord(NamedTuple):
    """A word that is released in clear, and the option that says so."""

    surface: str
    reason: Reason


class Fragment(NamedTuple):
    """A chunk made ready: ``literals[0] slot literals[1] slot ... literals[-1]``.

    ``starts`` and ``ends`` of the slots count from the chunk's first character, ``length`` counts
    all of its characters.
    """

    length: int
    literals: tuple[str, ...]
    ids: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    kept: tuple[KeptWord, ...]
    unknown: tuple[str, ...]
    dropped: int


class Rules(NamedTuple):
    """The options of a pipeline that decide about a chunk."""

    unknown: UnknownPolicy
    in_clear: InClear
    keep: frozenset[str]
    punctuation: bool

    def listed(self, surface: str) -> Reason | None:
        """Which option releases this word in clear, if one does."""
        if self.keep and comparable(surface) in self.keep:
            return "keep"
        return "protect" if self.in_clear(surface) else None


def fragment(chunk: str, lexicon: Lexicon, rules: Rules) -> Fragment:
    """Cut a chunk into slots and literals."""
    if chunk.isalnum() and rules.unknown in ("uniform", "error") and not rules.listed(chunk):
        return _bare_word(chunk, lexicon)
    builder = _Builder(rules)
    position = 0
    for start, end in spans(chunk):
        builder.gap(chunk[position:start])
        builder.token(chunk[start:end], start, lexicon)
        position = end
    builder.gap(chunk[position:])
    return builder.finish(len(chunk))


def _bare_word(word: str, lexicon: Lexicon) -> Fragment:
    """Do what the builder would, for the most frequent kind of chunk, in half the time."""
    ((_, end, found),) = resolve(word, lexicon)
    unknown = (word,) if found == UNKNOWN else ()
    return Fragment(end, ("", ""), (found,), (0,), (end,), (), unknown, 0)


class _Builder:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.literals: list[str] = []
        self.pieces: list[str] = []
        self.slots: list[tuple[int, int, int]] = []
        self.kept: list[KeptWord] = []
        self.unknown: list[str] = []
        self.dropped = 0
        self.after_word = False

    def gap(self, text: str) -> None:
        """Release the punctuation between words."""
        released = punctuation(text) if text and self.rules.punctuation else ""
        if released:
            self.pieces.append(released)
            self.after_word = False

    def token(self, surface: str, offset: int, lexicon: Lexicon) -> None:
        """Decide about a token, whole or in parts; a joiner stays if both its sides do."""
        if reason := self.rules.listed(surface):
            self._keep(surface, reason)
            return
        joiner_from = None
        for start, end, position in resolve(surface, lexicon):
            part = surface[start:end]
            reason = self.rules.listed(part)
            if position == UNKNOWN and not reason:
                self.unknown.append(part)
                if self.rules.unknown == "keep" and visible(part):
                    reason = "unknown"
                elif self.rules.unknown in ("drop", "keep"):
                    self.dropped += 1
                    continue
            if joiner_from is not None:
                self.gap(surface[joiner_from:start])
            joiner_from = end
            if reason:
                self._keep(part, reason)
            else:
                self._slot(position, offset + start, offset + end)

    def finish(self, length: int) -> Fragment:
        self._end_literal()
        ids, starts, ends = zip(*self.slots, strict=True) if self.slots else ((), (), ())
        return Fragment(
            length,
            tuple(self.literals),
            ids,
            starts,
            ends,
            tuple(self.kept),
            tuple(self.unknown),
            self.dropped,
        )

    def _keep(self, surface: str, reason: Reason) -> None:
        self._begin_word()
        self.pieces.append(visible(surface))
        self.kept.append(KeptWord(visible(surface), reason))

    def _slot(self, position: int, start: int, end: int) -> None:
        self._begin_word()
        self._end_literal()
        self.slots.append((position, start, end))

    def _begin_word(self) -> None:
        """Two words that touch, as a word and an emoji do, are set apart by a blank."""
        if self.after_word:
            self.pieces.append(" ")
        self.after_word = True

    def _end_literal(self) -> None:
        self.literals.append("".join(self.pieces))
        self.pieces.clear()
