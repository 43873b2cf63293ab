"""Places of a release: what an attacker lines up, and the words that stood there.

A word-by-word release keeps the number of words, so the first word of every variant stands for the
first word of the text, and so on. Besides the words, a release shows its shape: the number of
words, the punctuation, and the words that were left in clear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import regex

from sottovoce.choices import Release
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.releases import Released
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline, folded_text
from sottovoce.text.phrases import units
from sottovoce.text.protection import PROTECTIONS
from sottovoce.text.words import FUNCTION_WORDS
from sottovoce.types import UNKNOWN, BoolArray, IntArray

CERTAIN = 3
"""A word that stands at a place in every one of at least so many variants was not replaced."""

Shape: TypeAlias = tuple[str, ...]
"""What stands before, between and after the replaced words of a text; blanks say nothing."""

_PUNCTUATION = regex.compile(r"\p{P}+")
_INNER_PUNCTUATION = regex.compile(r"(?<=[^\p{P}])\p{P}+(?=[^\p{P}])")
_TOKEN = regex.compile(r"(?P<before>\p{P}*)(?P<bare>.*?)(?P<after>\p{P}*)", regex.DOTALL)


class Reading(NamedTuple):
    """A token as it is compared, the id of its word, and the punctuation around it."""

    word: str
    id: int = UNKNOWN
    before: str = ""
    after: str = ""

    def __repr__(self) -> str:
        return f"Reading(known={self.id != UNKNOWN})"


class Reader:
    """Reads tokens: as they stand or, where the space knows no such word, without punctuation."""

    def __init__(self, space: WordSpace | None) -> None:
        self.space = space
        self._read: dict[str, Reading] = {}

    def tokens(self, text: str) -> list[Reading]:
        """The whitespace tokens of a text; one of punctuation alone is no word."""
        readings = map(self.read, text.split())
        return [reading for reading in readings if reading.word]

    def read(self, token: str) -> Reading:
        """One token, remembered."""
        if token not in self._read:
            self._read[token] = self._look_up(token)
        return self._read[token]

    def _look_up(self, token: str) -> Reading:
        match = _TOKEN.fullmatch(token)
        before, bare, after = match.group("before", "bare", "after") if match else ("", token, "")
        # Only listed words are released: "Hague" is not the "hague" that a log added to the space.
        for space in () if self.space is None else (self.space.listed, self.space):
            for form in (token.casefold(), token):
                if (word_id := space.id(form)) != UNKNOWN:
                    return Reading(form.casefold(), word_id)
            for form in (bare.casefold(), bare):
                if form and (word_id := space.id(form)) != UNKNOWN:
                    return Reading(form.casefold(), word_id, before, after)
        return Reading(bare.casefold(), UNKNOWN, before, after)


@dataclass(frozen=True, repr=False)
class Place:
    """What all variants show at one place."""

    shown: tuple[Reading, ...]
    in_clear: bool

    @property
    def seen(self) -> IntArray:
        """The ids of the words shown, in the order of the variants; unknown ones left out."""
        ids = [reading.id for reading in self.shown if reading.id != UNKNOWN]
        return np.array(ids, dtype=np.int64)

    @property
    def most_shown(self) -> Reading:
        """The reading that most variants show; the first of several."""
        return Counter(self.shown).most_common(1)[0][0]


@dataclass(frozen=True, repr=False)
class PlacedText:
    """One text: what was seen at each place, its shape, and its true words.

    The truth only decides whether guesses are right. Where places do not stand for true words one
    by one, as words were left out, added or shuffled, a true word counts wherever it is guessed.
    """

    id: str
    text: str
    places: tuple[Place, ...]
    shape: Shape
    truth: tuple[Reading, ...]
    ordered: bool = True

    @property
    def aligned(self) -> bool:
        """Whether there is a true word for each place, in the same order."""
        return self.ordered and len(self.truth) == len(self.places)

    @property
    def replaced(self) -> IntArray:
        """The places whose word was replaced; the others show it in clear."""
        return np.flatnonzero([not place.in_clear for place in self.places])

    @property
    def function(self) -> BoolArray:
        """Which true words are function words."""
        return np.array([word.word in FUNCTION_WORDS for word in self.truth], dtype=np.bool_)

    def seen(self) -> list[IntArray]:
        """The ids seen at each replaced place: what evidence is asked about."""
        return [self.places[at].seen for at in self.replaced]

    def __repr__(self) -> str:
        return f"PlacedText({len(self.places)} places)"


def line_up(
    releases: Sequence[Released],
    space: WordSpace | None,
    *,
    release: Release = "independent",
    pipeline: TextPipeline | None = None,
    variants: int | None = None,
) -> tuple[list[PlacedText], int]:
    """The places of every text, and how many texts have none.

    Texts without variants were not released, and are left out. Those whose variants differ in
    their number of words have no places; a UsageError if that is so for most.

    release
        Under ``once`` no word is shown twice at a place, so one that is was left in clear.
    pipeline
        How the texts were cut into words; by default as sottovoce does without options.
    variants
        How many variants the attacker sees, the first ones; all by default.
    """
    attacked = [released for released in releases if released.variants]
    if not any(released.text.split() for released in attacked):
        raise UsageError("there is no text to attack: give a file with at least one")
    reader, cutter = Reader(space), pipeline or TextPipeline()
    texts = []
    for released in attacked:
        rows = [_units(variant, space, cutter) for variant in released.variants[:variants]]
        if cutter.phrases:  # A few may be cut otherwise than they were released: leave those out.
            usual = Counter(map(len, rows)).most_common(1)[0][0]
            rows = [row for row in rows if len(row) == usual]
        if len({len(row) for row in rows}) == 1:
            texts.append(_placed(released, rows, reader, cutter, release))
    uneven = len(attacked) - len(texts)
    if uneven > len(attacked) / 2:
        raise UsageError(
            f"the variants of {uneven} of {len(attacked)} texts differ in their number of words: "
            "this is no word-by-word release, so there are no places to compare"
        )
    return texts, uneven


def _units(variant: str, space: WordSpace | None, pipeline: TextPipeline) -> list[str]:
    """What stands at each place of a variant: words, or phrases where texts are cut into those."""
    if space is None or not pipeline.phrases:
        return variant.split()
    return units(variant, space)


def shape_of(literals: Sequence[str]) -> Shape:
    """The shape of a text by what stands before, between and after its replaced words."""
    return tuple(map(_folded, literals))


@lru_cache(maxsize=1 << 16)
def _folded(literal: str) -> str:
    return folded_text(literal)


def _placed(
    released: Released,
    rows: list[list[str]],
    reader: Reader,
    pipeline: TextPipeline,
    release: Release,
) -> PlacedText:
    places: list[Place] = []
    literals = [""]
    for column in zip(*rows, strict=True):
        pieces, joiners = _cut(column, reader)
        for piece, joiner in zip(pieces, (*joiners, " "), strict=True):
            place = Place(piece, _left_in_clear(piece, release, pipeline))
            # A released word may have punctuation of its own, so that of most variants counts.
            marks = Counter((reading.before, reading.after) for reading in piece)
            before, after = marks.most_common(1)[0][0]
            word = place.most_shown.word
            if place.in_clear:
                literals[-1] += before + word + after + joiner
            else:
                literals[-1] += before
                literals.append(after + joiner)
            if word:
                places.append(place)
    truth = _true_words(released.text, len(places), reader, pipeline)
    return PlacedText(released.id, released.text, tuple(places), shape_of(literals), tuple(truth))


def _cut(
    column: tuple[str, ...], reader: Reader
) -> tuple[list[tuple[Reading, ...]], tuple[str, ...]]:
    """The words at one place; a compound whose parts were replaced one by one has several.

    Answers the readings of each part and the punctuation that joins the parts.
    """
    whole = tuple(map(reader.read, column))
    if all(reading.id != UNKNOWN for reading in whole):
        return [whole], ()
    joiners = {tuple(_INNER_PUNCTUATION.findall(token)) for token in column}
    cuts = [[part for part in _PUNCTUATION.split(token) if part] for token in column]
    # The same everywhere, and with parts that no mechanism releases: it was left in clear.
    same = len(whole) >= CERTAIN and len(set(whole)) == 1
    if same and any(reader.read(part).id == UNKNOWN for part in cuts[0]):
        return [whole], ()
    if len({len(cut) for cut in cuts}) > 1 or len(cuts[0]) < 2 or len(joiners) > 1:
        return [whole], ()
    pieces = [list(map(reader.read, part)) for part in zip(*cuts, strict=True)]
    # The punctuation around the compound is that around its first and last part.
    pieces[0] = [
        part._replace(before=token.before) for part, token in zip(pieces[0], whole, strict=True)
    ]
    pieces[-1] = [
        part._replace(after=token.after) for part, token in zip(pieces[-1], whole, strict=True)
    ]
    return [tuple(piece) for piece in pieces], next(iter(joiners))


def _left_in_clear(shown: tuple[Reading, ...], release: Release, pipeline: TextPipeline) -> bool:
    """Whether a place shows its word as it was: the same one everywhere, and not by the mechanism.

    Mechanisms release words of the space. Drawn afresh, the same word may come every time: then
    the evidence decides, unless the pipeline leaves such words as they are.
    """
    first = shown[0].word
    if any(reading.word != first for reading in shown):
        return False
    if not first:
        return True
    by_mechanism = release == "independent" and shown[0].id != UNKNOWN
    return len(shown) >= CERTAIN and (not by_mechanism or _may_stay(first, pipeline))


def _may_stay(word: str, pipeline: TextPipeline) -> bool:
    """Whether a pipeline leaves a word in clear; where parts of speech decide, any word may be."""
    if pipeline.protect not in PROTECTIONS:
        return True
    return word in pipeline.keep or PROTECTIONS[pipeline.protect](word)


def _true_words(text: str, count: int, reader: Reader, pipeline: TextPipeline) -> list[Reading]:
    """The true words as the pipeline cuts them; at whitespace where that fits the places better."""
    tokens = reader.tokens(text)
    if reader.space is None:
        return tokens
    prepared = pipeline.prepare(text, reader.space)
    spans = prepared.spans.tolist()
    slots = zip(prepared.slots.tolist(), spans, strict=True)
    # Literals hold the words left in clear, between the slots of the replaced ones.
    words = reader.tokens(prepared.literals[0])
    for (word_id, (start, end)), literal in zip(slots, prepared.literals[1:], strict=True):
        words.append(Reading(prepared.text[start:end].casefold(), max(word_id, UNKNOWN)))
        words += reader.tokens(literal)
    fits_better = len(tokens) == count != len(words)
    return tokens if prepared.counts.dropped or fits_better else words
