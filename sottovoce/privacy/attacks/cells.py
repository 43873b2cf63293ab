"""The attack on ``once``: the N words of a position are the N nearest of one noisy point z.

So z lies in a cell: every one of the N words scores z.u - |u|^2 / 2 higher than every other word.
Before looking, z is about Gaussian: a word of the space plus noise. Cut off by the cell it is still
about Gaussian (``truncation.py``), and its mean is where the attacker believes z to be. The
guess is the word with the largest prior times noise density there.

That N words score higher than all others is put as a threshold, unknown and about Gaussian too,
that lies between: N half-spaces above and one below for each rival.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.privacy.attacks.target import Target
from sottovoce.privacy.attacks.truncation import truncated
from sottovoce.randomness import Draws
from sottovoce.threads import parallel_map, threads
from sottovoce.types import UNKNOWN, Float32Array, Float64Array, IntArray

RIVALS = 300
"""Other words, those that score highest, that hold the cell in its place."""
ROUNDS = (3, 8)
"""Sweeps: the first round finds z roughly, the second takes the rivals of where that is."""
CANDIDATES = 200
"""Words near z among which the guess is made."""
NOISE_DRAWS = 100
"""Draws for each dimension by which the covariance of the noise is estimated."""
DRAWN_AT_ONCE = 4096
RIDGE = 0.1


def cells(target: Target) -> IntArray:
    """The best guess at each position, from all its variants."""
    mechanism = target.mechanism
    assert isinstance(mechanism, NoiseMechanism)  # noqa: S101 - asked before
    beliefs = Beliefs.of(mechanism, noise_covariance(mechanism, target))
    guesses = np.full(len(target.ids), UNKNOWN)
    most = max((len(ids) for ids in target.ids), default=0)
    seen = [np.intersect1d(ids, beliefs.output) for ids in target.seen(most)]
    known = [place for place, ids in enumerate(seen) if len(ids)]

    def guess(place: int) -> int:
        return _guess(target, mechanism, beliefs.point(seen[place]))

    step = 4 * threads()
    for start in range(0, len(known), step):
        some = known[start : start + step]
        guesses[some] = parallel_map(guess, some)
        if target.progress:
            target.progress(start + len(some), len(known))
    return target.settled(guesses, most)


def _guess(target: Target, mechanism: NoiseMechanism, point: Float64Array) -> int:
    count = min(CANDIDATES, target.space.size)
    near = target.search.top(point[None].astype(np.float32), count)[0][0]
    density = mechanism.log_density(point - target.space.vectors[near])
    return int(near[np.argmax(density + target.prior(near))])


def noise_covariance(mechanism: NoiseMechanism, target: Target) -> Float64Array:
    """The second moments of the noise, from draws of it."""
    dimension = mechanism.space.dimension
    total = np.zeros((dimension, dimension))
    left = count = NOISE_DRAWS * dimension
    while left:
        some = mechanism.noise(Draws([(target.rng, min(left, DRAWN_AT_ONCE))]))
        total += some.T @ some
        left -= len(some)
    return total / count


def moments(vectors: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Mean and covariance of vectors, some rows at a time."""
    blocks = range(0, len(vectors), DRAWN_AT_ONCE)
    mean = vectors.mean(axis=0, dtype=np.float64)
    total = np.zeros((len(mean), len(mean)))
    for start in blocks:
        centred = vectors[start : start + DRAWN_AT_ONCE] - mean
        total += centred.T @ centred
    return mean, total / len(vectors)


@dataclass(frozen=True, repr=False)
class Beliefs:
    """What is believed of z before looking: mean + root @ x with x standard normal.

    ``slopes`` and ``levels`` give the scores of the words that may be released as functions of x.
    """

    mean: Float64Array
    root: Float64Array
    whitening: Float64Array
    slopes: Float32Array
    levels: Float64Array
    output: IntArray
    vectors: Float32Array

    @classmethod
    def of(cls, mechanism: NoiseMechanism, noise: Float64Array) -> Beliefs:
        """From the words that may be meant, those that may be released, and the noise."""
        space = mechanism.space
        mean, spread = moments(space.vectors)
        ridge = RIDGE * np.trace(spread) / space.dimension * np.eye(space.dimension)
        root = np.asarray(np.linalg.cholesky(spread + noise), dtype=np.float64)
        output = space.output.ids
        released = space.vectors if len(output) == space.size else space.vectors[output]
        slopes = released @ root.astype(np.float32)
        levels = released @ mean - np.einsum("ij,ij->i", released, released) / 2
        return cls(mean, root, np.linalg.inv(spread + ridge), slopes, levels, output, released)

    def point(self, words: IntArray) -> Float64Array:
        """Where z is believed to be, given its nearest words."""
        places = np.searchsorted(self.output, words)
        x = self._first(places)
        for sweeps in ROUNDS:
            x = self._within(places, x, sweeps)
        return np.asarray(self.mean + self.root @ x)

    def _first(self, places: IntArray) -> Float64Array:
        """The whitened centroid, made as long as such points are.

        Words chosen by their product with z have a mean that leans by the covariance times z.
        """
        lean = self.whitening @ (self.vectors[places].mean(axis=0) - self.mean)
        x = np.linalg.solve(self.root, lean)
        length = np.sqrt(x @ x)
        return np.asarray(x * (np.sqrt(len(x)) / length) if length > 0 else x)

    def _within(self, places: IntArray, x: Float64Array, sweeps: int) -> Float64Array:
        """The mean of x in the cell, among the rivals of a first guess."""
        scores = self.slopes @ x.astype(np.float32) + self.levels
        middle = scores[places].min()
        scores[places] = -np.inf
        rivals = min(RIVALS, len(scores) - len(places))
        others = np.argpartition(-scores, rivals - 1)[:rivals] if rivals else places[:0]
        chosen = np.concatenate([places, others])
        sign = np.where(np.arange(len(chosen)) < len(places), 1.0, -1.0)
        slopes = self.slopes[chosen].astype(np.float64)
        reach = np.sqrt((slopes**2).sum(axis=1).mean())
        normals = np.column_stack([slopes, np.full(len(chosen), -reach)])
        offsets = sign * (middle - self.levels[chosen])
        return truncated(sign[:, None] * normals, offsets, sweeps)[:-1]
