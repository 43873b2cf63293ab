"""cover-subjects: a run of searches on one subject leaves with others that run along.

The pool is cut into subjects in public (``sottovoce.subjects``). The subject of a text's string is
hidden among others by the k-subset law of ``subsets.py``, which is drawn once for a subject if
draws are remembered. Of each subject in the set one string leaves: of the text's own subject the
string that stands for the text, of any other the one at the same place of its public order. So a
run of searches that stays in one corner of its subject has decoys that stay in a corner of theirs.
Proofs are in ``docs/cover-law.md``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from sottovoce.guarantees import SUBJECT, Guarantee
from sottovoce.mechanisms.base import parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.company import Company
from sottovoce.mechanisms.cover import ONLY_THE_SET, PRIORS, PUBLIC_POOL, UNIFORM_SHARE, Cover
from sottovoce.mechanisms.subsets import SubsetLaw
from sottovoce.randomness import Draws, keyed_generator
from sottovoce.types import Float64Array, IntArray

STRINGS_A_SUBJECT = 50
MOST_SUBJECTS = 5000
"""As many as a pool is cut into unless more are asked for: it takes a minute or so, once."""

INSIDE_A_SUBJECT = (
    "only the subject is hidden, not which string of it is meant; and the strings that stand for "
    "texts on a subject are taken to come as often as its public weights say: those that come more "
    "often speak for their subject, the more the longer a run of searches is"
)
EACH_SUBJECT = (
    "if draws are remembered, searches on one subject have the same company of subjects, counted "
    "once; every other subject costs epsilon again"
)
RULED_OUT = (
    "p = 1: every subject that is not in the set is ruled out with certainty, so no epsilon holds"
)


@register
@dataclass(frozen=True, repr=False, eq=False)
class CoverSubjects(Cover):
    """One string of each of k subjects, with the text's own subject among them with probability p.

    Local differential privacy between any two subjects, also for a run of searches on one.
    """

    name: ClassVar[str] = "cover-subjects"
    summary: ClassVar[str] = (
        "sends the nearest string of a public pool with one string each of other subjects, which "
        "stay the same as long as the subject does"
    )
    hides: ClassVar[str] = "subject"

    subjects: int = parameter(
        0,
        f"how many the pool is cut into; 0: one for each {STRINGS_A_SUBJECT} strings, "
        f"{MOST_SUBJECTS:,} at most",
    )

    def __post_init__(self) -> None:
        require(
            self.k < self.subject_count <= len(self.pool),
            f"a set of k = {self.k} needs more subjects than that, and a pool of {len(self.pool)} "
            f"strings at least as many: change k or subjects ({self.subject_count}), or the pool",
        )
        super().__post_init__()

    @property
    def subject_count(self) -> int:
        """As many as the pool is to be cut into; empty ones are left out."""
        usual = min(max(len(self.pool) // STRINGS_A_SUBJECT, self.k + 1), MOST_SUBJECTS)
        return self.subjects or usual

    @property
    def subject_of(self) -> IntArray:
        """The number of the subject of each string."""
        return self._cut[0]

    @cached_property
    def _cut(self) -> tuple[IntArray, IntArray]:
        """The subject of each string; the strings, subject after subject, in their public order."""
        return self.pool.subjects(self.subject_count)

    @cached_property
    def law(self) -> SubsetLaw:
        """The law of sets of subjects; one with more strings, or more popular ones, is likelier."""
        shares = np.bincount(self.subject_of, weights=self._shares).astype(np.float64)
        popularity = (1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE / len(shares)
        return SubsetLaw(len(shares), self.k, self.p, popularity)

    @cached_property
    def weights(self) -> Float64Array:
        """How likely each string is drawn, given that its subject is in the set as a decoy."""
        sums = np.bincount(self.subject_of, weights=self._shares)
        return np.asarray(self._shares / sums[self.subject_of])

    @cached_property
    def spans(self) -> tuple[Float64Array, Float64Array]:
        """Where each string begins and ends between 0 and 1, if those of its subject lie in order.

        A string takes as much room as its weight.
        """
        order = self._cut[1]
        ends = np.cumsum(self.weights[order]) - self.subject_of[order]
        last = np.diff(self.subject_of[order], append=self.law.size) > 0
        ends[last] = 1.0
        begins = np.where(np.roll(last, 1), 0.0, np.roll(ends, 1))
        spans = np.empty((2, len(order)))
        spans[:, order] = begins, ends
        return spans[0], spans[1]

    @property
    def _shares(self) -> Float64Array:
        """The popularity that decoys match: as the pool states it, or all strings alike."""
        popularity = self.popularity
        size = len(self.pool)
        return np.full(size, 1 / size) if popularity is None else popularity

    @cached_property
    def made_with(self) -> str:
        """The hash of the pool, its encoder, its subjects, and the popularity of its strings."""
        digest = hashlib.sha256(self.pool.sha256.encode())
        digest.update(b"".join(part.tobytes() for part in (*self._cut, self._shares)))
        return digest.hexdigest()

    def law_places(self, places: IntArray) -> IntArray:
        """The subjects of strings."""
        return np.asarray(self.subject_of[places])

    def label(self, place: int) -> str:
        """A subject by the first of its strings."""
        return f"the subject of '{self.pool.strings[int(np.argmax(self.subject_of == place))]}'"

    def decided_by(self, representative: int) -> tuple[str, str]:
        """The subject: its company is the same whichever of its strings is meant."""
        return "subject", str(int(self.subject_of[representative]))

    # From a string to one string each of several subjects

    def draw(self, representatives: IntArray, draws: Draws) -> IntArray:
        """A string of each subject of a set, for each representative: places, ascending."""
        sets = np.empty((draws.size, self.k), dtype=np.int64)
        row = 0
        for generator, count in draws.units:
            for _ in range(count):
                sets[row] = self._drawn(int(representatives[row]), generator)
                row += 1
        return sets

    def _drawn(self, representative: int, rng: Generator) -> IntArray:
        subject = int(self.subject_of[representative])
        members = self.law.draw(subject, rng)
        # Remembered draws have a generator for each subject. Where in its span a string is taken
        # to lie must be independent for each string.
        digest = hashlib.sha256(rng.bytes(32) + representative.to_bytes(8, "little")).digest()
        begins, ends = self.spans
        begin, end = begins[representative], ends[representative]
        at = begin + float(keyed_generator(digest).random()) * (end - begin)
        places = [
            representative if c == subject else self._string_at(c, at) for c in members.tolist()
        ]
        return np.sort(np.array(places))

    def _string_at(self, subject: int, at: float) -> int:
        """The string of a subject in whose span a number between 0 and 1 lies."""
        order, first, end = self._cut[1], self._firsts[subject], self._firsts[subject + 1]
        inside = order[first:end]
        place = int(np.searchsorted(self.spans[1][inside], at, side="right"))
        return int(inside[min(place, len(inside) - 1)])

    @cached_property
    def _firsts(self) -> IntArray:
        """Where each subject begins in the order, and where the last one ends."""
        return np.searchsorted(self.subject_of[self._cut[1]], np.arange(self.law.size + 1))

    # What a set tells

    def log_law(self, sets: IntArray, inputs: IntArray | None = None) -> Float64Array:
        """The log-law of sets of strings given representatives x (by default all)."""
        rows = np.atleast_2d(np.asarray(sets, dtype=np.int64))
        places = np.arange(len(self.pool)) if inputs is None else np.asarray(inputs)
        table = self.law.log_law(self.subject_of[rows], self.subject_of[places])
        return np.asarray(table + np.array([self._log_meeting(row, places) for row in rows]))

    def _log_meeting(self, members: IntArray, places: IntArray) -> Float64Array:
        """Of a string's span, the part that all members' spans share with it, as a logarithm.

        Spans of one subject do not overlap: if another string of it is a member, there is none.
        """
        begins, ends = self.spans
        low = np.maximum(begins[members].max(), begins[places])
        high = np.minimum(ends[members].min(), ends[places])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(high - low, 0)) - np.log(self.weights[places]))

    def log_odds(self, places: IntArray) -> tuple[Float64Array, Float64Array]:
        """As for strings that hide by themselves; the rarer a string of its subject, the likelier.

        Members share the part where all their spans meet, so that only their own weight tells them
        apart. Of sets without x only the subjects are looked at.
        """
        subjects = self.subject_of[places]
        inside = self.law.log_inside[subjects] - np.log(self.weights[places])
        return inside, self.law.log_outside[subjects]

    def posterior(self, members: IntArray, prior: Float64Array | None = None) -> Float64Array:
        """How likely each string of the pool is the one meant, given a set, for a stated prior."""
        if prior is None:
            prior = self.law.matched_prior[self.subject_of] * self.weights
        beliefs = np.asarray(prior, dtype=np.float64)
        require(
            beliefs.shape == (len(self.pool),) and (beliefs >= 0).all() and beliefs.any(),
            "a prior has a number from 0 on for each string of the pool, not 0 for all",
        )
        (scores,) = self.log_law(members)
        with np.errstate(divide="ignore"):
            scores += np.log(beliefs)
        require(
            scores.max() > -np.inf, "no string that the prior allows could have led to this set"
        )
        chances = np.exp(scores - scores.max())
        return np.asarray(chances / chances.sum())

    def by_law_place(self, chances: Float64Array) -> Float64Array:
        """The chances of sets given subjects, from those given strings, as often as these come."""
        mixed = np.zeros((len(chances), self.law.size))
        np.add.at(mixed.T, self.subject_of, (chances * self.weights).T)
        return mixed

    def on_few(self, size: int, **changes: Any) -> Cover:
        """The same mechanism on two made-up strings for each of so many subjects."""
        return super().on_few(2 * size, subjects=size, **changes)

    def company(self, text: str, representative: int, members: IntArray) -> Company:
        """What a set is worth for this text."""
        return replace(super().company(text, representative, members), subjects=self.law.size)

    # What is promised

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy of subjects; none for p = 1."""
        caveats = (
            *(INSIDE_A_SUBJECT, self._set_in_words, PRIORS, ONLY_THE_SET, PUBLIC_POOL),
            EACH_SUBJECT,
        )
        if self.p == 1:
            return Guarantee("none", None, scope=SUBJECT, caveats=(RULED_OUT, *caveats))
        return Guarantee("local", self.law.epsilon, scope=SUBJECT, caveats=caveats)

    @property
    def published(self) -> Guarantee | None:
        """Of decoys that always go with the query (p = 1) people say that they hide it."""
        claim = super().published
        return claim and replace(claim, scope=SUBJECT)

    @property
    def _set_in_words(self) -> str:
        return (
            f"epsilon is that of {self.k} of {self.law.size:,} subjects of {len(self.pool):,} "
            f"strings, with the text's own among them with probability {self.p:g}"
        )
