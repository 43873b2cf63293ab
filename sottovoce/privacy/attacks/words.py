"""The attack on words: what a model of texts and the evidence say stood at each place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.privacy.attacks.evidence import PLACES_AT_A_TIME, Evidence, unknown_column
from sottovoce.privacy.attacks.language import TextModel
from sottovoce.privacy.attacks.places import PlacedText
from sottovoce.spaces.space import WordSpace
from sottovoce.statistics import NOTHING_SEEN, SAMPLES, clopper_pearson, percentiles, resamples
from sottovoce.types import (
    UNKNOWN,
    BoolArray,
    Float32Array,
    Float64Array,
    IntArray,
    Progress,
    count_up,
)

STRETCH = 256
"""Longer texts are read in stretches of so many places, each as a text of its own."""


def evidence_rows(
    evidence: Evidence, texts: Iterable[PlacedText], progress: Progress | None = None
) -> Iterator[tuple[PlacedText, Float32Array]]:
    """Each text with log P(seen | word) of its replaced places, (places, size + 1).

    The last column stands for a word that the space lacks. ``PLACES_AT_A_TIME`` places are worked
    out at once, so that texts may be many.
    """
    listed = list(texts)
    count = count_up(progress, sum(len(text.replaced) for text in listed))
    block: list[PlacedText] = []
    places = 0
    for text in listed:
        if block and places + len(text.replaced) > PLACES_AT_A_TIME:
            yield from _block_rows(evidence, block)
            count(places)
            block, places = [], 0
        block.append(text)
        places += len(text.replaced)
    yield from _block_rows(evidence, block)
    count(places)


def _block_rows(
    evidence: Evidence, texts: list[PlacedText]
) -> Iterator[tuple[PlacedText, Float32Array]]:
    seen = [ids for text in texts for ids in text.seen()]
    output = evidence.mechanism.space.output.ids
    rows = np.empty((len(seen), evidence.mechanism.space.size + 1), dtype=np.float32)
    for start in range(0, len(seen), PLACES_AT_A_TIME):
        block = slice(start, start + PLACES_AT_A_TIME)
        rows[block, :-1] = evidence.log_likelihood(seen[block])
        rows[block, -1] = unknown_column(rows[block, :-1], output).ravel()
    start = 0
    for text in texts:
        end = start + len(text.replaced)
        yield text, rows[start:end]
        start = end


@dataclass(frozen=True)
class TextWords:
    """How many words of one text were guessed, content and function words apart; no word itself."""

    id: str
    content: int
    content_right: int
    function: int
    function_right: int
    whole: bool

    @property
    def words(self) -> int:
        """All true words, those that no attack can guess included."""
        return self.content + self.function

    @property
    def right(self) -> int:
        """The words that were guessed."""
        return self.content_right + self.function_right


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval; None where there was nothing to count."""

    right: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The share."""
        return self.right / self.total if self.total else None

    @classmethod
    def by_text(cls, right: Sequence[int], total: Sequence[int]) -> Share:
        """Of words: texts are resampled, as the words of a text are not independent.

        Where all or none are right, resampling sees nothing, and the rule of three speaks.
        """
        hits, all_ = np.array(right, dtype=np.float64), np.array(total, dtype=np.float64)
        if not all_.sum():
            return cls(0, 0, 0.0, 1.0)
        (drawn,) = resamples(len(all_), SAMPLES, seed=0, at_a_time=SAMPLES)
        trials = drawn @ all_
        low, high = percentiles((drawn @ hits)[trials > 0] / trials[trials > 0])
        reach = NOTHING_SEEN / np.count_nonzero(all_)
        if not hits.sum():
            high = min(1.0, reach)
        elif hits.sum() == all_.sum():
            low = max(0.0, 1 - reach)
        return cls(int(hits.sum()), int(all_.sum()), low, high)

    @classmethod
    def of_texts(cls, right: Sequence[bool]) -> Share:
        """Of whole texts: Clopper and Pearson."""
        if not len(right):
            return cls(0, 0, 0.0, 1.0)
        low, high = clopper_pearson(sum(right), len(right))
        return cls(int(sum(right)), len(right), float(low), float(high))


@dataclass(frozen=True)
class WordRecovery:
    """What one attacker recovered of all texts, and what they knew."""

    attack: str
    knows: str
    by_text: tuple[TextWords, ...]

    @property
    def mean(self) -> float:
        """The share of all words: by it attacks are compared."""
        return self.words.value or 0.0

    @property
    def words(self) -> Share:
        """The share of all words."""
        return Share.by_text(
            [text.right for text in self.by_text], [text.words for text in self.by_text]
        )

    @property
    def content(self) -> Share:
        """The share of the content words."""
        return Share.by_text(
            [text.content_right for text in self.by_text], [text.content for text in self.by_text]
        )

    @property
    def function(self) -> Share:
        """The share of the function words."""
        return Share.by_text(
            [text.function_right for text in self.by_text], [text.function for text in self.by_text]
        )

    @property
    def whole(self) -> Share:
        """The share of the texts of which every word was guessed."""
        return Share.of_texts([text.whole for text in self.by_text])

    def to_dict(self) -> dict[str, Any]:
        """For JSON; no text is in it."""
        return {
            "attack": self.attack,
            "knows": self.knows,
            **{
                name: {"value": share.value, **vars(share)}
                for name, share in (
                    ("words", self.words),
                    ("content", self.content),
                    ("function", self.function),
                    ("whole", self.whole),
                )
            },
        }


def recover_words(
    evidence: Evidence,
    texts: Sequence[PlacedText],
    models: Sequence[TextModel],
    progress: Progress | None = None,
) -> list[WordRecovery]:
    """Attack every text with each model; a :class:`Prior` is the model without context."""
    space = evidence.mechanism.space
    results: list[list[TextWords]] = [[] for _ in models]
    for text, rows in evidence_rows(evidence, texts, progress):
        for model, by_text in zip(models, results, strict=True):
            by_text.append(judge(text, guessed_words(text, guess(model, rows), space)))
    return [
        WordRecovery(model.name, f"the mechanism ({evidence.kind})", tuple(by_text))
        for model, by_text in zip(models, results, strict=True)
    ]


def guess(model: TextModel, rows: Float32Array) -> IntArray:
    """The likeliest word of the space at each place: that the word is unknown is no guess."""
    stretches = [
        most_likely(model.marginals(rows[start : start + STRETCH]))
        for start in range(0, len(rows), STRETCH)
    ]
    return np.concatenate([*stretches, np.empty(0, dtype=np.int64)])


def most_likely(marginals: Float64Array) -> IntArray:
    """The word with the largest probability at each place; the first of several."""
    return np.asarray(marginals[:, :-1].argmax(axis=1))


def guessed_words(text: PlacedText, guesses: IntArray, space: WordSpace) -> list[tuple[int, str]]:
    """Id and folded word guessed at each place; words in clear are read as they stand."""
    spelled = [word.casefold() for word in space.words(guesses)]
    replaced = iter(zip(guesses.tolist(), spelled, strict=True))
    return [
        (place.most_shown.id, place.most_shown.word) if place.in_clear else next(replaced)
        for place in text.places
    ]


def shown_words(text: PlacedText) -> list[tuple[int, str]]:
    """Id and folded word that most variants show at each place."""
    return [(place.most_shown.id, place.most_shown.word) for place in text.places]


def judge(text: PlacedText, guesses: Sequence[tuple[int, str]]) -> TextWords:
    """Count which true words were guessed."""
    right, function = guessed_right(text, guesses), text.function
    return TextWords(
        id=text.id,
        content=int((~function).sum()),
        content_right=int((right & ~function).sum()),
        function=int(function.sum()),
        function_right=int((right & function).sum()),
        whole=bool(len(right) and right.all()),
    )


def guessed_right(text: PlacedText, guesses: Sequence[tuple[int, str]]) -> BoolArray:
    """Which true words were guessed: the word itself, or what the pipeline took it for.

    Where places do not stand for true words one by one, a word counts wherever it was guessed.
    """
    if text.aligned:
        pairs = zip(text.truth, guesses, strict=True)
        return np.array(
            [
                spelled == true.word or (true.id == word_id != UNKNOWN)
                for true, (word_id, spelled) in pairs
            ],
            dtype=np.bool_,
        )
    left = Counter(spelled if word_id == UNKNOWN else word_id for word_id, spelled in guesses)
    right = np.zeros(len(text.truth), dtype=np.bool_)
    for at, true in enumerate(text.truth):
        key = true.word if true.id == UNKNOWN else true.id
        right[at] = left[key] > 0
        left[key] -= 1
    return right
