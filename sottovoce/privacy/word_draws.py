"""Draws for words that are measured: each word with generators of its own, or with common noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import ROWS_AT_A_TIME, WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import Draws, Randomness, Streams
from sottovoce.spaces.moved_words import MovedWords
from sottovoce.spaces.space import WordSpace
from sottovoce.types import IntArray

DRAWN_TOGETHER = 128
"""Draws of a word that one generator gives."""
SHARING, DRAWS_FOR_EACH = 32, 30
"""Words that share their noise where means over words matter, and draws that each of them needs."""
WORTH_SHARING = 1 << 21
"""Numbers in the vectors of all words that may be released, below which sharing saves nothing."""
MOST_NUMBERS = 1 << 25
"""Numbers held for the words that share their noise, one for each word that may be released."""
NOISE, CHOICE = range(2)


class Sampler:
    """Draws for words, each word with generators of its own.

    They do not depend on the mechanism's epsilon: with a seed, noise at another epsilon is the
    same noise scaled, so that two epsilons are compared on the same draws.
    """

    def __init__(self, mechanism: str, words: IntArray, rng: Randomness) -> None:
        self.words = words
        self._streams = Streams(rng, mechanism)

    def batches(self, mechanism: WordMechanism, places: IntArray, draws: int) -> Iterator[IntArray]:
        """All draws for the words at these places, in batches of shape (places, count)."""
        for number, start in enumerate(range(0, draws, DRAWN_TOGETHER)):
            count = min(DRAWN_TOGETHER, draws - start)
            generators = [
                (self._streams.generator(int(place), number, Streams.WORDS, 0), count)
                for place in places
            ]
            drawn = mechanism.draw(np.repeat(self.words[places], count), Draws(generators))
            yield drawn.reshape(len(places), count)

    def all(self, mechanism: WordMechanism, places: IntArray, draws: int) -> IntArray:
        """All draws for some words, (places, draws)."""
        return np.concatenate(list(self.batches(mechanism, places, draws)), axis=1)

    def groups(self, draws: int) -> list[IntArray]:
        """All places, in groups that are best drawn together."""
        step = max(1, ROWS_AT_A_TIME // draws)
        return np.split(np.arange(len(self.words)), range(step, len(self.words), step))


class CommonNoise(Sampler):
    """Draws of a noise mechanism in which several words are moved by the same noise.

    What is said of one word, and bounds that hold for all at once (Bonferroni), do not need draws
    of different words to be independent. Means over words do, a little: so only ``sharing`` words
    share their noise. A choice after the noise is each word's own.
    """

    def __init__(self, mechanism: str, words: IntArray, rng: Randomness, sharing: int) -> None:
        super().__init__(mechanism, words, rng)
        self._sharing = sharing
        self._moved: MovedWords | None = None

    def batches(self, mechanism: WordMechanism, places: IntArray, draws: int) -> Iterator[IntArray]:
        """All draws for the words at these places, in batches of shape (places, count)."""
        assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - see sampler_for
        which = places // self._sharing
        for number, start in enumerate(range(0, draws, DRAWN_TOGETHER)):
            count = min(DRAWN_TOGETHER, draws - start)
            drawn = np.empty((len(places), count), dtype=np.int64)
            for group in np.unique(which):
                rows = np.flatnonzero(which == group)
                drawn[rows] = self._shared(mechanism, places[rows], int(group), number, count)
            yield drawn

    def _shared(
        self, mechanism: NoiseMechanism, places: IntArray, group: int, number: int, count: int
    ) -> IntArray:
        noise = mechanism.noise(Draws([(self._generator(group, number, NOISE), count)]))
        moved = self._words_moved(mechanism.space, places)
        ids, distances = moved.nearest(noise, mechanism.candidates)
        choices = [(self._generator(int(place), number, CHOICE), count) for place in places]
        flat = (ids.reshape(-1, ids.shape[2]), distances.reshape(-1, ids.shape[2]))
        return mechanism.choose(*flat, Draws(choices)).reshape(len(places), count)

    def _words_moved(self, space: WordSpace, places: IntArray) -> MovedWords:
        """Kept as long as the same words are asked for."""
        words, moved = self.words[places], self._moved
        if moved is None or moved.space is not space or not np.array_equal(moved.words, words):
            moved = self._moved = MovedWords(space, words)
        return moved

    def _generator(self, of: int, number: int, what: int) -> Generator:
        return self._streams.generator(of, number, Streams.WORDS, what)

    def groups(self, draws: int) -> list[IntArray]:
        """Words that share their noise."""
        places = np.arange(len(self.words))
        return np.split(places, range(self._sharing, len(places), self._sharing))


def usual_sharing(draws: int) -> int:
    """How many words may share their noise if means over words are to be told, too."""
    return max(1, min(SHARING, draws // DRAWS_FOR_EACH))


def sampler_for(
    mechanism: WordMechanism, words: IntArray, rng: Randomness, sharing: int
) -> Sampler:
    """What draws for words: with common noise where that can be done, and saves time."""
    numbers = len(mechanism.space.output) * mechanism.space.dimension
    sharing = min(sharing, MOST_NUMBERS // len(mechanism.space.output))
    if (
        sharing > 1
        and numbers >= WORTH_SHARING
        and isinstance(mechanism, NoiseMechanism)
        and mechanism.only_adds_noise
    ):
        return CommonNoise(mechanism.name, words, rng, sharing)
    return Sampler(mechanism.name, words, rng)
