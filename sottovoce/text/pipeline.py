"""TextPipeline: from a text to slots for substitutes, under the user's choices."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args
from weakref import WeakKeyDictionary

import numpy as np

from sottovoce.choices import Order, UnknownPolicy, Unprotected
from sottovoce.errors import PrivacyWarning, UnknownWordError, UsageError, did_you_mean
from sottovoce.language.tagging import check_tagger, load_tagger
from sottovoce.text.comparing import comparable_words
from sottovoce.text.fragments import Assembly, Fragment, Rules, fragment, phrase_fragment
from sottovoce.text.phrases import PhraseLexicon, join_phrases, phrase_in
from sottovoce.text.prepared import PreparedText
from sottovoce.text.protection import PROTECTIONS, Judged, judged_blocks, no_word, protected_tags
from sottovoce.text.resolve import Lexicon
from sottovoce.text.tokens import blocks, normalize

_REMEMBERED_CHUNKS = 1 << 17
_REMEMBERED_LENGTH = 64
_SHOWN_POSITIONS = 10
MOST_PADDING = 1000
LONGEST_TEXT = 16 << 20
"""Characters; a longer text would take gigabytes while it is worked on."""
"""The most words that a text can be padded to; engines refuse longer queries anyway."""

Key: TypeAlias = str | Judged
# Fragments of earlier texts, per space and pipeline: in memory only, gone with the space.
_remembered: MutableMapping[Any, dict[TextPipeline, dict[Key, Fragment]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class TextPipeline:
    """How texts are cut into words, and which words are protected.

    unknown
        What becomes of words the space lacks: ``encode`` (the encoder that made the space gives
        them a vector, and they go through the mechanism like any other; without an encoder, and
        for what cannot be a word, like ``uniform``), ``uniform`` (a uniform word of the output
        vocabulary stands in, and goes through the mechanism), ``drop``, ``error``, or ``keep``
        (released in clear).
    protect
        ``all`` words; ``content`` words: English function words then stay in clear, with
        ``content:de`` German ones; or a list of parts of speech, such as
        ``noun,adjective``, or of Penn Treebank tags: plain words of other kinds then stay in clear.
    unprotected
        ``keep`` the words that ``protect`` leaves out in clear, or ``drop`` them.
    phrases
        Take several words as one where the space lists them so, as *skin cancer*: they get one
        substitute. Where parts of speech decide what is protected, words stay single.
    keep
        Words to release in clear, in any case; exact matches only.
    punctuation
        ``keep`` it where it stands, or ``drop`` it.
    restore_case
        Give each substitute the case pattern of the word it replaces.
    order
        ``kept``, or ``shuffled``: the words of each variant in a random order of its own, without
        punctuation, for search engines that do not look at the order.
    pad_to
        Texts with fewer words to protect get so many: a uniform word, obfuscated like any other,
        stands at each further place. Longer texts stay as they are.
    tagger
        What tells parts of speech: ``auto``, ``pattern`` or ``spacy:MODEL``.
    """

    unknown: UnknownPolicy = "encode"
    protect: str = "all"
    keep: frozenset[str] = frozenset()
    punctuation: Literal["keep", "drop"] = "keep"
    restore_case: bool = False
    tagger: str = "auto"
    order: Order = "kept"
    pad_to: int = 0
    unprotected: Unprotected = "keep"
    phrases: bool = False

    def __post_init__(self) -> None:
        _check_choice("unknown", self.unknown, get_args(UnknownPolicy))
        protected_tags(_as_text("protect", self.protect))
        check_tagger(_as_text("tagger", self.tagger))
        _check_choice("unprotected", self.unprotected, get_args(Unprotected))
        _check_choice("punctuation", self.punctuation, ("keep", "drop"))
        _check_choice("order", self.order, get_args(Order))
        if self.order == "shuffled" and self.punctuation != "drop":
            raise UsageError(
                "words in random order leave no place for punctuation: add punctuation='drop'"
            )
        if type(self.pad_to) is not int or not 0 <= self.pad_to <= MOST_PADDING:
            raise UsageError(f"pad_to is a number of words from 0 to {MOST_PADDING}")
        for option in ("restore_case", "phrases"):
            if not isinstance(getattr(self, option), bool):
                raise UsageError(f"{option} must be True or False")
        object.__setattr__(self, "keep", comparable_words(self.keep, "keep"))
        if self.unknown == "keep":
            warnings.warn(
                "unknown='keep' releases every word that the space lacks in clear, and these are "
                "often names; use 'uniform' or 'drop' to protect them",
                PrivacyWarning,
                stacklevel=3,
            )

    def to_dict(self) -> dict[str, Any]:
        """All settings, for JSON: what an attack on a file needs to cut texts alike."""
        return {**asdict(self), "keep": sorted(self.keep)}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> TextPipeline:
        """The pipeline that :meth:`to_dict` describes; without warnings, as nothing is released."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                return cls(**{**settings, "keep": frozenset(settings.get("keep", ()))})
        except TypeError:
            raise UsageError("there is no such setting of how texts are cut") from None

    def laid_out(self, *, shuffle: bool, pad_to: int = 0) -> TextPipeline:
        """The same, padded; if ``shuffle``, with words in random order and without punctuation."""
        padded = replace(self, pad_to=pad_to)
        return replace(padded, order="shuffled", punctuation="drop") if shuffle else padded

    def prepare(self, text: str, space: Lexicon) -> PreparedText:
        """Cut a text into slots and literals; whitespace, punctuation and kept words are literal.

        Raises ``UnknownWordError`` under ``unknown='error'``, with positions but without words.
        """
        if not isinstance(text, str):
            raise UsageError(f"a text must be a str, not {type(text).__name__}")
        if len(text) > LONGEST_TEXT:
            raise UsageError(
                f"a text of {len(text):,} characters is longer than {LONGEST_TEXT:,}: cut it into "
                "several"
            )
        normalized = normalize(text)
        assembly = Assembly()
        for chunks, pieces, blanks in self._cut(normalized, space):
            assembly.add(chunks, pieces, blanks)
        prepared = assembly.finish(
            normalized,
            restores_case=self.restore_case,
            releases_punctuation=self.punctuation == "keep",
        )
        if self.unknown == "error":
            _refuse_unknown(prepared)
        return replace(prepared, order=self.order).padded(self.pad_to)

    def _cut(
        self, text: str, space: Lexicon
    ) -> Iterator[tuple[list[str], list[Fragment], list[str]]]:
        """Cut a text into chunks, their fragments, and the whitespace after each, in blocks."""
        in_clear = PROTECTIONS.get(self.protect, no_word)
        rules = Rules(
            unknown=self.unknown,
            in_clear=in_clear,
            keep=self.keep,
            punctuation=self.punctuation == "keep",
            unprotected=self.unprotected,
            encodes=self.unknown == "encode" and getattr(space, "encoder", None) is not None,
        )
        remembered = _remembered.setdefault(space, {}).setdefault(self, {})

        def learn(key: Key) -> Fragment:
            chunk, flags = (key, ()) if isinstance(key, str) else key
            phrase = phrase_in(chunk, space) if self.phrases else None
            piece = (
                phrase_fragment(chunk, *phrase, rules.punctuation)
                if phrase
                else fragment(chunk, space, rules, flags)
            )
            if len(chunk) <= _REMEMBERED_LENGTH:
                remembered[key] = piece
            return piece

        for keys, chunks, blanks in self._blocks(text, space):
            if len(remembered) > _REMEMBERED_CHUNKS:
                remembered = _remembered[space][self] = {}
            yield chunks, [remembered.get(key) or learn(key) for key in keys], blanks

    def _blocks(
        self, text: str, space: Lexicon
    ) -> Iterator[tuple[Sequence[Key], list[str], list[str]]]:
        """Cut a text at whitespace, in blocks: what decides about each chunk, chunks, whitespace.

        The chunk alone decides, or together with what the whole text says about its tokens.
        """
        if tags := protected_tags(self.protect):
            for judged, blanks in judged_blocks(text, load_tagger(self.tagger), tags):
                yield judged, [chunk for chunk, _ in judged], blanks
        else:
            for chunks, blanks in blocks(text):
                if self.phrases and isinstance(space, PhraseLexicon):
                    chunks, blanks = join_phrases(chunks, blanks, space, self.keep)
                yield chunks, chunks, blanks


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
        f"{', '.join(shown)}{more}. Let uniform words stand in for them with unknown='uniform', "
        "leave them out with 'drop', release chosen words with the keep list, or use a larger "
        "space."
    )


def _as_text(option: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise UsageError(f"{option} must be a str, such as 'all' or 'noun,adjective'")


def _check_choice(option: str, value: object, allowed: Sequence[str]) -> None:
    if value in allowed:
        return
    hint = did_you_mean(str(value).casefold(), allowed)
    raise UsageError(
        f"{option} has no such choice; {hint and f'{hint} '}choose one of {', '.join(allowed)}"
    )
