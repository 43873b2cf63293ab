"""The deny-list: words that are always replaced, and never stand in what is released."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import regex

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace
from sottovoce.text import PreparedText, TextPipeline, resolve
from sottovoce.text.comparing import comparable, comparable_words
from sottovoce.text.resolve import spellings
from sottovoce.types import UNKNOWN

_LETTERS = regex.compile(r"\p{L}+").findall
DENIED = -3
"""The id of a denied word while a text is cut; like an unknown one, it gets a stand-in."""


class Denying:
    """A word space in which the words of a list, in any case and with 's, count as denied."""

    def __init__(self, space: WordSpace, deny: frozenset[str]) -> None:
        self._space, self._deny = space, deny

    @property
    def encoder(self) -> object | None:
        """What gives words a vector that the space does not list."""
        return self._space.encoder

    @property
    def phrases(self) -> Mapping[str, int]:
        """The words that phrases of the space begin with."""
        return self._space.phrases

    def id(self, word: str) -> int:
        """The id of a word, ``DENIED`` or ``UNKNOWN``."""
        if self._deny:
            form = comparable(word)
            if form in self._deny or form.removesuffix("'s") in self._deny:
                return DENIED
            # An address is one word, whatever names are in it.
            if any(sign in form for sign in "@/.") and self._deny.intersection(_LETTERS(form)):
                return DENIED
        return self._space.id(word)

    def denies(self, surface: str) -> bool:
        """Whether a word, or a part of it, is denied."""
        return bool(self._deny) and any(part.id == DENIED for part in resolve(surface, self))

    def prepare(self, text: str, pipeline: TextPipeline) -> tuple[PreparedText, int]:
        """Cut a text into slots; also how many of them were denied words.

        If all of it would stay in clear, or a denied word of it, every word is protected.
        """
        prepared = pipeline.prepare(text, self)
        counts = prepared.counts
        exempt = counts.kept_unprotected or counts.dropped_unprotected
        if exempt and (not len(prepared) or any(map(self.denies, prepared.kept))):
            prepared = _protecting_all(pipeline).prepare(text, self)
        denied = prepared.slots == DENIED
        count = int(denied.sum())
        if count:
            prepared = replace(prepared, slots=np.where(denied, UNKNOWN, prepared.slots))
        return prepared, count


@lru_cache(maxsize=8)
def _protecting_all(pipeline: TextPipeline) -> TextPipeline:
    return replace(pipeline, protect="all")


def deny_list(words: Iterable[str]) -> frozenset[str]:
    """The list in the form in which words are compared."""
    return comparable_words(words, "deny")


@lru_cache(maxsize=4)
def denying(space: WordSpace, deny: frozenset[str]) -> Denying:
    """The space without its denied words; one object for all batches of a process."""
    return Denying(space, deny)


@lru_cache(maxsize=4)
def never_releasing(mechanism: WordMechanism, deny: frozenset[str]) -> WordMechanism:
    """The mechanism without the denied words among those it may release."""
    space = mechanism.space
    forms = {form for word in deny for form in (*spellings(word), *spellings(word + "'s"))}
    phrases = space.phrase_ids
    with_denied = [not forms.isdisjoint(phrase.split()) for phrase in space.words(phrases)]
    denied = np.concatenate([space.ids(sorted(forms)), phrases[np.array(with_denied, np.bool_)]])
    left = np.setdiff1d(space.output.ids, denied)
    name = f"{space.output.name} without the deny-list"
    return replace(mechanism, space=space.with_output(OutputVocabulary(name, left)))
