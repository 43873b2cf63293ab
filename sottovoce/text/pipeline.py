"""TextPipeline: from a text to slots for substitutes, under the user's choices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np

from sottovoce.errors import PrivacyWarning, UnknownWordError, UsageError, closest
from sottovoce.text.assembly import Assembly
from sottovoce.text.fragments import Fragment, Rules, UnknownPolicy, fragment
from sottovoce.text.prepared import PreparedText
from sottovoce.text.protection import PROTECTIONS
from sottovoce.text.resolve import Lexicon, comparable
from sottovoce.text.tokens import blocks, normalise, tokenise

_REMEMBERED_CHUNKS = 1 << 17
_REMEMBERED_LENGTH = 64
_SHOWN_POSITIONS = 10

# Fragments of earlier texts, per space and pipeline: in memory only, gone with the space.
_remembered: MutableMapping[Any, dict[TextPipeline, dict[str, Fragment]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class TextPipeline:
    """How texts are cut into words, and which words are protected.

    unknown
        What becomes of words the space lacks: ``uniform`` (a uniform draw over the output
        vocabulary, independent of the word), ``drop``, ``error``, or ``keep`` (released in clear).
    protect
        ``all`` words, or ``content`` words: English function words then stay in clear.
    keep
        Words to release in clear, in any case; exact matches only.
    punctuation
        ``keep`` it where it stands, or ``drop`` it.
    restore_case
        Give each substitute the case pattern of the word it replaces.
    """

    unknown: UnknownPolicy = "uniform"
    protect: Literal["all", "content"] = "all"
    keep: frozenset[str] = frozenset()
    punctuation: Literal["keep", "drop"] = "keep"
    restore_case: bool = False

    def __post_init__(self) -> None:
        _check_choice("unknown", self.unknown, get_args(UnknownPolicy))
        _check_choice("protect", self.protect, tuple(PROTECTIONS))
        _check_choice("punctuation", self.punctuation, ("keep", "drop"))
        if not isinstance(self.restore_case, bool):
            raise UsageError("restore_case must be True or False")
        object.__setattr__(self, "keep", _keep_list(self.keep))
        if self.unknown == "keep":
            warnings.warn(
                "unknown='keep' releases every word that the space lacks in clear, and these are "
                "often names; use 'uniform' or 'drop' to protect them",
                PrivacyWarning,
                stacklevel=3,
            )

    def prepare(self, text: str, space: Lexicon) -> PreparedText:
        """Cut a text into slots and literals; whitespace, punctuation and kept words are literal.

        Raises ``UnknownWordError`` under ``unknown='error'``, with positions but without words.
        """
        if not isinstance(text, str):
            raise UsageError(f"a text must be a str, not {type(text).__name__}")
        normalised = normalise(text)
        assembly = Assembly()
        for chunks, pieces, blanks in self._cut(normalised, space):
            assembly.add(chunks, pieces, blanks)
        prepared = assembly.finish(
            normalised,
            restores_case=self.restore_case,
            releases_punctuation=self.punctuation == "keep",
        )
        if self.unknown == "error":
            _refuse_unknown(prepared)
        return prepared

    def _cut(
        self, text: str, space: Lexicon
    ) -> Iterator[tuple[list[str], list[Fragment], list[str]]]:
        """Cut a text into chunks, their fragments, and the whitespace after each, in blocks."""
        rules = Rules(
            self.unknown, PROTECTIONS[self.protect], self.keep, self.punctuation == "keep"
        )
        remembered = _remembered.setdefault(space, {}).setdefault(self, {})

        def learn(chunk: str) -> Fragment:
            piece = fragment(chunk, space, rules)
            if len(chunk) <= _REMEMBERED_LENGTH:
                remembered[chunk] = piece
            return piece

        for chunks, blanks in blocks(text):
            if len(remembered) > _REMEMBERED_CHUNKS:
                remembered = _remembered[space][self] = {}
            yield chunks, [remembered.get(chunk) or learn(chunk) for chunk in chunks], blanks


def _refuse_unknown(prepared: PreparedText) -> None:
    total = np.count_nonzero(prepared.uniform)
    if not total:
        return
    unknown = np.flatnonzero(prepared.uniform)[:_SHOWN_POSITIONS]
    shown = [
        f"{start}-{end} (word {slot + 1})"
        for slot, (start, end) in zip(unknown, prepared.spans[unknown], strict=True)
    ]
    more = f", and {total - len(shown)} more" if total > len(shown) else ""
    raise UnknownWordError(
        f"{total} of {len(prepared)} words are not in the space, at characters "
        f"{', '.join(shown)}{more}. Replace them by uniform draws with unknown='uniform', leave "
        "them out with 'drop', release chosen words with the keep list, or use a larger space."
    )


def _keep_list(words: Iterable[str]) -> frozenset[str]:
    listed = [] if isinstance(words, str) else list(words)
    if isinstance(words, str) or not all(isinstance(word, str) for word in listed):
        raise UsageError("keep must be a collection of words, such as frozenset({'python'})")
    for word in listed:
        if [token.surface for token in tokenise(word)] != [normalise(word)]:
            raise UsageError(
                "each entry of keep must be one word without punctuation around it; list the "
                "words of a phrase one by one"
            )
    return frozenset(map(comparable, listed))


def _check_choice(option: str, value: object, allowed: Sequence[str]) -> None:
    if value in allowed:
        return
    near = closest(str(value).casefold(), allowed)
    hint = f"did you mean {near!r}? " if near else ""
    raise UsageError(f"{option}={value!r} is no choice; {hint}choose one of {', '.join(allowed)}")
