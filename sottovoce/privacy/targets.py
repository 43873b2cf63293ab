"""Targets that every word must keep, and judges that say which words do not.

Where a mechanism has a law the judge is exact. Otherwise it counts draws, and a word passes if the
confidence bounds of all words together keep the targets. Every epsilon is judged on the same
noise, scaled, so that two epsilons are compared on the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.plausible_deniability import (
    ETA,
    Deniability,
    check_eta,
    exact_support,
    joint_risk,
    laws,
    unproven,
)
from sottovoce.privacy.word_draws import Sampler
from sottovoce.statistics import at_most
from sottovoce.threads import single_threaded_blas
from sottovoce.types import IntArray

TOGETHER = 16
"""Sampled words judged at a time: the first that fails ends it."""
ROUNDING = 1e-9
COMFORT = 4
"""More draws to advise than the fewest that could do, as a factor."""

Passed: TypeAlias = Callable[[int], None]


@dataclass(frozen=True)
class Targets:
    """For every word, N_w is at most ``max_unchanged``, and S_w(eta) at least ``min_support``."""

    max_unchanged: float = 1.0
    min_support: int = 1
    eta: float = ETA

    def __post_init__(self) -> None:
        if not 0 <= self.max_unchanged <= 1:
            raise UsageError("max-unchanged is a probability, between 0 and 1")
        whole = isinstance(self.min_support, int | np.integer)
        if isinstance(self.min_support, bool) or not whole or self.min_support < 1:
            raise UsageError("min-support is a whole number of words, 1 or more")
        check_eta(self.eta)
        if self.max_unchanged == 1 and self.min_support == 1:
            raise UsageError(
                "any epsilon keeps these targets: give max-unchanged below 1 (such as 0.05), "
                "min-support above 1 (such as 300), or both"
            )

    def broken(self, measured: Deniability) -> IntArray:
        """Places of the words that may break a target: exactly, or by bounds that hold together."""
        returns = measured.unchanged_bound > self.max_unchanged + ROUNDING
        return np.flatnonzero(returns | (measured.support_bound < self.min_support))

    def alone(self) -> list[Targets]:
        """Each of the two by itself, where it asks for anything."""
        single = [replace(self, min_support=1)] if self.max_unchanged < 1 else []
        return single + ([replace(self, max_unchanged=1.0)] if self.min_support > 1 else [])

    def limits(self, draws: int, words: int) -> tuple[int, int]:
        """How often a word may come back, and how many different words it needs, in the draws.

        The first is negative if so few draws cannot show that the target is kept.
        """
        risk = joint_risk(words)
        bounds = at_most(np.arange(draws + 1), draws, risk)
        returned = int((bounds <= self.max_unchanged + ROUNDING).sum()) - 1
        if self.min_support == 1:
            return returned, 1
        return returned, self.min_support + unproven(draws, self.eta, risk)

    def check_draws(self, draws: int, words: int) -> None:
        """Refuse so few draws that they could not show, for so many words, what is asked."""
        if draws < 1:
            raise UsageError("at least one draw a word is needed")
        most, least = self.limits(draws, words)
        if most < 0 and self.max_unchanged == 0:
            raise UsageError(
                "no number of draws shows that a word never comes back: set max-unchanged above 0"
            )
        if most < 0:
            fewest = math.ceil(math.log(joint_risk(words)) / math.log1p(-self.max_unchanged))
            raise UsageError(
                f"{draws} draws a word cannot show that max-unchanged is kept: give --draws "
                f"{COMFORT * fewest} (with fewer than {fewest} it is impossible)"
            )
        if least > draws:
            raise UsageError(
                f"{draws} draws a word cannot show that min-support is kept: give --draws "
                f"{COMFORT * self.min_support}"
            )


class Judge(Protocol):
    """Says at an epsilon which words break a target."""

    def failing(self, epsilon: float, places: IntArray) -> IntArray:
        """Places of such words, the first found; none if all words at ``places`` pass."""


class LawJudge:
    """Judges by the exact law."""

    def __init__(
        self, mechanism: WordMechanism, words: IntArray, targets: Targets, passed: Passed
    ) -> None:
        self.mechanism, self.words, self.targets, self.passed = mechanism, words, targets, passed

    def failing(self, epsilon: float, places: IntArray) -> IntArray:
        done, targets = 0, self.targets
        with single_threaded_blas():
            tried = replace(self.mechanism, epsilon=epsilon)
            for block, chances in laws(tried, self.words[places]):
                unchanged = chances[np.arange(len(block)), block]
                bad = unchanged > targets.max_unchanged + ROUNDING
                if not bad.any() and targets.min_support > 1:
                    bad = exact_support(chances, targets.eta) < targets.min_support
                if bad.any():
                    return places[done + np.flatnonzero(bad)]
                done += len(block)
                self.passed(len(block))
        return places[:0]


class DrawsJudge:
    """Judges by counting draws, and stops when no further draw could change the verdict."""

    def __init__(
        self,
        mechanism: WordMechanism,
        words: IntArray,
        targets: Targets,
        passed: Passed,
        draws: int,
        sampler: Sampler,
    ) -> None:
        self.mechanism, self.words, self.draws, self.passed = mechanism, words, draws, passed
        self.most_returned, self.least_distinct = targets.limits(draws, len(words))
        self.sampler = sampler

    def failing(self, epsilon: float, places: IntArray) -> IntArray:
        tried = replace(self.mechanism, epsilon=epsilon)
        for start in range(0, len(places), TOGETHER):
            block = places[start : start + TOGETHER]
            bad = self._bad(tried, block)
            if len(bad):
                return bad
            self.passed(len(block))
        return places[:0]

    def _bad(self, mechanism: WordMechanism, places: IntArray) -> IntArray:
        returned = np.zeros(len(places), dtype=np.int64)
        seen = np.empty((len(places), 0), dtype=np.int64)
        for batch in self.sampler.batches(mechanism, places, self.draws):
            returned += (batch == self.words[places, None]).sum(axis=1)
            seen = np.sort(np.concatenate([seen, batch], axis=1), axis=1)
            distinct = 1 + (np.diff(seen, axis=1) > 0).sum(axis=1)
            left = self.draws - seen.shape[1]
            bad = (returned > self.most_returned) | (distinct + left < self.least_distinct)
            if bad.any():
                return places[np.flatnonzero(bad)]
        return places[:0]
