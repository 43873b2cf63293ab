"""Evidence of a release ``once``: the words of a place are the N nearest of one noisy point z.

A word u scores s_u(z) = u.z - |u|^2 / 2, the nearer the higher, and more where the mechanism has a
prior and u is popular. The N words shown score above a
threshold t and all others, the rivals, below it. Before looking, z is about Gaussian, a word of the
space plus noise: z = mean + root x with x standard normal. The threshold gets a wide Gaussian of
its own, the last coordinate of x. So each word is a half-space of x,

    sign_u ((root' u, -reach) . x - limit_u) > 0,    limit_u = |u|^2 / 2 - u.mean + middle,

and ``half_spaces.py`` finds the mean of x. Only rivals near the threshold matter, but which they
are is known only once z is known roughly: a first round takes the rivals of a first guess, the
second one those of the first's result. A word v is then as likely as noise from v to where z is
believed to be: -(z - v)' S^-1 (z - v) / 2, with S the covariance of the noise (made rounder where
it is no sphere, see ``_with_error``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.devices import device as device_in_use
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.covariances import moments, noise_covariance
from sottovoce.privacy.attacks.evidence import Evidence, all_seen
from sottovoce.privacy.attacks.half_spaces import FLOOR, cut_off
from sottovoce.privacy.attacks.one_point_gpu import PointsOnGpu
from sottovoce.privacy.attacks.pair_sums import same_words
from sottovoce.privacy.attacks.simulated_law import SimulatedLaw
from sottovoce.spaces.space import WordSpace
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress, count_up

ROUNDS = ((600, 2), (1000, 3))
"""Rivals and sweeps of each round. With 300 rivals the point is found visibly less well."""
SPARE_RIVALS = 64
"""Rivals scored again beyond those needed."""
PLACES_AT_A_TIME = 32
"""Places whose rivals are looked up in one matrix product."""
PLACES_ON_GPU = 256
"""The same on a GPU, where all of their steps are taken together; fewer in a large vocabulary."""
NUMBERS_ON_GPU = 1 << 27
"""In a table there (0.5 GiB), of which a handful is held at a time."""
ROWS_AT_A_TIME = 4096
RIDGE = 0.1
"""Added to the covariance of the words, relative to its mean, where it is inverted."""


@dataclass(frozen=True)
class Factors:
    """What a round found at a place: x, and the factors of words, for the next round."""

    x: Float32Array
    words: IntArray
    widths: Float32Array
    shifts: Float32Array
    middle: float
    reach: float


@dataclass(frozen=True, repr=False, eq=False)
class OnePoint(Evidence):
    """A Gaussian around the noisy point that the nearest words show.

    ``slopes`` and ``levels`` give, for the words that may be released, their scores as functions
    of x; ``first_guess`` turns the centroid of the words shown into a direction of x.
    """

    kind: ClassVar[str] = "one noisy point"
    reads_all_variants: ClassVar[bool] = True

    mechanism: NoiseMechanism
    precision: Float64Array
    mean: Float64Array
    root: Float64Array
    slopes: Float32Array
    levels: Float32Array
    center: Float32Array
    first_guess: Float32Array
    half_norms: Float32Array
    seed: int

    @classmethod
    def of(
        cls,
        mechanism: NoiseMechanism,
        *,
        rng: Generator,
        weights: Float64Array | None = None,
    ) -> OnePoint:
        """From the words that may be meant, those that may be released, and the noise.

        weights
            How likely each word of the space is to be meant; all alike without.
        """
        space = mechanism.space
        noise = noise_covariance(mechanism, rng)
        # z before looking: a word and noise.
        center, spread_of_all = moments(space.vectors)
        mean, spread = (
            (center, spread_of_all) if weights is None else moments(space.vectors, weights)
        )
        root = np.asarray(np.linalg.cholesky(spread + noise))
        # Scores of the words that may be released, as functions of x.
        released = _released_rows(space)
        slopes = released[:, :-1] @ root.astype(np.float32)
        levels = -released[:, -1] - released[:, :-1] @ mean.astype(np.float32)
        if mechanism.prior:  # Popular words have a head start.
            levels -= (mechanism.head_start * space.output.log_popularity).astype(np.float32)
        # Words chosen by their product with z have a mean that leans by the covariance times z.
        ridge = RIDGE * np.trace(spread_of_all) / space.dimension * np.eye(space.dimension)
        first_guess = np.linalg.solve(root, np.linalg.inv(spread_of_all + ridge))
        # v' S^-1 v / 2 of every word.
        precision = np.asarray(np.linalg.inv(_with_error(noise, spread)), dtype=np.float64)
        half_norms = np.empty(space.size, dtype=np.float32)
        for start in range(0, space.size, ROWS_AT_A_TIME):
            block = space.vectors[start : start + ROWS_AT_A_TIME].astype(np.float64)
            half_norms[start : start + len(block)] = 0.5 * ((block @ precision) * block).sum(axis=1)
        return cls(
            mechanism,
            precision,
            mean,
            root,
            slopes,
            levels,
            center.astype(np.float32),
            first_guess.astype(np.float32),
            half_norms,
            int(rng.integers(1 << 63)),
        )

    def log_likelihood(
        self, places: Sequence[IntArray], progress: Progress | None = None
    ) -> Float32Array:
        """-(z - v)' S^-1 (z - v) / 2 up to a constant, at the mean of z given the words seen.

        The words of a place are taken for all that were released there. One word alone is a plain
        draw of the mechanism, or was left in clear: the law of such draws knows more of it.
        """
        space = self.mechanism.space
        rows = np.zeros((len(places), space.size), dtype=np.float32)
        all_seen(self.mechanism, places)  # Refuses ids that are not in the space.
        distinct = np.array([len(np.unique(ids)) for ids in places], dtype=np.int64)
        shown, single = (
            (distinct > 1).nonzero()[0].tolist(),
            (distinct == 1).nonzero()[0].tolist(),
        )
        count = count_up(progress, len(shown) + len(single))
        if len(single):
            rows[single] = self._single_words.log_likelihood([places[place] for place in single])
            count(len(single))
        at_a_time = self._places_at_a_time
        for start in range(0, len(shown), at_a_time):
            block = shown[start : start + at_a_time]
            points = self.points([places[place] for place in block])
            pulls = np.stack([self.precision @ point for point in points]).astype(np.float32)
            likelihood = pulls @ space.vectors.T
            likelihood -= self.half_norms
            rows[block] = likelihood
            count(len(block))
        return rows

    @cached_property
    def _single_words(self) -> SimulatedLaw:
        """The law of a release of one word, which is the same for both kinds of release."""
        return SimulatedLaw.of(self.mechanism, rng=Generator(PCG64(self.seed)))

    def points(self, places: Sequence[IntArray]) -> Float64Array:
        """Where the noisy point of each place is believed to be, (places, dimension)."""
        output = self.mechanism.space.output.ids
        shown = [same_words(np.unique(ids), output)[1] for ids in places]
        settled = self.settled(shown, ROUNDS)
        points = [self.mean + self.root @ x for x in settled]
        return np.array(points, dtype=np.float64).reshape(len(places), len(self.mean))

    def settled(
        self, places: Sequence[IntArray], rounds: Sequence[tuple[int, int]]
    ) -> Float32Array:
        """The x of each place, given words shown there, as places in the output vocabulary.

        ``rounds``: rivals and sweeps of each.
        """
        at_a_time = self._places_at_a_time
        parts = [np.empty((0, len(self.mean)), dtype=np.float32)]
        for start in range(0, len(places), at_a_time):
            shown = places[start : start + at_a_time]
            guesses = np.stack([self.guess(words) for words in shown])
            if device_in_use() == "cuda":
                parts.append(self._on_gpu.settle(shown, guesses, rounds))
            else:
                parts.append(self._settled_block(shown, guesses, rounds))
        return np.concatenate(parts)

    def _settled_block(
        self,
        shown: Sequence[IntArray],
        x: Float32Array,
        rounds: Sequence[tuple[int, int]],
    ) -> Float32Array:
        factors: Sequence[Factors | None] = [None] * len(shown)
        for rivals, sweeps in rounds:
            scores = self.scores(x)
            settled = parallel_map(
                lambda round_of_place: self._settled(*round_of_place),
                [
                    (words, point, row, rivals, sweeps, before)
                    for words, point, row, before in zip(shown, x, scores, factors, strict=True)
                ],
            )
            x, factors = np.stack([place.x for place in settled]), settled
        return x

    def scores(self, x: Float32Array, words: IntArray | slice = slice(None)) -> Float32Array:
        """s_u of words that may be released, all or some, in one product, (places, words)."""
        scores = x @ self.slopes[words].T
        scores -= self.levels[words]
        return np.asarray(scores)

    @property
    def _places_at_a_time(self) -> int:
        if device_in_use() != "cuda":
            return PLACES_AT_A_TIME
        # A place has a row of scores of all words, and a matrix of its rivals.
        rivals = max(rivals for rivals, _ in ROUNDS)
        numbers = max(len(self.slopes), rivals * len(self.mean))
        return max(1, min(PLACES_ON_GPU, NUMBERS_ON_GPU // numbers))

    @cached_property
    def _on_gpu(self) -> PointsOnGpu:
        return PointsOnGpu(self.slopes, self.levels, self.mechanism.candidates)

    def guess(self, words: IntArray) -> Float32Array:
        """A first x: the whitened centroid, made as long as such points are."""
        output = self.mechanism.space.output.ids
        vectors = self.mechanism.space.vectors[output[words]]
        if not len(words):
            return np.zeros(len(self.mean), dtype=np.float32)
        x = self.first_guess @ (vectors.mean(axis=0) - self.center)
        length = np.sqrt(x @ x)
        return np.asarray(x * np.float32(np.sqrt(len(x)) / length) if length > 0 else x)

    def _settled(
        self,
        words: IntArray,
        x: Float32Array,
        scores: Float32Array,
        rivals: int,
        sweeps: int,
        before: Factors | None,
    ) -> Factors:
        """One round at one place: the rivals of x, then ``sweeps`` of matching."""
        both = np.concatenate([words, self._rivals(words, x, scores, rivals)])
        normals = np.empty((len(both), self.slopes.shape[1] + 1), dtype=np.float32)
        np.take(self.slopes, both, axis=0, out=normals[:, :-1], mode="clip")
        widths = np.full(len(both), FLOOR, dtype=np.float32)
        shifts = np.zeros(len(both), dtype=np.float32)
        if before is None:
            squares = np.einsum("ij,ij->i", normals[:, :-1], normals[:, :-1])
            lowest = self._scores(words if len(words) else both, x).min()
            middle, reach = float(lowest), float(np.sqrt(squares.mean()))
        else:
            # The factors of words that were there before are carried over.
            middle, reach = before.middle, before.reach
            order = np.argsort(before.words)
            at = np.searchsorted(before.words, both, sorter=order)
            at = order[np.minimum(at, len(order) - 1)]
            same = before.words[at] == both
            widths[same], shifts[same] = before.widths[at[same]], before.shifts[at[same]]
        normals[:, -1] = -reach
        limits = self.levels[both] + np.float32(middle)
        # Rivals lie on the other side.
        normals[len(words) :] *= -1
        limits[len(words) :] *= -1
        cut = cut_off(normals, limits, widths, shifts, sweeps)
        return Factors(cut.mean[:-1], both[cut.rows], cut.widths, cut.shifts, middle, reach)

    def _scores(self, words: IntArray, x: Float32Array) -> Float32Array:
        """The scores of a few words, each rounded alike whatever the others are."""
        return np.asarray(np.einsum("ij,j->i", self.slopes[words], x) - self.levels[words])

    def _rivals(
        self, words: IntArray, x: Float32Array, scores: Float32Array, count: int
    ) -> IntArray:
        """The words of highest scores that are not shown, and so must lie below the threshold.

        A mechanism that chooses among the k nearest words may show fewer than k: then the best
        rivals are taken for the rest of the k, and are no rivals. The given ``scores`` round by
        what else is in their block, so they only say which words to score again.
        """
        scores[words] = -np.inf
        unseen = max(0, self.mechanism.candidates - len(words))
        most = len(scores) - len(words)
        count, listed = min(count + unseen, most), min(count + unseen + SPARE_RIVALS, most)
        if not count:
            return words[:0]
        best = np.sort(np.argpartition(scores, len(scores) - listed)[len(scores) - listed :])
        order = np.argsort(-self._scores(best, x), kind="stable")
        return best[order[unseen:count]]


def _with_error(noise: Float64Array, spread: Float64Array) -> Float64Array:
    """The covariance of the noise, rounder, as far as z is not known exactly; spheres stay.

    Where z is believed to be is off in every direction, by about as much as z varies. Noise that
    hardly moves in some direction would turn that error into certainty about wrong words.
    """
    error = np.trace(noise + spread) / len(noise) * np.eye(len(noise))
    return np.asarray((noise + error) * (np.trace(noise) / np.trace(noise + error)))


def _released_rows(space: WordSpace) -> Float32Array:
    """Vectors of the words that may be released, with the column -|w|^2 / 2."""
    output = space.output.ids
    return space.folded if len(output) == space.size else space.folded[output]
