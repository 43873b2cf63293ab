"""The Vickrey mechanisms of Xu et al. (2021): sometimes the second nearest word wins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.mahalanobis import Mahalanobis
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import Draws
from sottovoce.types import Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    import torch

PAPER = (
    "Xu, Aggarwal, Feyisetan, Teissier: On a Utilitarian Approach to Privacy Preserving Text "
    "Generation, PrivateNLP 2021"
)
NO_MORE_PRIVATE = (
    "choosing among the nearest words adds no formal privacy to the noise; it trades relevance for "
    "fewer unchanged words, which come back as epsilon grows"
)


def rational_law(distances: Float64Array, weights: Float64Array) -> Float64Array:
    """p_i proportional to a_i / d_i; for a = (1 - t, t) the paper's formula.

    Where distances are zero the limit is taken: those words share the probability by weight.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(weights > 0, weights / distances, 0.0)
    certain = np.isinf(odds)
    odds = np.where(certain.any(axis=1, keepdims=True), np.where(certain, weights, 0.0), odds)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def exponential_law(distances: Float64Array, rates: Float64Array) -> Float64Array:
    """p_i proportional to exp(-t_i d_i)."""
    exponents = -rates * distances
    odds = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def rational_law_on_gpu(distances: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """``rational_law`` of tensors."""
    odds = (weights / distances).where(weights > 0, 0.0)
    certain = odds.isinf()
    limit = weights.expand_as(odds).where(certain, 0.0)
    odds = limit.where(certain.any(dim=1, keepdim=True), odds)
    return odds / odds.sum(dim=1, keepdim=True)


def exponential_law_on_gpu(distances: torch.Tensor, rates: torch.Tensor) -> torch.Tensor:
    """``exponential_law`` of tensors."""
    return (-rates * distances).softmax(dim=1)


@dataclass(frozen=True, repr=False, eq=False)
class Vickrey(NoiseMechanism):
    """Releases one of the k words nearest to the noisy point, by a law of their distances to it.

    The law sees the noisy point only, never the input word: that would void the guarantee.
    """

    paper: ClassVar[str] = PAPER
    takes_prior: ClassVar[bool] = False

    t: float = parameter(0.75, "weight of the second nearest word, 0 (as without) to 1 (always)")
    law: Literal["rational", "exponential"] = parameter(
        "rational", "p ~ weight / distance, or p ~ exp(-weight * distance)"
    )
    weights: tuple[float, ...] = parameter(
        (), "weights of the k nearest words, for example 0.2/0.5/0.3; replaces t"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.prior == 0, "vickrey chooses among the nearest words: it has no prior")
        require(0 <= self.t <= 1, f"t must be between 0 and 1, got {self.t}")
        require(
            self.law == "rational" or len(self.weights) > 1,
            "law=exponential needs weights, one rate for each candidate, for example weights=1/0",
        )
        require(
            all(np.isfinite(w) and w >= 0 for w in self.weights) and len(self.weights) != 1,
            "weights must be two or more numbers, none of them negative",
        )
        require(
            self.law == "exponential" or not self.weights or sum(self.weights) > 0,
            "at least one weight must be positive",
        )
        require(
            self.candidates <= len(self.space.output),
            f"vickrey chooses among {self.candidates} words, but the output vocabulary has only "
            f"{len(self.space.output)}",
        )

    @property
    def releases_nearest(self) -> bool:
        """No: sometimes the second."""
        return False

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the noise: the choice is post-processing."""
        return self.noise_guarantee.with_caveats(NO_MORE_PRIVATE, self._same_as_plain)

    @property
    def _same_as_plain(self) -> str:
        plain = self.name.removeprefix("vickrey-")
        return (
            f"release 'once' with {self.candidates} or more variants is that of {plain}: the words "
            "nearest to the noisy point are all released, whichever of them wins"
        )

    @property
    def candidates(self) -> int:
        """How many nearest words compete."""
        return len(self.weights) or 2

    @cached_property
    def _weights(self) -> Float64Array:
        return np.asarray(self.weights or (1 - self.t, self.t), dtype=np.float64)

    def probabilities(self, distances: Float64Array) -> Float64Array:
        """The chance of each candidate, given the distances (nearest first) to the noisy point."""
        law = rational_law if self.law == "rational" else exponential_law
        return law(np.asarray(distances, dtype=np.float64), self._weights)

    def settle(self, points: Float32Array, draws: Draws) -> IntArray:
        """One of the nearest words of each point."""
        return self.choose(*self.near(points, self.candidates), draws)

    def choose(self, ids: IntArray, distances: Float64Array, draws: Draws) -> IntArray:
        """The winner."""
        return ids[np.arange(len(ids)), self._winner(distances, draws)]

    def settle_many(self, points: Float32Array, k: int, draws: Draws) -> IntArray:
        """The winner first, then the nearest others; with k = 1 the mechanism itself.

        With k of at least ``candidates`` these are the k nearest words, as without the choice.
        """
        ids, distances = self.near(points, max(k, self.candidates))
        winner = self._winner(distances[:, : self.candidates], draws)
        place = np.arange(ids.shape[1])[None, :]
        order = np.argsort(np.where(place == winner[:, None], -1, place), axis=1, kind="stable")
        return np.take_along_axis(ids, order, axis=1)[:, :k]

    def arranged(
        self, ids: torch.Tensor, distances: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """The winner first, then the nearest others: ``settle_many`` on a GPU."""
        candidates = distances[:, : self.candidates]
        law = rational_law_on_gpu if self.law == "rational" else exponential_law_on_gpu
        weights = candidates.new_tensor(self._weights)
        cumulated = law(candidates, weights).cumsum(dim=1)
        beaten = (uniforms[:, None] * cumulated[:, -1:] >= cumulated).sum(dim=1)
        winner = beaten.clamp(max=self.candidates - 1)[:, None]
        place = beaten.new_tensor(range(ids.shape[1]))[None, :]
        # What stood before the winner moves one place back.
        source = place - (place <= winner).long()
        return ids.gather(1, source.where(place > 0, winner))

    def _winner(self, distances: Float64Array, draws: Draws) -> IntArray:
        cumulated = np.cumsum(self.probabilities(distances), axis=1)
        beaten = draws.uniform()[:, None] * cumulated[:, -1:] >= cumulated
        return np.asarray(np.minimum(beaten.sum(axis=1), self.candidates - 1))


@register
@dataclass(frozen=True, repr=False, eq=False)
class VickreyCMP(Vickrey, CMP):
    """Vickrey's choice after CMP's noise."""

    name: ClassVar[str] = "vickrey-cmp"
    summary: ClassVar[str] = "cmp's noise, then a draw between the two nearest words"
    paper: ClassVar[str] = PAPER


@register
@dataclass(frozen=True, repr=False, eq=False)
class VickreyMahalanobis(Vickrey, Mahalanobis):
    """Vickrey's choice after Mahalanobis noise."""

    name: ClassVar[str] = "vickrey-mahalanobis"
    summary: ClassVar[str] = "mahalanobis noise, then a draw between the two nearest words"
    paper: ClassVar[str] = PAPER
