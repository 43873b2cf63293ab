"""cover: a query leaves among others, and which of them is meant is hidden, with a proof.

A text is represented by a string of a public pool, the text itself if it stands there, else the
nearest by the pool's encoder. The set that is released follows the k-subset law of ``subsets.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sottovoce.choices import Decoys
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import SetMechanism, parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.company import MATCHED, POPULAR, SENSITIVE, UNIFORM, Company
from sottovoce.mechanisms.subsets import SubsetLaw
from sottovoce.pools import Pool
from sottovoce.randomness import Draws, Randomness, as_generator
from sottovoce.sensitive import sensitive_belief, sensitive_shares
from sottovoce.text import folded_text
from sottovoce.types import Float64Array, IntArray

PAPER = (
    "Wang et al.: Mutual Information Optimally Local Private Discrete Distribution Estimation, "
    "arXiv 1607.08025, 2016 (the k-subset mechanism, for another purpose)"
)
UNIFORM_SHARE = 0.1
"""Of decoys drawn by popularity: without it, a string that is hardly ever drawn would give a text
away, and no useful epsilon would hold."""
USUAL_P = 0.9
DRAWN = {
    "uniform": "uniformly",
    "popular": "by popularity",
    "sensitive": "rather on subjects that people hide",
}

ONLY_THE_SET = (
    "that something was asked, when and how often, what the engine answers and what is done with "
    "the answers is not covered"
)
PRIORS = (
    "what an observer believes beforehand, of what people ask or of this person, is not covered: "
    "it can single out one string of the set"
)
PUBLIC_POOL = (
    "the pool must be public, and chosen without looking at the texts; a text that stands in it "
    "may be released as it is"
)
EACH_REPRESENTATIVE = (
    "texts with the same nearest string share one set if draws are remembered; every other text, "
    "also on the same subject, costs epsilon again"
)
RULED_OUT = (
    "p = 1: every string that is not in the set is ruled out with certainty, so no epsilon holds"
)


@register
@dataclass(frozen=True, repr=False, eq=False)
class Cover(SetMechanism):
    """k strings (or groups of m) of the pool, with the text's own among them with probability p.

    Pure local differential privacy between any two texts: p (M - k) / ((1 - p) k) bounds the ratio
    of probabilities if decoys are uniform over M strings.
    """

    name: ClassVar[str] = "cover"
    summary: ClassVar[str] = (
        "sends the string of a public pool that is nearest to a text among others of the pool"
    )
    paper: ClassVar[str] = PAPER
    always_in_spec: ClassVar[tuple[str, ...]] = ("k", "p")
    hides: ClassVar[str] = "string"
    """What the law hides among others of its kind."""

    k: int = parameter(20, "strings in a set; groups of them, if m is above 1", larger_hides=True)
    p: float = parameter(USUAL_P, "chance that the text's own string is in the set; below 1")
    m: int = parameter(1, "strings in a group: one of the pool and the m - 1 nearest to it")
    decoys: Decoys = parameter(
        "uniform",
        "how the others are drawn: all alike, by the popularity that the pool states, or rather "
        "on subjects that people hide",
    )

    def __post_init__(self) -> None:
        require(
            1 <= self.m <= len(self.pool),
            f"a group has between 1 and all {len(self.pool)} strings of the pool, not {self.m}",
        )
        require(
            self.decoys != "popular" or self.pool.popularity is not None,
            "the pool states no popularity, all its strings are alike: use decoys=uniform or "
            "decoys=sensitive, or a pool in which frequent strings come more than once",
        )
        require(
            self.p == 1 or not self.law.epsilon <= 0,
            f"p = k/M = {self.p:g} says nothing of a text, and finds nothing: take a larger p",
        )

    @cached_property
    def law(self) -> SubsetLaw:
        """The law of the sets, over places in the pool."""
        return SubsetLaw(len(self.pool), self.k, self.p, self.popularity)

    @cached_property
    def popularity(self) -> Float64Array | None:
        """The popularity that decoys match, as shares; None: all strings are alike."""
        if self.decoys == "sensitive":
            weights = sensitive_shares(self.pool.sensitivity)
        elif self.decoys == "popular" and self.pool.popularity is not None:
            weights = self.pool.popularity
        else:
            return None
        shares = weights / weights.sum()
        return np.asarray((1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE / len(shares))

    @cached_property
    def made_with(self) -> str:
        """The hash of the pool and its encoder, and of the popularity where it decides decoys."""
        return self.pool.drawn_with(self.law.popularity)

    def _identity(self) -> tuple[Any, ...]:
        return self.spec, self.made_with

    @property
    def set_size(self) -> int:
        """As many as k groups of m have; groups may have strings in common."""
        return self.k * self.m

    # From a text to a set of strings

    def representatives(self, texts: Sequence[str]) -> IntArray:
        """The place of each text in the pool, or of the nearest string, the first of equals."""
        return self.pool.representatives(texts)

    def release(self, texts: Sequence[str], rng: Randomness = None) -> IntArray:
        """A set for each text, (len(texts), k), as :meth:`log_law` and :meth:`posterior` take it.

        For attacks and tables. What is to be sent comes from an ``Obfuscator``, in random order.
        """
        return self.draw(self.representatives(texts), Draws([(as_generator(rng), len(texts))]))

    def strings(self, members: IntArray) -> tuple[str, ...]:
        """The strings of a set; of groups, each string once."""
        return tuple(self.pool.strings[place] for place in self.group(members))

    def group(self, members: IntArray) -> list[int]:
        """The places of the members and of the m - 1 strings nearest to each, each once."""
        heads = np.asarray(members, dtype=np.int64)
        if self.m == 1:
            return [int(head) for head in heads]
        nearest = self.pool.best(self.pool.vectors[heads], self.m).tolist()
        # A string comes first in its group; equal vectors may have left it out of its nearest.
        places = [
            place
            for head, row in zip(heads.tolist(), nearest, strict=True)
            for place in [head, *(place for place in row if place != head)][: self.m]
        ]
        return list(dict.fromkeys(places))

    # What the law is about: here strings themselves

    def law_places(self, places: IntArray) -> IntArray:
        """The places in the law of what strings belong to."""
        return places

    def label(self, place: int) -> str:
        """What is at a place of the law, in words."""
        return self.pool.strings[place]

    def by_law_place(self, chances: Float64Array) -> Float64Array:
        """The chances of sets given places of the law, from those given strings: (sets, places)."""
        return chances

    def on_few(self, size: int, **changes: Any) -> Cover:
        """The same mechanism on so few made-up strings that all sets can be listed."""
        weights = None if self.decoys == "uniform" else range(1, size + 1)
        strings = (f"string {number}" for number in range(size))
        pool = Pool(strings, self.pool.encoder, weights=weights)
        return replace(self, pool=pool, m=1, **changes)

    # What a set tells

    def log_law(self, sets: IntArray, inputs: IntArray | None = None) -> Float64Array:
        """The log-law, ln P(S | x), of sets of places given representatives x (by default all)."""
        places = np.arange(len(self.pool)) if inputs is None else inputs
        return self.law.log_law(np.atleast_2d(sets), places)

    def posterior(self, members: IntArray, prior: Float64Array | None = None) -> Float64Array:
        """How likely each string of the pool is the one meant, given a set, for a stated prior."""
        return self.law.posterior(members, prior)

    def company(self, text: str, representative: int, members: IntArray) -> Company:
        """What a set is worth for this text, for the stated prior."""
        epsilon = self.law.epsilon
        released = self.group(members)
        return Company(
            queries=len(released),
            groups=self.k,
            group_size=self.m,
            pool=len(self.pool),
            representative=self.pool.strings[representative],
            is_text=folded_text(text) == folded_text(self.pool.strings[representative]),
            drawn=bool((np.asarray(members) == representative).any()),
            sent=representative in released,
            inclusion=self.p,
            epsilon=epsilon if math.isfinite(epsilon) else None,
            guesses=self._guesses(members),
        )

    def _guesses(self, members: IntArray) -> dict[str, float]:
        """The largest posterior probability, for each prior that is at hand."""
        priors: dict[str, Float64Array | None] = {
            UNIFORM: np.ones(len(self.pool)),
            # As the attack believes it. Decoys match less: the most sensitive count alike.
            SENSITIVE: sensitive_belief(self.pool.sensitivity),
        }
        if self.pool.popularity is not None:
            priors[POPULAR] = self.pool.popularity
        if self.decoys == "sensitive":
            priors[MATCHED] = None
        return {name: float(self.posterior(members, prior).max()) for name, prior in priors.items()}

    # What is promised

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy of texts; none for p = 1."""
        caveats = (self._set_in_words, PRIORS, ONLY_THE_SET, PUBLIC_POOL, EACH_REPRESENTATIVE)
        if self.p == 1:
            return Guarantee("none", None, scope="text", caveats=(RULED_OUT, *caveats))
        return Guarantee("local", self.law.epsilon, scope="text", caveats=caveats)

    @property
    def published(self) -> Guarantee | None:
        """Of decoys that always go with the query (p = 1) people say that they hide it.

        The epsilon that p = 0.9 has is put in for what they do not say; any other is as wrong.
        """
        if self.p < 1:
            return None
        usual = SubsetLaw(self.law.size, self.k, USUAL_P, self.law.popularity)
        return Guarantee("local", usual.epsilon, scope="text")

    @property
    def _set_in_words(self) -> str:
        what = "strings" if self.m == 1 else f"groups of {self.m} strings"
        how = DRAWN[self.decoys]
        return (
            f"epsilon is that of {self.k} of {len(self.pool):,} {what}, drawn {how}, with the "
            f"text's own among them with probability {self.p:g}"
        )
