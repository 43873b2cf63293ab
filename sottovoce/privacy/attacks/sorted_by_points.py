"""Places of a release ``once`` in random order, found again by the noisy points behind them.

Few words off one point lie near each other, and k-means finds them (``unordered.py``). Of many,
the places run into each other. But they are still the N words nearest to one point each, and two
facts are left to use: words that no variant shows are nearest to none of the points, and a point
that is found by some words of a place says which other words are nearest to it. So half of the
variants show where the points are, the words of the other half go to the points that they score
highest at, then the other way round, again and again. A point never judges the words that it was
found by: these would confirm whatever they are. Half of the words count, those that are surest of
their place, then more of them, and all in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from scipy.special import log_expit

from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.privacy.attacks.places import Place, PlacedText
from sottovoce.privacy.attacks.separating_points import SeparatingPoints, Shown
from sottovoce.privacy.attacks.unordered import assigned
from sottovoce.randomness import Randomness, as_generator
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress, count_up

MANY_VARIANTS = 20
"""Of so many, k-means still puts 97 words of 100 where they belong (DL'19, cmp at 7.5)."""
TURNS = 40
SETTLED = 0.9
"""No more turns are taken once this share of the words stays where it was."""
ROUNDS = ((400, 2), (600, 2))
"""Rivals and sweeps by which the points of what was found are judged in the end."""
SUREST = 0.5
"""The share of the words that show where a point is, at the first turn; it grows up to all."""
FEWEST = 8
"""But so many words show a point, where there are so many."""
TEXTS_AT_A_TIME = 16


def sort_by_points(
    texts: Sequence[PlacedText],
    evidence: Evidence,
    *,
    rng: Randomness = 0,
    progress: Progress | None = None,
) -> list[PlacedText]:
    """Texts whose places were found roughly, with the words of each place together.

    Texts of few variants, or released otherwise, stay as they are. Of what is found and what was
    there, that is taken whose words lie nearer to their points. ``rng`` divides the variants, anew
    with each text; no privacy depends on it.
    """
    results = list(texts)
    if not isinstance(evidence, OnePoint):
        return results
    sorters = {
        row: _Sorter(evidence, text, as_generator(rng))
        for row, text in enumerate(texts)
        if _can_be_sorted(text, evidence)
    }
    count, listed = count_up(progress, len(sorters)), list(sorters)
    separating = SeparatingPoints(evidence.slopes, evidence.levels)
    for start in range(0, len(listed), TEXTS_AT_A_TIME):
        some = listed[start : start + TEXTS_AT_A_TIME]
        _sort([sorters[row] for row in some], separating)
        for row in some:
            results[row] = sorters[row].text()
        count(len(some))
    return results


def _can_be_sorted(text: PlacedText, evidence: OnePoint) -> bool:
    """Several places, of many words each, which the mechanism can have released."""
    output, seen = evidence.mechanism.space.output.ids, text.seen()
    return len(seen) > 1 and all(
        len(ids) > MANY_VARIANTS and np.isin(ids, output).all() for ids in seen
    )


def _sort(sorters: Sequence[_Sorter], separating: SeparatingPoints) -> None:
    """Take all turns, each with the points of all texts together."""
    moving = list(sorters)
    for share in (1.0, *np.linspace(SUREST, 1.0, TURNS - 1)):
        show = [sorter.halves(float(share)) for sorter in moving]
        x = separating.of([place for of_text in show for place in of_text])
        ends = np.cumsum([len(of_text) for of_text in show])[:-1]
        for sorter, points in zip(list(moving), np.split(x, ends), strict=True):
            if sorter.turn(points) >= SETTLED:
                moving.remove(sorter)
        if not moving:
            break


class _Sorter:
    """Puts the words of one text, (places, variants), together, turn by turn."""

    def __init__(self, evidence: OnePoint, text: PlacedText, rng: Generator) -> None:
        self._evidence, self._text, self._rng = evidence, text, rng
        shown = np.array(text.seen())
        # Words by their places in the output vocabulary, and among those that are released.
        self._words = np.searchsorted(evidence.mechanism.space.output.ids, shown)
        self._released, columns = np.unique(self._words, return_inverse=True)
        self._columns = columns.reshape(shown.shape)
        self._places, self._variants = len(shown), np.arange(shown.shape[1])
        # Which word of each variant belongs to each place, and by how much rather than elsewhere.
        self._given = np.tile(np.arange(self._places)[:, None], (1, len(self._variants)))
        self._order, self._surety = self._given.copy(), np.zeros(shown.shape)
        self._half = np.zeros(len(self._variants), dtype=bool)

    def halves(self, share: float) -> list[Shown]:
        """What shows the points of all places, by one half of the variants, then the other."""
        self._half = self._rng.permutation(self._variants) % 2 == 0
        words = self._words[self._order, self._variants]
        surest = [
            _surest(row[some], sure[some], share)
            for some in (self._half, ~self._half)
            for row, sure in zip(words, self._surety, strict=True)
        ]
        count, guess = len(self._variants), self._evidence.guess
        return [Shown(words, self._released, count, guess(words)) for words in surest]

    def turn(self, points: Float32Array) -> float:
        """The words of each half go where the points of the other are; the share that stays."""
        before = self._order.copy()
        scores = self._evidence.scores(points, self._released).astype(np.float64)
        # What N of the released words reach at each point, and how much scores differ there.
        last = max(0, scores.shape[1] - len(self._variants))
        threshold = np.partition(scores, last, axis=1)[:, last, None]
        # How likely each word is among the N nearest to each point, (points, words).
        chances = log_expit((scores - threshold) / scores.std(axis=1, keepdims=True))
        for by_half, judged in zip(np.split(chances, 2), (~self._half, self._half), strict=True):
            for variant in np.flatnonzero(judged).tolist():
                of_words = by_half[:, self._columns[:, variant]]
                order = assigned(of_words)
                self._order[:, variant] = order
                self._surety[:, variant] = _lead(of_words[:, order])
        return float((self._order == before).mean())

    def text(self) -> PlacedText:
        """The text with the words of each place together, or as it was if that is better."""
        if self._inside(self._order) <= self._inside(self._given):
            return self._text
        replaced = [self._text.places[at] for at in self._text.replaced]
        together = [
            Place(tuple(replaced[at].shown[variant] for variant, at in enumerate(row)), False)
            for row in self._order.tolist()
        ]
        clear = [place for place in self._text.places if place.in_clear]
        return replace(self._text, places=(*together, *clear), ordered=False)

    def _inside(self, order: IntArray) -> float:
        """The share of words that are among the N nearest to the point of their place."""
        words = self._words[order, self._variants]
        x = self._evidence.settled([np.unique(row) for row in words], ROUNDS)
        scores = self._evidence.scores(x)
        last = scores.shape[1] - len(self._variants)
        threshold = np.partition(scores, last, axis=1)[:, last, None]
        return float((np.take_along_axis(scores, words, axis=1) >= threshold).mean())


def _surest(words: IntArray, surety: Float64Array, share: float) -> IntArray:
    """That share of the words of a place which is surest to belong there."""
    count = max(FEWEST, round(share * len(words)))
    return np.unique(words[np.argsort(-surety, kind="stable")[:count]])


def _lead(chances: Float64Array) -> Float64Array:
    """By how much each word's own place is ahead of the next one, (places, places) -> (places,)."""
    own = chances.diagonal().copy()
    others = chances.copy()
    np.fill_diagonal(others, -np.inf)
    return np.asarray(own - others.max(axis=0))
