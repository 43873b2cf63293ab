"""CusText and CusText+ of Chen et al. (Findings of ACL 2023): a group of words for each word."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from sottovoce.guarantees import FIXED_LENGTH, MANY_RELEASES, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import EPSILON_HELP, parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.sampling import BoxMechanism, normalized
from sottovoce.spaces.distances import Distances, Measure, smallest
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

WORDS_AT_A_TIME = 64
SEEDS_AT_A_TIME = 64
"""Words whose neighbours are looked up together, before they turn out to be needed."""
MOST_IN_A_GROUP = 1000
"""A group may be larger than a small vocabulary, and is then all of it."""
SPARE_NEIGHBOURS = 8
"""Neighbours looked up for each place of a group, since others may have taken some by then."""

GROUP_IS_RELEASED = (
    "which group a word belongs to is released exactly, at any epsilon: whoever knows the groups "
    "knows that it is one of so many words"
)
OVERLAPPING = (
    "compat=knn gives each word the nearest words as published code does; these sets overlap but "
    "differ, so an output rules out every word whose set lacks it, and no guarantee holds"
)


@register
@dataclass(frozen=True, repr=False, eq=False)
class CusText(BoxMechanism):
    """Within a word's group G, p(y|w) proportional to exp(epsilon u / 2).

    u is the similarity of y to w, scaled so that it runs from 0 to 1 in G (equal similarities
    count as 0). The groups partition the output vocabulary and follow from the space alone: words
    in the space's order, which is public, each with the nearest words that have no group yet. A
    word that may not be released itself joins the group of the nearest one that may.
    """

    name: ClassVar[str] = "custext"
    summary: ClassVar[str] = "samples among the K words of a fixed group of similar words"
    paper: ClassVar[str] = (
        "Chen, Mo, Wang, Chen, Nie, Wang, Cui: A Customized Text Sanitization Mechanism with "
        "Differential Privacy, Findings of ACL 2023"
    )

    box_size: ClassVar[str] = "k"
    box_depends_on_epsilon: ClassVar[bool] = False

    epsilon: float = parameter(2.0, EPSILON_HELP)
    k: int = parameter(20, "words in a group, 2 or more")
    measure: Literal["euclidean", "angle"] = parameter(
        "euclidean", "how similarity is measured: distance, or the angle's cosine"
    )
    keep_stop_words: bool = parameter(False, "CusText+: function words stay in clear")
    compat: Literal["none", "knn"] = parameter(
        "none", "'knn' takes each word's nearest words as its set, as public code does"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.k >= 2,
            f"a group of {self.k} would release every word as it is: set k to 2 or more",
        )
        require(
            self.k <= max(MOST_IN_A_GROUP, len(self.space.output)),
            f"a group of {self.k} words does not exist: the output vocabulary has "
            f"{len(self.space.output)}; set k lower",
        )

    @property
    def protects(self) -> str:
        """All words; CusText+ leaves function words in clear."""
        return "content" if self.keep_stop_words else "all"

    def laws(self, words: IntArray) -> list[tuple[IntArray, Float64Array]]:
        """The group of each word, and the law inside."""
        boxes = self._nearest(words) if self.compat == "knn" else self._groups(words)
        owners = np.repeat(words, [len(box) for box in boxes])
        distances = self._distances.pairs(owners, np.concatenate([*boxes, words[:0]]))
        ends = np.cumsum([len(box) for box in boxes])[:-1]
        by_box = zip(boxes, np.split(distances, ends), strict=False)
        return [(box, self._law(far)) for box, far in by_box]

    def _law(self, distances: Float64Array) -> Float64Array:
        spread = np.ptp(distances)
        if not spread > 0:
            return normalized(np.zeros_like(distances))
        return normalized(0.5 * self.epsilon * (distances.max() - distances) / spread)

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.space, self.space.output.ids, self.measure)

    def _nearest(self, words: IntArray) -> list[IntArray]:
        return list(self.space.output.ids[self._places(words, min(self.k, len(self.space.output)))])

    def _groups(self, words: IntArray) -> list[IntArray]:
        output = self.space.output.ids
        place = np.minimum(np.searchsorted(output, words), len(output) - 1)
        away = np.flatnonzero(output[place] != words)
        place[away] = self._places(words[away], 1)[:, 0]
        return [self._members[group] for group in self._group_of[place]]

    def _places(self, words: IntArray, count: int) -> IntArray:
        parts = np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))
        return np.concatenate(
            parallel_map(lambda part: smallest(self._distances.rows(part), count), parts)
        )

    @cached_property
    def _group_of(self) -> IntArray:
        output = self.space.output.ids
        vocabulary = hashlib.blake2b(output.tobytes(), digest_size=8).hexdigest()
        return self.space.derived(
            f"groups-{self.measure}-{self.k}-{vocabulary}",
            len(output),
            lambda: disjoint_groups(self.space, output, self.k, self.measure),
        )

    @cached_property
    def _members(self) -> list[IntArray]:
        order = np.argsort(self._group_of, kind="stable")
        ends = np.cumsum(np.bincount(self._group_of))[:-1]
        return np.split(self.space.output.ids[order], ends)

    @property
    def published(self) -> Guarantee | None:
        """Code with overlapping sets claims what the paper proves for a partition."""
        return Guarantee("local", self.epsilon) if self.compat == "knn" else None

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon inside a group; across groups nothing."""
        if self.compat == "knn":
            return Guarantee("none", None, caveats=(OVERLAPPING, WORD_BY_WORD))
        caveats = [GROUP_IS_RELEASED]
        if len(self.space.output) % self.k == 1:
            caveats.append("one word of this space is alone in its group: it comes back as it is")
        caveats += [WORD_BY_WORD, FIXED_LENGTH, MANY_RELEASES]
        return Guarantee("group", self.epsilon, caveats=tuple(caveats))


def disjoint_groups(space: WordSpace, words: IntArray, size: int, measure: Measure) -> IntArray:
    """The number of each word's group (algorithm 1 of the paper).

    In order, each word that has no group yet forms one with the ``size - 1`` nearest words that
    have none; the last group takes what is left.
    """
    group = np.full(len(words), -1, dtype=np.int64)
    free, number = np.arange(len(words)), 0
    while len(free):
        # The nearest free words of the next few free words, looked up together.
        seeds, left = free[:SEEDS_AT_A_TIME], len(free)
        count = min(left, SPARE_NEIGHBOURS * size)
        near = free[_nearest_places(space, words[seeds], words[free], count, measure)]
        for seed, candidates in zip(seeds, near, strict=True):
            if group[seed] >= 0:
                continue
            group[seed] = number
            companions = candidates[group[candidates] < 0][: size - 1]
            if len(companions) < min(size, left) - 1:
                group[seed] = -1  # Too many are taken: look again among the free ones.
                break
            group[companions] = number
            left -= 1 + len(companions)
            number += 1
        free = free[group[free] < 0]
    return group


def _nearest_places(
    space: WordSpace, words: IntArray, targets: IntArray, count: int, measure: Measure
) -> IntArray:
    """The places of the ``count`` targets nearest to each word, nearest first."""
    distances = Distances(space, targets, measure)
    halves = np.array_split(words, 2) if len(words) > 1 else [words]
    return np.concatenate(parallel_map(lambda half: smallest(distances.rows(half), count), halves))
