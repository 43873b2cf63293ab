"""Plausible deniability: how often a word comes back, and how many words stand in for it.

Both are of Feyisetan et al. (WSDM 2020). N_w is the probability that w is released for itself.
S_w(eta) is the least number of words that together are released for w with probability 1 - eta or
more. They are exact where a mechanism has a law; else they are counted, and every count comes with
what it can prove.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.privacy.word_draws import Sampler, sampler_for, usual_sharing
from sottovoce.privacy.word_samples import NUMBERS_AT_ONCE, nearest_others, sample_words
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import WordSpace
from sottovoce.statistics import LEVEL, at_most, clopper_pearson
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float64Array, IntArray, Progress

DRAWS = 1000
"""Draws for each word, as in the paper."""
ETA = 0.01
RANKS = (1, 10, 100, 1000)
"""Neighbours whose distances are reported, as far as the space reaches."""
PERCENTILES = (5, 50, 95)
ROUNDING = 1e-12

Row = tuple[float, int, float, float, float]
"""Of one word: N_w, S_w(eta), different words among the draws, missing mass, distance moved."""


@dataclass(frozen=True, repr=False)
class Deniability:
    """Deniability of some words under one mechanism; arrays have an entry for each word."""

    mechanism: WordMechanism
    words: IntArray
    eta: float
    draws: int
    exact: bool
    seeded: bool
    unchanged: Float64Array
    """N_w: probability, or share of the draws, that the word comes back."""
    support: IntArray
    """S_w(eta)."""
    distinct: Float64Array
    """Different words among ``draws`` draws: counted, or expected by the law."""
    missing: Float64Array
    """Good and Turing's estimate of the probability of words that no draw showed; 0 if exact."""
    moved: Float64Array
    """How far the released word is from the true one, on average, in Euclidean distance."""

    @property
    def risk(self) -> float:
        return joint_risk(len(self.words))

    @property
    def unchanged_interval(self) -> tuple[Float64Array, Float64Array]:
        """N_w of each word, with 95 % confidence for that word alone."""
        if self.exact:
            return self.unchanged, self.unchanged
        return clopper_pearson(self._returned, self.draws)

    @property
    def unchanged_bound(self) -> Float64Array:
        """What no N_w exceeds, with 95 % confidence for all words at once (Bonferroni)."""
        return self.unchanged if self.exact else at_most(self._returned, self.draws, self.risk)

    @property
    def support_bound(self) -> IntArray:
        """What no S_w(eta) falls below, with 95 % confidence for all words at once."""
        if self.exact:
            return self.support
        certain = self.distinct.astype(np.int64) - unproven(self.draws, self.eta, self.risk)
        return np.maximum(certain, 1)

    @cached_property
    def _returned(self) -> Float64Array:
        return np.rint(self.unchanged * self.draws)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: summaries over the words, then the words one by one."""
        space = self.mechanism.space
        low, high = self.unchanged_interval
        named = space.words(self.words)
        worst = int(np.argmax(self.unchanged)), int(np.argmin(self.support))
        return {
            "mechanism": self.mechanism.spec,
            "epsilon": self.mechanism.epsilon,
            "space": space.name,
            "space_sha256": space.sha256,
            "output_vocabulary": space.output.name,
            "how": "exact" if self.exact else "sampled",
            "draws": None if self.exact else self.draws,
            "seeded": self.seeded,
            "eta": self.eta,
            "confidence": LEVEL,
            "unchanged": {
                **summary(self.unchanged),
                "worst": float(self.unchanged.max()),
                "worst_bound": float(self.unchanged_bound.max()),
                "worst_word": named[worst[0]],
            },
            "support": {
                **summary(self.support),
                "worst": int(self.support.min()),
                "worst_bound": int(self.support_bound.min()),
                "worst_word": named[worst[1]],
            },
            "distinct": {
                **summary(self.distinct),
                "draws": self.draws,
                "worst": float(self.distinct.min()),
            },
            "missing_mass": {**summary(self.missing), "worst": float(self.missing.max())},
            "moved": summary(self.moved),
            "words": [
                {
                    "word": word,
                    "unchanged": float(self.unchanged[at]),
                    "unchanged_interval": [float(low[at]), float(high[at])],
                    "support": int(self.support[at]),
                    "distinct": float(self.distinct[at]),
                    "missing_mass": float(self.missing[at]),
                    "moved": float(self.moved[at]),
                }
                for at, word in enumerate(named)
            ],
        }


def deniability(
    mechanism: Mechanism,
    words: IntArray | None = None,
    *,
    eta: float = ETA,
    draws: int = DRAWS,
    rng: Randomness = None,
    sharing: int | None = None,
    sampler: Sampler | None = None,
    progress: Progress | None = None,
) -> Deniability:
    """Measure N_w and S_w(eta) of words, by default of a sample of the vocabulary.

    ``sharing``: how many words may be moved by the same noise. It does not touch what is said of
    single words, or the bounds for all; means over words are the more certain the fewer do.
    ``sampler``: what draws for these words, instead of one made of ``rng`` and ``sharing``.
    """
    mechanism = word_mechanism(mechanism)
    check_eta(eta)
    if isinstance(draws, bool) or draws < 1:
        raise UsageError("at least one draw a word is needed")
    ids = sample_words(mechanism.space) if words is None else mechanism.checked(words)
    if not len(ids):
        raise UsageError("at least one word is needed")
    exact = mechanism.has_law
    if exact:
        rows = _by_law(mechanism, ids, eta, draws)
    else:
        sampler = sampler or sampler_for(mechanism, ids, rng, sharing or usual_sharing(draws))
        rows = _by_draws(mechanism, sampler, eta, draws)
    measured = []
    with single_threaded_blas():
        for row in rows:
            measured.append(row)
            if progress is not None:
                progress(len(measured), len(ids))
    unchanged, support, distinct, missing, moved = map(np.array, zip(*measured, strict=True))
    return Deniability(
        mechanism=mechanism,
        words=ids,
        eta=eta,
        draws=draws,
        exact=exact,
        seeded=not exact and is_seeded(rng),
        unchanged=unchanged,
        support=support,
        distinct=distinct,
        missing=missing,
        moved=moved,
    )


def word_mechanism(mechanism: Mechanism) -> WordMechanism:
    """The mechanism, if it replaces words one by one: only then is there a N_w."""
    if isinstance(mechanism, WordMechanism):
        return mechanism
    raise UsageError(
        f"{mechanism.name} rewrites whole texts; plausible deniability is about mechanisms that "
        "replace word by word: use one of those, such as cmp, or attack its releases with "
        "'sottovoce attack'"
    )


def joint_risk(words: int) -> float:
    """The risk of each bound, so that those of N_w and S_w hold together for all words."""
    return (1 - LEVEL) / (2 * words)


def check_eta(eta: float) -> None:
    """Eta is a probability, and neither end makes sense."""
    if not 0 < eta < 1:
        raise UsageError("eta lies between 0 and 1: it is the share of releases left out of S_w")


def laws(mechanism: WordMechanism, words: IntArray) -> Iterator[tuple[IntArray, Float64Array]]:
    """Yield blocks of words with their exact output distributions, (words, space.size)."""
    step = max(1, min(64, NUMBERS_AT_ONCE // mechanism.space.size))
    for start in range(0, len(words), step):
        block = words[start : start + step]
        law = mechanism.log_probabilities(block)
        if law is None:
            raise UsageError(f"{mechanism.name} has no exact law: sample it")
        yield block, np.exp(law, out=law)


def exact_support(chances: Float64Array, eta: float) -> IntArray:
    """S_w(eta) of laws, one a row: sort, cumulate."""
    cumulated = np.cumsum(-np.sort(-chances, axis=1), axis=1)
    support = (cumulated < 1 - eta - ROUNDING).sum(axis=1) + 1
    return np.asarray(np.minimum(support, (chances > 0).sum(axis=1)))


def counted_support(counts: IntArray, eta: float) -> int:
    """S_w(eta) of the shares that were counted."""
    cumulated = np.cumsum(-np.sort(-counts))
    return int((cumulated < (1 - eta) * cumulated[-1] - ROUNDING).sum()) + 1


def unproven(draws: int, eta: float, risk: float) -> int:
    """How many of the different words that were drawn do not prove anything about S_w(eta).

    If a set of s words has probability 1 - eta or more, at most Binomial(draws, eta) draws fall
    outside of it. So s is at least the number of different words less this quantile, except with
    probability ``risk``.
    """
    from scipy.special import bdtr  # scipy.stats takes most of a second to import.

    return int(np.searchsorted(bdtr(np.arange(draws + 1), draws, eta), 1 - risk))


def _by_law(mechanism: WordMechanism, words: IntArray, eta: float, draws: int) -> Iterator[Row]:
    """Each word by its exact law."""
    everything = Distances(mechanism.space, np.arange(mechanism.space.size))
    for block, chances in laws(mechanism, words):
        unchanged = chances[np.arange(len(block)), block]
        support = exact_support(chances, eta)
        moved = (everything.rows(block) * chances).sum(axis=1)
        # A word of chance p is among n draws with probability 1 - (1 - p)^n.
        with np.errstate(divide="ignore"):
            distinct = -np.expm1(draws * np.log1p(-np.minimum(chances, 1.0))).sum(axis=1)
        columns = (unchanged, support, distinct, np.zeros(len(block)), moved)
        yield from zip(*(column.tolist() for column in columns), strict=True)


def _by_draws(mechanism: WordMechanism, sampler: Sampler, eta: float, draws: int) -> Iterator[Row]:
    """Each word by counting draws; the missing mass is the share of words seen only once."""
    words = sampler.words
    distances = Distances(mechanism.space, mechanism.space.output.ids)
    for places in sampler.groups(draws):
        for place, drawn in zip(places, sampler.all(mechanism, places, draws), strict=True):
            outputs, counts = np.unique(drawn, return_counts=True)
            unchanged = counts[outputs == words[place]].sum() / draws
            far = distances.pairs(np.full(len(outputs), words[place]), outputs)
            support = counted_support(counts, eta)
            missing = (counts == 1).sum() / draws
            yield unchanged, support, float(len(outputs)), missing, float(far @ counts / draws)


def neighbour_distances(
    space: WordSpace, words: IntArray, ranks: Sequence[int] = RANKS
) -> dict[int, Float64Array]:
    """Distances of words to their k-th nearest neighbours, for each k that the space reaches."""
    within = [rank for rank in ranks if rank < len(space.output)]
    if not within:
        return {}
    return dict(zip(within, nearest_others(space, words, within)[1].T, strict=True))


def summary(values: Float64Array | IntArray) -> dict[str, float]:
    """Mean and percentiles."""
    cuts = np.percentile(values, PERCENTILES)
    named = {f"p{at}": float(cut) for at, cut in zip(PERCENTILES, cuts, strict=True)}
    return {"mean": float(np.mean(values)), **named}
