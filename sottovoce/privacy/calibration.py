"""Find the largest epsilon at which every word meets the targets.

Search on the worst words, confirm all words on new draws, and report the result on a third,
independent set of draws: confirming goes down until the new draws agree, so that they are no longer
independent of the answer. All epsilons are tried on the same noise, scaled. No mechanism needs to
be monotone: smaller epsilons are measured too.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.privacy.plausible_deniability import (
    DRAWS,
    Deniability,
    deniability,
    laws,
    word_mechanism,
)
from sottovoce.privacy.targets import DrawsJudge, Judge, LawJudge, Targets
from sottovoce.privacy.word_draws import Sampler, sampler_for
from sottovoce.privacy.word_samples import nearest_others, sample_words
from sottovoce.randomness import as_seed, is_seeded
from sottovoce.types import IntArray, Progress

FINENESS = 1.01
"""How close the search comes to an epsilon that fails."""
DIGITS = 3
BACK = 0.97
"""What epsilon is multiplied by where fresh draws do not confirm it."""
SMALLER = (0.75, 0.5, 0.25)
"""Smaller epsilons at which the targets are checked too, as shares of the answer."""
CRITICAL = 16
"""Words that a search by sampling starts with: those farthest from their neighbours."""
LARGEST, SMALLEST_EXACT, SMALLEST_SAMPLED = 14, -10, -3
"""Powers of 2 tried, times one over a typical distance where epsilon is per unit of distance."""


@dataclass(frozen=True)
class Check:
    """The targets at one epsilon: whether they are kept, and the worst bounds of any word."""

    epsilon: float
    kept: bool
    unchanged: float
    support: int


@dataclass(frozen=True, repr=False)
class Calibration:
    """The answer: ``measured`` is what the mechanism does at ``epsilon``.

    Where that is sampled, it is measured once more, on draws that had no part in the answer, and
    reported whatever they say: ``kept`` tells whether they keep the targets, too.
    """

    targets: Targets
    epsilon: float
    limited: bool
    """False if no larger epsilon broke the targets; then ``epsilon`` is the largest tried."""
    measured: Deniability
    kept: bool
    smaller: tuple[Check, ...]
    """Checks below ``epsilon``: a mechanism need not keep at each what it keeps at one."""
    seeded: bool

    @property
    def mechanism(self) -> WordMechanism:
        return self.measured.mechanism

    def to_dict(self) -> dict[str, Any]:
        measured = self.measured.to_dict()
        return {
            "epsilon": self.epsilon,
            "mechanism": self.mechanism.spec,
            "targets": asdict(self.targets),
            "limited": self.limited,
            "kept": self.kept,
            "words": len(measured.pop("words")),
            "seeded": self.seeded,
            "measured": measured,
            "smaller": [asdict(check) for check in self.smaller],
        }


def calibrate(
    mechanism: Mechanism,
    targets: Targets,
    words: IntArray | None = None,
    *,
    draws: int = DRAWS,
    rng: int | SeedSequence | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """The largest epsilon at which every word keeps the targets, or can be shown to by the draws.

    An exact answer is right to within 1 % and three digits. A sampled one is on the safe side,
    and another seed may give another one: the more draws, the less.
    The mechanism's own epsilon does not matter. What it costs to use the answer is measured by
    :func:`sottovoce.privacy.costs.measure_cost`.
    """
    mechanism = word_mechanism(mechanism)
    ids = sample_words(mechanism.space) if words is None else mechanism.checked(words)
    return _Calibrator(mechanism, targets, ids, draws, rng, progress).run()


class _Calibrator:
    def __init__(
        self,
        mechanism: WordMechanism,
        targets: Targets,
        words: IntArray,
        draws: int,
        rng: int | SeedSequence | None,
        progress: Progress | None,
    ) -> None:
        self.mechanism, self.targets, self.words, self.draws = mechanism, targets, words, draws
        self.exact = mechanism.has_law
        self.seeded = is_seeded(rng) and not self.exact
        # The same noise serves every epsilon, so even a secure run has seeds, which nobody knows.
        root = SeedSequence(secrets.randbits(128)) if rng is None else as_seed(rng)
        self.search_seed, self.fresh_seed, self.last_seed = (
            SeedSequence(root.entropy, spawn_key=(*root.spawn_key, purpose)) for purpose in range(3)
        )
        # All words may share all their noise: each is judged by its own draws.
        self.fresh = sampler_for(mechanism, words, self.fresh_seed, len(words), keeping=True)
        self.meter = _Meter(len(words), progress)
        self.nearest = nearest_others(mechanism.space, words, [1])[1][:, 0]
        self.grid = self._grid()

    def run(self) -> Calibration:
        """Search, confirm, look below."""
        self._check_possible()
        alone = np.argsort(-self.nearest, kind="stable")
        epsilon, limited, measured = self._confirmed(alone if self.exact else alone[:CRITICAL])
        below = [epsilon * share for share in SMALLER] if limited else self.grid[2::3]
        self.meter.expect(len(below))
        checks = tuple(self._check(_round_down(smaller)) for smaller in below)
        if not self.exact:
            self.meter.expect(1)
            measured = self._measure(epsilon, rng=self.last_seed)
        kept = not len(self.targets.broken(measured))
        measured = replace(measured, seeded=self.seeded)
        return Calibration(self.targets, epsilon, limited, measured, kept, checks, self.seeded)

    def _confirmed(self, critical: IntArray) -> tuple[float, bool, Deniability]:
        """An epsilon that all words pass on fresh draws, and whether a larger one fails."""
        search = self.fresh.reseeded(self.search_seed)
        judge, fresh = self._judge(search), self._judge(self.fresh)
        ceiling, limited = math.inf, False
        while True:
            proposed = _largest(judge, self.grid, critical)
            if proposed is None:
                raise UsageError(self._why_not())
            epsilon = _round_down(min(proposed[0], ceiling))
            limited |= proposed[1]
            while len(fresh.failing(epsilon, critical)):
                epsilon, limited = _round_down(epsilon * BACK), True
                if epsilon < self.grid[-1]:
                    raise UsageError(self._why_not())
            self.meter.expect(1)
            measured = self._measure(epsilon)
            broken = self.targets.broken(measured)
            if not len(broken):
                return epsilon, limited, measured
            critical, ceiling, limited = np.union1d(broken, critical), epsilon * BACK, True

    def _judge(self, sampler: Sampler, targets: Targets | None = None) -> Judge:
        of_words = self.mechanism, self.words, targets or self.targets, self.meter.advance
        return LawJudge(*of_words) if self.exact else DrawsJudge(*of_words, self.draws, sampler)

    def _measure(self, epsilon: float, rng: SeedSequence | None = None) -> Deniability:
        """On the draws of the fresh judge; or on those of a seed, also for means over words."""
        return deniability(
            replace(self.mechanism, epsilon=epsilon),
            self.words,
            eta=self.targets.eta,
            draws=self.draws,
            rng=rng,
            sampler=self.fresh if rng is None else None,
            progress=self.meter.within,
        )

    def _check(self, epsilon: float) -> Check:
        measured = self._measure(epsilon)
        worst = float(measured.unchanged_bound.max()), int(measured.support_bound.min())
        return Check(epsilon, not len(self.targets.broken(measured)), *worst)

    def _grid(self) -> list[float]:
        """Epsilons to try, from above: each half of the one before."""
        unit = 1.0
        if self.mechanism.epsilon_per_distance:
            near = self.nearest[(self.nearest > 0) & np.isfinite(self.nearest)]
            unit = 1 / float(np.median(near)) if len(near) else 1.0
        smallest = SMALLEST_EXACT if self.exact else SMALLEST_SAMPLED
        return [unit * 2.0**power for power in range(LARGEST, smallest - 1, -1)]

    def _check_possible(self) -> None:
        """Refuse what no epsilon can keep, or what so many draws could not show."""
        possible = len(self.mechanism.space.output)
        if self.exact:
            flattest = replace(self.mechanism, epsilon=self.grid[-1])
            possible = min(
                int((chances > 0).sum(axis=1).min()) for _, chances in laws(flattest, self.words)
            )
        if self.targets.min_support > possible:
            raise UsageError(
                f"min-support cannot be kept at any epsilon: there are words for which "
                f"{self.mechanism.name} can release no more than {possible} different words. Ask "
                f"for at most {possible}{self._larger_box()}"
            )
        if not self.exact:
            self.targets.check_draws(self.draws, len(self.words))

    def _why_not(self) -> str:
        """Which target no epsilon keeps, and what is the best that can be had."""
        alone, everyone = self.targets.alone(), np.arange(len(self.words))
        for target in alone:
            judge = self._judge(self.fresh.reseeded(self.search_seed), target)
            if len(alone) == 1 or _largest(judge, self.grid, everyone) is None:
                best = self._measure(self.grid[-1])
                if target.max_unchanged < 1:
                    bound = best.unchanged_bound.max()
                    name, most = "max-unchanged", f"may come back {bound:.5f} of the time"
                else:
                    bound = best.support_bound.min()
                    name, most = "min-support", f"is sure of {bound} substitutes only"
                return (
                    f"{name} cannot be kept: even at epsilon {self.grid[-1]:.3g} the worst of the "
                    f"{len(self.words)} words {most}. Ask for less, or look at other words "
                    f"(--words){self._larger_box()}"
                )
        return (
            "each target can be kept, but no epsilon that was tried keeps both: ask for less of "
            "one of them"
        )

    def _larger_box(self) -> str:
        size = self.mechanism.box_size
        return f", or make its box larger (--set {size}=…)" if size else ""


def _largest(judge: Judge, grid: Sequence[float], words: IntArray) -> tuple[float, bool] | None:
    """The largest epsilon that none of the words fails, and whether a larger one was failed.

    From above until all pass, so that a mechanism which is not monotone does not mislead; then
    bisection.
    """
    above, order = math.inf, words
    for epsilon in grid:
        failed = judge.failing(epsilon, order)
        if not len(failed):
            break
        above, order = epsilon, np.concatenate([failed, np.setdiff1d(order, failed)])
    else:
        return None
    if math.isinf(above):
        return epsilon, False
    low, high = epsilon, above
    while high > low * FINENESS:
        middle = math.sqrt(low * high)
        if len(judge.failing(middle, order)):
            high = middle
        else:
            low = middle
    return low, True


def _round_down(number: float) -> float:
    """The number with three digits, never more than it is."""
    step = 10.0 ** (math.floor(math.log10(number)) - DIGITS + 1)
    return float(f"{math.floor(number / step * (1 + 1e-12)) * step:.{DIGITS}g}")


class _Meter:
    """Progress, counted in words measured; nobody knows beforehand how many a search takes."""

    def __init__(self, words: int, progress: Progress | None) -> None:
        self.words, self.progress = words, progress
        self.before, self.total = 0, (1 + len(SMALLER)) * words

    def expect(self, measurements: int) -> None:
        """So many measurements of all words are still to come."""
        self.total = self.before + measurements * self.words

    def advance(self, words: int) -> None:
        """Words passed in a search."""
        self.total += words
        self.before += words
        self.within(0, self.words)

    def within(self, done: int, total: int) -> None:
        """Where a measurement of all words is."""
        if self.progress is not None:
            self.progress(self.before + done, self.total)
        if done == total:
            self.before += done
