"""Evidence of fresh draws where no law is known: a conditional logit fitted on simulated draws.

Words score s_u(z) at a noisy point z, and the highest wins: a multinomial probit with some 10^4
alternatives, whose probabilities nobody can write down. Its logit counterpart is fitted instead,

    log P(y | w) = a . f(w, y) + b . g(y) - log Z(w),    Z(w) a sum over all released words,

by maximum likelihood, on draws that the attacker makes. The pair features f are the squared
distance, the distance, whether y is w and, for noise that is not spherical, the squared distance in
the shape of the noise. The word features g are |y|^2, |y|, the Mahalanobis length of y, and how far
its nearest words are: whatever the input, noise lands on words that lie far outside and alone. And
the log of its popularity, where the mechanism prefers popular words. What these do not explain is
counted: on many more draws, how much more often a word comes out than the law says, its surplus;
then the law is fitted once more, with the surplus as a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import softmax

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.covariances import moments, noise_covariance
from sottovoce.privacy.attacks.evidence import Evidence, seen_counts
from sottovoce.privacy.attacks.pair_sums import log_sums, same_words, squared_distances
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import with_half_norms
from sottovoce.threads import parallel_map, threads
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress, count_up

SIMULATED_WORDS, DRAWS = 300, 20
"""Words whose draws are simulated, and how many of each."""
COUNTED_WORDS, COUNTED_DRAWS, DRAWS_PER_RELEASED = 2000, 100_000, 20
"""How often words come out is counted on draws of so many words: in all so many for each word that
may be released, but no more than fit the first two."""
UNSEEN = 2.0
"""Added to both counts, those seen and those expected: rare words are taken as the law says."""
RANK_OFFSET = 20
"""Word number r of the space, which lists frequent words first, is simulated as 1 / (r + 20)."""
ALTERNATIVES = 40_000
"""Released words compared in the fit; of more, those drawn and a random part of the others."""
NEAREST, NEAREST_AMONG = 5, 4096
"""The mean distance to so many nearest words, among so many of the released ones."""
RIDGE = 0.1
"""Added to the covariance of the words, relative to its mean, where it is inverted."""
PENALTY = 1e-3
"""Of the squared coefficients: keeps them finite where draws leave no doubt."""
NEWTON_STEPS = 40
GOOD_ENOUGH = 1e-5
"""A gain in mean log-likelihood below which the fit ends."""
STARTS = (0.0, 2.0, 4.0, 8.0, 16.0)
"""Coefficients of the squared distance among which the fit begins at the best."""
WORDS_AT_A_TIME = 128
LAWS_AT_A_TIME = 512


@dataclass(frozen=True, repr=False, eq=False)
class Features:
    """What the law looks at, each feature scaled to about 1.

    ``of_words`` is (features, space.size). ``whitened`` are the vectors in the shape of the noise,
    where that is not a sphere.
    """

    space: WordSpace
    unit: np.float32
    of_words: Float32Array
    whitened: Float32Array | None

    @classmethod
    def of(cls, mechanism: WordMechanism, rng: Generator) -> Features:
        """Of all words of the mechanism's space."""
        space = mechanism.space
        squares = np.asarray(-2 * space.folded[:, -1])
        unit = max(squares.mean(), np.finfo(np.float32).tiny)
        features = [
            squares / unit,
            np.sqrt(squares / unit),
            _scaled(mahalanobis_lengths(space)),
            _scaled(distances_to_nearest(space)),
        ]
        if isinstance(mechanism, NoiseMechanism) and mechanism.prior:
            features.append(_log_popularity(space))
        return cls(space, np.float32(unit), np.stack(features), _whitened(mechanism, rng))

    def with_surplus(self, surplus: Float32Array) -> Features:
        """With one word feature more."""
        return replace(self, of_words=np.vstack([self.of_words, surplus]))

    def of_pairs(self, words: IntArray, outputs: IntArray) -> list[Float32Array]:
        """The pair features, each (words, outputs); ``outputs`` in ascending order."""
        squared = squared_distances(self.space.folded, words, outputs)
        squared /= self.unit
        same = np.zeros_like(squared)
        same[same_words(words, outputs)] = 1.0
        features = [squared, np.sqrt(squared), same]
        if self.whitened is not None:
            features.append(squared_distances(self.whitened, words, outputs))
        return features

    @property
    def pair_count(self) -> int:
        """How many pair features there are."""
        return 3 if self.whitened is None else 4


def _log_popularity(space: WordSpace) -> Float32Array:
    """Of every word that may be released; 0 for others, which never are."""
    popularity = np.zeros(space.size, dtype=np.float32)
    logs = space.output.log_popularity
    popularity[space.output.ids] = (logs - logs.mean()) / max(float(logs.std()), 1e-6)
    return popularity


def _scaled(feature: Float32Array) -> Float32Array:
    mean = feature.mean()
    return feature / mean if mean > 0 else feature


def mahalanobis_lengths(space: WordSpace) -> Float32Array:
    """(y - mean)' C^-1 (y - mean) of every word, with C the covariance of the words."""
    mean, covariance = moments(space.vectors)
    ridge = RIDGE * np.trace(covariance) / space.dimension * np.eye(space.dimension)
    # All words in one place have no shape; any scale will do.
    inverse = np.linalg.inv(covariance + ridge) if covariance.any() else np.zeros_like(covariance)
    lengths = np.empty(space.size, dtype=np.float32)
    for start in range(0, space.size, LAWS_AT_A_TIME):
        centered = space.vectors[start : start + LAWS_AT_A_TIME] - mean
        lengths[start : start + len(centered)] = ((centered @ inverse) * centered).sum(axis=1)
    return lengths


def distances_to_nearest(space: WordSpace) -> Float32Array:
    """The mean distance of each word to its nearest released words, among a part of these."""
    output = space.output.ids
    among = output[:: -(-len(output) // NEAREST_AMONG)]
    count = min(NEAREST, len(among) - 1)

    def part(start: int) -> Float32Array:
        words = np.arange(start, min(start + LAWS_AT_A_TIME, space.size))
        squared = squared_distances(space.folded, words, among)
        squared[same_words(words, among)] = np.inf
        nearest = np.partition(squared, count - 1, axis=1)[:, :count]
        return np.asarray(np.sqrt(nearest).mean(axis=1))

    if count < 1:
        return np.zeros(space.size, dtype=np.float32)
    return np.concatenate(parallel_map(part, range(0, space.size, LAWS_AT_A_TIME)))


def _whitened(mechanism: WordMechanism, rng: Generator) -> Float32Array | None:
    """The space, folded, in which the noise is a sphere of mean length 1; None if it is already."""
    if not isinstance(mechanism, NoiseMechanism):
        return None
    covariance = noise_covariance(mechanism, rng)
    size = len(covariance)
    sphere = np.trace(covariance) / size * np.eye(size)
    if mechanism.noise_covariance is not None and np.allclose(covariance, sphere):
        return None
    # S^-1 / d = root root', so |root' (w - y)|^2 is about 1 where y is as far as noise reaches.
    root = np.linalg.cholesky(np.linalg.inv(covariance) / size).astype(np.float32)
    return with_half_norms(mechanism.space.vectors @ root)


@dataclass(frozen=True, repr=False, eq=False)
class SimulatedLaw(Evidence):
    """Sums of log-probabilities by a law fitted on simulated draws.

    ``coefficients`` are those of the pair features, then those of the word features.
    """

    kind: ClassVar[str] = "simulated law"

    mechanism: WordMechanism
    features: Features
    coefficients: Float64Array
    progress: Progress | None = None

    @classmethod
    def of(
        cls,
        mechanism: WordMechanism,
        *,
        rng: Generator,
        progress: Progress | None = None,
    ) -> SimulatedLaw:
        """Fitted on draws of words that stand for those of a text."""
        words = words_like_those_of_texts(mechanism.space, SIMULATED_WORDS, rng)
        drawn = mechanism.sample(words, DRAWS, rng).T
        features = Features.of(mechanism, rng)
        first = cls(mechanism, features, Fit(features, words, drawn, rng).coefficients())
        features = features.with_surplus(first.surplus(rng))
        return cls(mechanism, features, Fit(features, words, drawn, rng).coefficients(), progress)

    def surplus(self, rng: Generator) -> Float32Array:
        """The log of how much more often each word comes out than this law says; 0 is as often."""
        space, output = self.mechanism.space, self.mechanism.space.output.ids
        words = words_like_those_of_texts(space, COUNTED_WORDS, rng)
        draws = -(-min(COUNTED_DRAWS, DRAWS_PER_RELEASED * len(output)) // len(words))
        released = self.mechanism.sample(words, draws, rng)
        seen = np.bincount(released.ravel(), minlength=space.size)[output]

        def expected(start: int) -> Float64Array:
            scores = self._pair_scores(words[start : start + WORDS_AT_A_TIME], output)
            scores += self._word_scores[output]
            chances = softmax(scores, axis=1)
            return np.asarray(draws * chances.sum(axis=0, dtype=np.float64))

        blocks = parallel_map(expected, range(0, len(words), WORDS_AT_A_TIME))
        surplus = np.zeros(space.size, dtype=np.float32)
        surplus[output] = np.log((seen + UNSEEN) / (sum(blocks) + UNSEEN))
        return surplus

    def log_likelihood(
        self, places: Sequence[IntArray], progress: Progress | None = None
    ) -> Float32Array:
        """Blocks of words, each against all words seen at any of the places."""
        size = self.mechanism.space.size
        rows = np.zeros((len(places), size), dtype=np.float32)
        counts, outputs = seen_counts(self.mechanism, places)
        if not len(outputs):
            return rows
        normalizers = self._log_normalizers  # Made once, before threads ask for it.

        def fill(start: int) -> int:
            words = np.arange(start, min(start + LAWS_AT_A_TIME, size))
            rows[:, words] = counts @ self.law(words, outputs, normalizers[words]).T
            return len(words)

        starts, count = range(0, size, LAWS_AT_A_TIME), count_up(progress, size)
        for first in range(0, len(starts), 4 * threads()):
            count(sum(parallel_map(fill, starts[first : first + 4 * threads()])))
        return rows

    def log_probabilities(self, words: IntArray) -> Float32Array:
        """The fitted law of some words over the output vocabulary, (words, released words)."""
        return self.law(words, self.mechanism.space.output.ids, self._log_normalizers[words])

    def law(self, words: IntArray, outputs: IntArray, normalizers: Float64Array) -> Float32Array:
        """The log of P(y | w), (words, outputs)."""
        scores = self._pair_scores(words, outputs)
        scores += self._word_scores[outputs]
        scores -= normalizers[:, None].astype(np.float32)
        return scores

    def _pair_scores(self, words: IntArray, outputs: IntArray) -> Float32Array:
        """The sum a . f(w, y)."""
        return weighted(self.features.of_pairs(words, outputs), self.coefficients)

    @cached_property
    def _word_scores(self) -> Float32Array:
        """The sum b . g(y) of every word."""
        coefficients = self.coefficients[self.features.pair_count :].astype(np.float32)
        return np.asarray(coefficients @ self.features.of_words)

    @cached_property
    def _log_normalizers(self) -> Float64Array:
        """The log of Z(w) of every word, from one pass over all pairs."""
        output = self.mechanism.space.output.ids
        return log_sums(
            self.mechanism.space.size,
            output,
            self._pair_scores,
            self._word_scores[output],
            self.progress,
        )


def words_like_those_of_texts(space: WordSpace, count: int, rng: Generator) -> IntArray:
    """Random words, frequent ones more often."""
    chances = 1 / (np.arange(space.size) + RANK_OFFSET)
    return rng.choice(space.size, count, p=chances / chances.sum())


def weighted(features: list[Float32Array], coefficients: Float64Array) -> Float32Array:
    """The sum of pair features, each by its coefficient; more coefficients may follow."""
    scores = features[0] * np.float32(coefficients[0])
    for feature, coefficient in zip(features[1:], coefficients[1:], strict=False):
        scores += feature * np.float32(coefficient)
    return scores


class Fit:
    """Maximum likelihood by Newton's method; the log-likelihood is concave."""

    def __init__(
        self, features: Features, words: IntArray, drawn: IntArray, rng: Generator
    ) -> None:
        self.alternatives, self.log_weights = self._alternatives(
            features.space.output.ids, words, drawn, rng
        )
        self.of_pairs = features.of_pairs(words, self.alternatives)
        self.of_words = features.of_words[:, self.alternatives]
        # Where in the arrays the draws are, and the mean of each feature over them.
        columns = np.searchsorted(self.alternatives, drawn)
        rows = np.arange(len(words))[:, None]
        self.observed = np.array(
            [
                *(feature[rows, columns].mean(dtype=np.float64) for feature in self.of_pairs),
                *(feature[columns].mean(dtype=np.float64) for feature in self.of_words),
            ]
        )

    @staticmethod
    def _alternatives(
        output: IntArray, words: IntArray, drawn: IntArray, rng: Generator
    ) -> tuple[IntArray, Float32Array]:
        """Released words, ascending, and the log of how many words each of them stands for."""
        if len(output) <= ALTERNATIVES:
            return output, np.zeros(len(output), dtype=np.float32)
        # Whatever was drawn, or may come back, counts as itself; the others stand for the rest.
        certain = np.intersect1d(np.union1d(words, drawn), output)
        others = np.setdiff1d(output, certain)
        part = rng.choice(others, ALTERNATIVES, replace=False)
        alternatives = np.union1d(certain, part)
        share = np.log(len(others) / len(part))
        return alternatives, np.where(np.isin(alternatives, certain), 0.0, share).astype(np.float32)

    def coefficients(self) -> Float64Array:
        """Newton steps, halved until they gain, from the best exp(-a |w - y|^2)."""
        size = len(self.observed)
        starts = [np.array([-start, *np.zeros(size - 1)]) for start in STARTS]
        best = min(starts, key=self.loss)
        loss, gradient, hessian = self.derivatives(best)
        for _ in range(NEWTON_STEPS):
            step = np.linalg.solve(hessian, gradient)
            length, slope = 1.0, float(gradient @ step)
            while length > 1e-4 and self.loss(best - length * step) > loss - 1e-4 * length * slope:
                length /= 2
            best = best - length * step
            before = loss
            loss, gradient, hessian = self.derivatives(best)
            if before - loss < GOOD_ENOUGH:
                break
        return best

    def loss(self, coefficients: Float64Array) -> float:
        """The mean negative log-likelihood of a draw, with the penalty."""
        log_z = 0.0
        for start in range(0, len(self.of_pairs[0]), WORDS_AT_A_TIME):
            odds, top = self._odds(coefficients, slice(start, start + WORDS_AT_A_TIME))
            log_z += float((np.log(odds.sum(axis=1, dtype=np.float64)) + top).sum())
        return self._loss(coefficients, log_z)

    def _loss(self, coefficients: Float64Array, log_z: float) -> float:
        penalty = 0.5 * PENALTY * float(coefficients @ coefficients)
        return log_z / len(self.of_pairs[0]) - float(coefficients @ self.observed) + penalty

    def _odds(self, coefficients: Float64Array, rows: slice) -> tuple[Float32Array, Float32Array]:
        """exp(scores - top) of some words, (words, alternatives), and the top score of each."""
        pairs = [feature[rows] for feature in self.of_pairs]
        scores = weighted(pairs, coefficients)
        scores += coefficients[len(pairs) :].astype(np.float32) @ self.of_words + self.log_weights
        top = scores.max(axis=1)
        scores -= top[:, None]
        return np.exp(scores, out=scores), top

    def derivatives(self, coefficients: Float64Array) -> tuple[float, Float64Array, Float64Array]:
        """The loss, its gradient and its Hessian: moments of the features under the law."""
        size, pairs, words = len(self.observed), len(self.of_pairs), len(self.of_pairs[0])
        log_z, mean, covariance = 0.0, np.zeros(size), np.zeros((size, size))
        for start in range(0, words, WORDS_AT_A_TIME):
            rows = slice(start, start + WORDS_AT_A_TIME)
            law, top = self._odds(coefficients, rows)
            total = law.sum(axis=1, dtype=np.float64)
            log_z += float((np.log(total) + top).sum())
            law /= total[:, None].astype(np.float32)
            mixed = [law * feature[rows] for feature in self.of_pairs]
            # First moments of each word, (features, words).
            first = np.concatenate(
                [np.stack([part.sum(axis=1) for part in mixed]), self.of_words @ law.T]
            ).astype(np.float64)
            # Second moments, summed over the words.
            second = np.zeros((size, size))
            for i, part in enumerate(mixed):
                for j in range(i, pairs):
                    second[i, j] = second[j, i] = np.vdot(part, self.of_pairs[j][rows])
                second[i, pairs:] = second[pairs:, i] = self.of_words @ part.sum(axis=0)
            second[pairs:, pairs:] = (self.of_words * law.sum(axis=0)) @ self.of_words.T
            mean += first.sum(axis=1)
            covariance += second - first @ first.T
        gradient = mean / words - self.observed + PENALTY * coefficients
        return (
            self._loss(coefficients, log_z),
            gradient,
            covariance / words + PENALTY * np.eye(size),
        )
