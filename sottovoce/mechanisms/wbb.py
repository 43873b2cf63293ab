"""WBB, Words Blending Boxes (De Faveri, Faggioli, Ferro): near words, but not the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from sottovoce.guarantees import WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import parameter, require
from sottovoce.mechanisms.build import register
from sottovoce.mechanisms.sampling import BoxMechanism, normalized
from sottovoce.spaces.distances import Distances, smallest
from sottovoce.text.protection import NOUNS_AND_ADJECTIVES
from sottovoce.threads import parallel_map
from sottovoce.types import Float64Array, IntArray

WORDS_AT_A_TIME = 64

NOT_PRIVATE = (
    "the paper's theorem of epsilon-differential privacy does not hold: its proof sums over the "
    "same candidates for every word, but each word has a box of its own. A substitute rules out "
    "every word whose box lacks it, at any epsilon, and a few of them together point to the word"
)
NEVER_ITSELF = (
    "a word is never released for itself, only for others: that alone excludes any finite epsilon"
)
MAYBE_ITSELF = (
    "with k = 0, which the paper allows, a word may be released for itself: whoever sees it cannot "
    "tell, but nothing was hidden then"
)
NO_EPSILON = (
    "compat=repo has the law of the authors' code (but standardises distances for each word, not "
    "over a query): epsilon has no effect at all"
)


@register
@dataclass(frozen=True, repr=False, eq=False)
class WBB(BoxMechanism):
    """Samples among the ``n`` words that come after the ``k`` nearest, the word itself included.

    Eq. 6: p(y|w) proportional to exp(epsilon u / 2) with u = 1 / (1 + exp(z)) and z the distance of
    y, standardised over the candidates of w.
    """

    name: ClassVar[str] = "wbb"
    summary: ClassVar[str] = "samples among near words, leaving out the word and its nearest"
    paper: ClassVar[str] = (
        "De Faveri, Faggioli, Ferro: Words Blending Boxes. Obfuscating Queries in Information "
        "Retrieval using Differential Privacy"
    )

    box_size: ClassVar[str] = "n"
    box_depends_on_epsilon: ClassVar[bool] = False

    measure: Literal["angle", "euclidean", "product"] = parameter(
        "angle", "distance: 1 - cosine, Euclidean, or both multiplied"
    )
    k: int = parameter(
        4,
        "safe box: so many nearest words, itself the first, are never released; 0, with compat, "
        "lets a word stand for itself",
    )
    n: int = parameter(50, "candidate box: so many words after these compete")
    compat: Literal["none", "repo", "empty-box"] = parameter(
        "none",
        "'repo' uses the law of the authors' code, which ignores epsilon; 'empty-box' allows the "
        "paper's k = 0",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        least = 0 if self.compat == "empty-box" else 1
        require(
            self.k >= least,
            f"the safe box holds the word itself at least: k is 1 or more, not {self.k}; with "
            "compat=empty-box it may be 0",
        )
        require(self.n >= 1, f"at least one candidate is needed: n is 1 or more, not {self.n}")
        require(
            self.k + self.n <= len(self.space.output),
            f"k + n = {self.k + self.n} words do not exist: the output vocabulary has "
            f"{len(self.space.output)}; set k or n lower",
        )

    @property
    def protects(self) -> str:
        """Nouns and adjectives, as published; all other words stay in clear."""
        return NOUNS_AND_ADJECTIVES

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.space, self.space.output.ids, self.measure)

    def laws(self, words: IntArray) -> list[tuple[IntArray, Float64Array]]:
        """The candidate box of each word, nearest first, and the law inside."""
        parts = np.split(words, range(WORDS_AT_A_TIME, len(words), WORDS_AT_A_TIME))
        return [law for laws in parallel_map(self._laws, parts) for law in laws]

    def _laws(self, words: IntArray) -> list[tuple[IntArray, Float64Array]]:
        rows = self._distances.rows(words)
        itself = words[:, None] == self.space.output.ids
        if self.k == 0:
            rows[itself] = 0.0
            places = smallest(rows, self.n)
        else:
            # The word itself has position 1, whether it may be released or not.
            rows[itself] = np.inf
            places = smallest(rows, self.k - 1 + self.n)[:, self.k - 1 :]
        utility = self.utility(np.take_along_axis(rows, places, axis=1))
        scores = np.log(utility) if self.compat == "repo" else 0.5 * self.epsilon * utility
        return list(zip(self.space.output.ids[places], normalized(scores), strict=True))

    @staticmethod
    def utility(distances: Float64Array) -> Float64Array:
        """Eq. 4, with a distance in z: the nearer, the better. One half where all are equal."""
        centered = distances - distances.mean(axis=-1, keepdims=True)
        spread = distances.std(axis=-1, keepdims=True)
        z = np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
        return np.asarray(1 / (1 + np.exp(z)))

    @property
    def epsilon_matters(self) -> bool:
        """Not in the law of the authors' code."""
        return self.compat != "repo"

    @property
    def published(self) -> Guarantee:
        """Theorem 1 of the paper: epsilon-differential privacy for every two words."""
        return Guarantee("local", self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """None: the support depends on the input."""
        no_epsilon = (NO_EPSILON,) if self.compat == "repo" else ()
        itself = NEVER_ITSELF if self.k else MAYBE_ITSELF
        caveats = (*no_epsilon, NOT_PRIVATE, itself, WORD_BY_WORD)
        return Guarantee("none", None, caveats=caveats)
