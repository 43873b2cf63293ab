"""A rule that says, without a reader, whether a neighbour is about a sensitive word's subject.

The judge is a word space of another origin than the space under test: ``large`` (GloVe 6B), made
from how often words stand near each other in Wikipedia and newswire. It has neither a text encoder
nor pieces of words in common with a space that an encoder made. It is a kind judge of ``default``,
which is mostly GloVe, too.

A neighbour N of a word W that is listed under a subject S is accepted if one of these holds:

1. Same stem: W is a single word, and N has its English stem (Snowball) or contains that stem, if
   it has at least five letters ("prediabetes" for "diabetes").
2. Near the word: by the judge, N is as similar to W as the nearest 5 % of common words are.
3. Near the subject: by the judge, N is as similar to the mean of the words listed under S as the
   nearest 5 % of common words are.

Similarity is the cosine of the judge's vectors without the mean of the common words and without the
direction in which these differ most, which says how frequent a word is. Common words are the
lower-case words of letters among the judge's first 100,000, its most frequent; every fourth of them
is taken. A phrase has the sum of its words' unit vectors. A neighbour that the judge lacks can be
accepted by 1 alone, a neighbour of a listed word that it lacks (covid, ozempic) by 1 and 3: what is
too new for the judge is a miss.

2 and 3 accept 5 % of the common words each, and so less than 10 % of words drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sottovoce.arrays import unit_rows
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.vocabularies import is_clean
from sottovoce.text.words import stems
from sottovoce.types import BoolArray, Float32Array

FREQUENT_WORDS = 100_000
ONE_IN = 4
ACCEPTED_OF_COMMON_WORDS = 0.05
SHORTEST_STEM_INSIDE = 5


class SubjectRule:
    """Says which neighbours of a listed word are about its subject."""

    def __init__(self, judge: WordSpace, subjects: Mapping[str, Sequence[str]]) -> None:
        self._judge = judge
        self._subject = {word: name for name, listed in subjects.items() for word in listed}
        frequent = judge.words(np.arange(min(FREQUENT_WORDS, judge.size)))
        common_ids = np.flatnonzero([is_clean(word) for word in frequent])[::ONE_IN]
        self._center, self._main_direction = _center_and_main_direction(judge.vectors[common_ids])
        common = self._without_frequency(judge.vectors[common_ids])

        listed_vectors, listed_known = self._vectors(list(self._subject))
        rows = dict(zip(self._subject, range(len(listed_vectors)), strict=True))
        means = {
            name: listed_vectors[[rows[word] for word in listed]].sum(axis=0, keepdims=True)
            for name, listed in subjects.items()
        }
        self._subject_profile = {name: unit_rows(mean)[0] for name, mean in means.items()}
        self._subject_threshold = _thresholds(common, self._subject_profile)
        self._word_profile = {
            word: listed_vectors[row] for word, row in rows.items() if listed_known[row]
        }
        self._word_threshold = _thresholds(common, self._word_profile)

    def accepts(self, word: str, neighbours: Sequence[str]) -> BoolArray:
        """Which of the neighbours are about the subject under which the word is listed."""
        vectors, known = self._vectors(neighbours)
        subject = self._subject[word]
        on_subject = vectors @ self._subject_profile[subject] >= self._subject_threshold[subject]
        if word in self._word_profile:
            on_subject |= vectors @ self._word_profile[word] >= self._word_threshold[word]
        return np.asarray(_same_stem(word, neighbours) | (known & on_subject), dtype=np.bool_)

    def _vectors(self, phrases: Sequence[str]) -> tuple[Float32Array, BoolArray]:
        """A unit vector for each word or phrase, and whether the judge has all its words.

        Zeros where it lacks one.
        """
        words = [word for phrase in phrases for word in phrase.split()]
        phrase_of_word = np.repeat(np.arange(len(phrases)), [len(text.split()) for text in phrases])
        ids = self._judge.ids(words)
        known = np.bincount(phrase_of_word[ids < 0], minlength=len(phrases)) == 0
        vectors = np.zeros((len(phrases), self._judge.dimension), dtype=np.float32)
        np.add.at(vectors, phrase_of_word, self._without_frequency(self._judge.vectors[ids]))
        vectors[~known] = 0
        return unit_rows(vectors), known

    def _without_frequency(self, vectors: Float32Array) -> Float32Array:
        """Unit vectors without the mean and the main direction of common words."""
        centered = vectors - self._center
        along = np.outer(centered @ self._main_direction, self._main_direction)
        return unit_rows((centered - along).astype(np.float32))


def _center_and_main_direction(vectors: Float32Array) -> tuple[Float32Array, Float32Array]:
    center = vectors.mean(axis=0)
    _, directions = np.linalg.eigh(np.cov(vectors, rowvar=False))
    return center, directions[:, -1].astype(np.float32)


def _thresholds(common: Float32Array, profiles: Mapping[str, Float32Array]) -> dict[str, float]:
    """For each profile the similarity that the stated share of common words reaches."""
    similarities = common @ np.stack(list(profiles.values())).T
    reached = np.quantile(similarities, 1 - ACCEPTED_OF_COMMON_WORDS, axis=0)
    return dict(zip(profiles, reached.tolist(), strict=True))


def _same_stem(word: str, neighbours: Sequence[str]) -> BoolArray:
    if " " in word:
        return np.zeros(len(neighbours), dtype=np.bool_)
    stem, *neighbour_stems = stems([word, *neighbours])
    may_be_inside = len(stem) >= SHORTEST_STEM_INSIDE
    return np.array(
        [
            neighbour_stem == stem or (may_be_inside and stem in neighbour)
            for neighbour, neighbour_stem in zip(neighbours, neighbour_stems, strict=True)
        ],
        dtype=np.bool_,
    )
