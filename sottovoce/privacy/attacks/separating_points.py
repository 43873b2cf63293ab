"""Points that tell the words of a place from all others: a logistic regression for each place.

A word u scores slopes[u] . x - levels[u] at the noisy point that x stands for (``one_point.py``).
Words shown at a place score above a threshold, words that no place shows below it, and

    sum over words of log expit(sign_u (score_u - threshold) / width_u)  -  |x|^2 / 2

says how well a point x does that. Its maximum is sought by Newton steps with momentum, whose
curvature is the same everywhere, so that all places are moved by the same few matrix products. To
sort words this is as good as expectation propagation, and several times faster; as evidence of
what was meant it is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sottovoce.devices import device as device_in_use
from sottovoce.privacy.attacks.separating_points_gpu import SeparatingOnGpu
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, IntArray

SMOOTHING = 0.1
"""How much of the variance of a score is taken to be left once its point is found."""
PROBIT = 0.588
"""A logistic curve of this width is nearly the Gaussian one of width 1."""
NEAR_THRESHOLD = 300.0
"""So many words are taken to be near the threshold of a place: they make the curvature."""
STEPS = 20
"""Fewer find worse points; many more fit the words shown better, and words kept aside worse."""
SCORES_AT_A_TIME = 1 << 21


class Shown(NamedTuple):
    """What is known of one place, words as places in the output vocabulary.

    words
        Those that are shown there.
    unsure
        Those that may belong there or elsewhere; the words shown may be among them.
    nearest
        How many words are shown there in all, ``words`` and some of ``unsure``.
    guess
        Where x may be.
    """

    words: IntArray
    unsure: IntArray
    nearest: int
    guess: Float32Array


class SeparatingPoints:
    """Finds points for places, given the scores of all words as functions of x."""

    def __init__(self, slopes: Float32Array, levels: Float32Array) -> None:
        norms = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
        self._slopes, self._levels = slopes, levels
        self._widths = np.maximum(PROBIT * np.sqrt(SMOOTHING) * norms, np.finfo(np.float32).tiny)
        # The threshold is one more coordinate of x: it moves by ``reach`` for each unit.
        reach = np.sqrt(np.mean(norms**2))
        normals = np.column_stack([slopes, np.full(len(slopes), -reach)])
        self._normals = (normals / self._widths[:, None]).astype(np.float32)
        second_moment = self._normals.T @ self._normals / len(slopes)
        curvature = np.eye(len(second_moment)) + NEAR_THRESHOLD * second_moment
        self._step = np.linalg.inv(curvature).astype(np.float32)
        self._devices: dict[str, SeparatingOnGpu] = {}

    def of(self, places: Sequence[Shown]) -> Float32Array:
        """The x of each place, (places, dimension)."""
        if device_in_use() == "cuda":
            return self.on_device("cuda", places)
        at_a_time = max(1, SCORES_AT_A_TIME // len(self._slopes))
        blocks = [places[at : at + at_a_time] for at in range(0, len(places), at_a_time)]
        return np.concatenate(parallel_map(self._of_block, blocks))

    def on_device(self, name: str, places: Sequence[Shown]) -> Float32Array:
        """The same by torch."""
        tables = (self._slopes, self._levels, self._widths, self._normals, self._step)
        if name not in self._devices:
            self._devices[name] = SeparatingOnGpu(*tables, device=name)
        return self._devices[name].of(places, STEPS)

    def _of_block(self, places: Sequence[Shown]) -> Float32Array:
        guesses = np.stack([place.guess for place in places])
        scores = guesses @ self._slopes.T - self._levels
        # The threshold starts where the guess has as many words above it as are shown in all.
        lowest = [max(0, scores.shape[1] - place.nearest) for place in places]
        thresholds = [np.partition(row, at)[at] for row, at in zip(scores, lowest, strict=True)]
        limits = (self._levels + np.array(thresholds)[:, None]) / self._widths
        # 1 for words shown, 0 for others; what may be either has no weight.
        targets, weights = np.zeros_like(scores), np.ones_like(scores)
        for target, weight, place in zip(targets, weights, places, strict=True):
            weight[place.unsure] = 0.0
            target[place.words] = weight[place.words] = 1.0
        x = np.column_stack([guesses, np.zeros(len(places))]).astype(np.float32)
        moved = np.zeros_like(x)
        for step in range(STEPS):
            ahead = x + np.float32(step / (step + 3)) * moved
            residuals = targets - expit((ahead @ self._normals.T - limits).astype(np.float32))
            residuals *= weights
            uphill = residuals @ self._normals - ahead
            after = ahead + uphill @ self._step
            x, moved = after, after - x
        return x[:, :-1]
