"""Draws for words that are measured: each word with generators of its own, or with common noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

import numpy as np
from numpy.random import Generator

from sottovoce.mechanisms.base import ROWS_AT_A_TIME, WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import Draws, Randomness, Streams, is_seeded
from sottovoce.spaces.moved_words import MovedWords, Shifts
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float32Array, IntArray

DRAWN_TOGETHER = 128
"""Draws of a word that one generator gives."""
SHARING, DRAWS_FOR_EACH = 32, 30
"""Words that share their noise where means over words matter, and draws that each of them needs."""
WORTH_SHARING = 1 << 21
"""Numbers in the vectors of all words that may be released, below which sharing saves nothing."""
MOST_NUMBERS = 1 << 25
"""Numbers held for the words that share their noise, one for each word that may be released."""
MULTIPLIED_TOGETHER = 2
"""Generators whose noise is multiplied with all words at once."""
MOST_PRODUCTS = 1 << 26
"""Products that are kept for other epsilons (256 MiB)."""
FEW = 16
"""Draws that come first, by themselves: a word that comes back every time is known by them."""
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

    def reseeded(self, rng: Randomness) -> Self:
        """Other draws for the same words; what the words alone decide is made once for both."""
        other = copy(self)
        other._streams = Streams(rng, self._streams.label)
        return other

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

    def __init__(
        self, mechanism: str, words: IntArray, rng: Randomness, sharing: int, keeping: bool = False
    ) -> None:
        super().__init__(mechanism, words, rng)
        self._sharing, self._keeping = sharing, keeping
        self._moved: list[MovedWords] = []
        self._kept: dict[tuple[int, int], Shifts] = {}
        self._rooms: list[Float32Array] = []

    def batches(self, mechanism: WordMechanism, places: IntArray, draws: int) -> Iterator[IntArray]:
        """All draws for the words at these places, in batches of shape (places, count)."""
        assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - see sampler_for
        which = places // self._sharing
        groups = np.unique(which)
        rows = [np.flatnonzero(which == group) for group in groups]
        sharing = [
            self._shared(mechanism, int(group), places[of_group], draws)
            for group, of_group in zip(groups, rows, strict=True)
        ]
        for parts in zip(*sharing, strict=True):
            drawn = np.empty((len(places), parts[0].shape[1]), dtype=np.int64)
            for of_group, part in zip(rows, parts, strict=True):
                drawn[of_group] = part
            yield drawn

    def _shared(
        self, mechanism: NoiseMechanism, group: int, places: IntArray, draws: int
    ) -> Iterator[IntArray]:
        """All draws for words that share their noise, in batches."""
        counts = [min(DRAWN_TOGETHER, draws - at) for at in range(0, draws, DRAWN_TOGETHER)]
        numbers = range(len(counts))
        with self._lent_room(len(mechanism.space.output)) as room:
            for first in numbers[::MULTIPLIED_TOGETHER]:
                together = numbers[first : first + MULTIPLIED_TOGETHER]
                generators = [(self._generator(group, at, NOISE), counts[at]) for at in together]
                shifts = self._shifts((group, first), mechanism, Draws(generators), room)
                start = 0
                for number in together:
                    whole = shifts.part(slice(start, start + counts[number]))
                    # Few may already tell what is asked. A choice has one generator for all draws
                    # of a number, so that they cannot be cut in two.
                    few = FEW if number == 0 and mechanism.releases_nearest else 0
                    for part in (whole.part(slice(few)), whole.part(slice(few, None))):
                        if len(part.vectors):
                            yield self._moved_by(part, mechanism, places, number)
                    start += counts[number]

    @contextmanager
    def _lent_room(self, words: int) -> Iterator[Float32Array]:
        """Memory for products that are not kept, used again and again: new memory takes time."""
        fitting = [room for room in self._rooms if room.shape[1] == words]
        shape = (MULTIPLIED_TOGETHER * DRAWN_TOGETHER, words)
        self._rooms, room = fitting[1:], fitting[0] if fitting else np.empty(shape, np.float32)
        try:
            yield room
        finally:
            self._rooms.append(room)

    def reseeded(self, rng: Randomness) -> Self:
        """Other noise has other products."""
        other = super().reseeded(rng)
        other._kept, other._rooms = {}, []
        return other

    def _shifts(
        self, name: tuple[int, int], mechanism: NoiseMechanism, draws: Draws, room: Float32Array
    ) -> Shifts:
        """The noise, with products that were made for another epsilon where they are kept."""
        space, noise, kept = mechanism.space, mechanism.noise(draws), self._kept.get(name)
        scaled = kept.scaled_to(space, noise) if kept is not None else None
        if scaled is not None:
            return scaled
        held = sum(shifts.products.size for shifts in self._kept.values())
        has_room = held + len(noise) * len(space.output) <= MOST_PRODUCTS
        keep = self._keeping and name not in self._kept and has_room
        shifts = Shifts(space, noise, None if keep else room)
        if keep:
            self._kept[name] = shifts
        return shifts

    def _moved_by(
        self, shifts: Shifts, mechanism: NoiseMechanism, places: IntArray, number: int
    ) -> IntArray:
        """What is released for words that are moved by the same noise."""
        in_order = np.sort(places)
        moved = self._words_moved(mechanism.space, in_order)
        ids, distances = moved.nearest(shifts, mechanism.candidates)
        count = ids.shape[1]
        choices = [(self._generator(int(place), number, CHOICE), count) for place in in_order]
        flat = (ids.reshape(-1, ids.shape[2]), distances.reshape(-1, ids.shape[2]))
        released = mechanism.choose(*flat, Draws(choices)).reshape(len(places), count)
        return released[np.searchsorted(in_order, places)]

    def _words_moved(self, space: WordSpace, places: IntArray) -> MovedWords:
        """Kept as long as the same words are asked for, also of samplers with other seeds."""
        words = self.words[places]
        for moved in self._moved:
            if moved.space is space and np.array_equal(moved.words, words):
                return moved
        self._moved[:] = [MovedWords(space, words)]
        return self._moved[0]

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
    mechanism: WordMechanism, words: IntArray, rng: Randomness, sharing: int, keeping: bool = False
) -> Sampler:
    """What draws for words: with common noise where that can be done, and saves time.

    ``keeping``: whether it may keep what the same draws at other epsilons can use. A GPU that makes
    its own noise needs no common one; a seed decides the same words on every device.
    """
    numbers = len(mechanism.space.output) * mechanism.space.dimension
    sharing = min(sharing, MOST_NUMBERS // len(mechanism.space.output))
    if (
        sharing > 1
        and numbers >= WORTH_SHARING
        and isinstance(mechanism, NoiseMechanism)
        and mechanism.only_adds_noise
        and not mechanism.draws_on_gpu(secure=not is_seeded(rng))
    ):
        return CommonNoise(mechanism.name, words, rng, sharing, keeping)
    return Sampler(mechanism.name, words, rng)
