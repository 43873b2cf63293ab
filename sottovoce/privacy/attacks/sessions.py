"""Several releases of one text: what they say adds up, and which belong together shows.

A text asked again and drawn afresh is one more independent look at the same words, so the rows of
evidence add up place by place. Whoever does not know which releases belong together compares them:

    log P(both | same text) / P(both | two texts)
        = sum over places of log sum_w P(w | first) P(w | second) / P(w),

which is exact for words that are drawn independently from the prior P.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.language import TextModel
from sottovoce.privacy.attacks.places import PlacedText
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.words import (
    Share,
    WordRecovery,
    evidence_rows,
    guess,
    guessed_right,
    guessed_words,
    judge,
)
from sottovoce.statistics import auc_interval
from sottovoce.types import Float32Array, Float64Array, IntArray


def recover_asked_again(
    evidence: Evidence, askings: Sequence[Sequence[PlacedText]], model: TextModel
) -> list[WordRecovery]:
    """Words recovered from the first asking alone, from the first two together, and so on.

    ``askings[k]`` are the same texts in the same order, released for the (k + 1)-th time.
    """
    if len({tuple(_outline(text) for text in texts) for texts in askings}) != 1:
        raise UsageError(
            "askings must hold the same texts in the same order, with the same places: release "
            "one list of texts several times"
        )
    space = evidence.mechanism.space
    totals: list[Float32Array] = []
    recoveries = []
    for texts in askings:
        judged = []
        for number, (text, rows) in enumerate(evidence_rows(evidence, texts)):
            if len(totals) == number:
                totals.append(np.zeros_like(rows))
            totals[number] = totals[number] + rows
            judged.append(judge(text, guessed_words(text, guess(model, totals[number]), space)))
        recoveries.append(
            WordRecovery(model.name, f"the mechanism ({evidence.kind})", tuple(judged))
        )
    return recoveries


def recover_over_searches(
    evidence: Evidence, sessions: Sequence[Sequence[PlacedText]], model: TextModel
) -> list[Share]:
    """Content words recovered after one search of each session, after two, and so on.

    A session is several texts on one subject. A word that occurs in several of them counts once,
    and is recovered as soon as it was guessed in one. Sessions may differ in length.
    """
    space = evidence.mechanism.space
    said: list[set[str]] = [set() for _ in sessions]
    recovered: list[set[str]] = [set() for _ in sessions]
    shares = []
    for search in range(max(map(len, sessions), default=0)):
        asking = [at for at, texts in enumerate(sessions) if search < len(texts)]
        pairs = evidence_rows(evidence, [sessions[at][search] for at in asking])
        for at, (text, rows) in zip(asking, pairs, strict=True):
            right = guessed_right(text, guessed_words(text, guess(model, rows), space))
            for true, hit, function in zip(text.truth, right, text.function, strict=True):
                if not function:
                    said[at].add(true.word)
                    recovered[at] |= {true.word} if hit else set()
        shares.append(Share.by_text([*map(len, recovered)], [*map(len, said)]))
    return shares


def _outline(text: PlacedText) -> tuple[str, int, tuple[int, ...]]:
    return text.id, len(text.places), tuple(text.replaced.tolist())


@dataclass(frozen=True)
class Linkage:
    """How well releases of the same text are told from releases of different ones.

    ``auc`` is the chance that a pair of releases of one text scores above a pair of two texts;
    .5 is a blind guess, ``low`` to ``high`` its 95 % interval over texts. Releases of different
    shapes cannot belong together; ``auc_same_shape`` looks at pairs of the same shape alone, and is
    None where there are no such pairs of two texts.
    """

    same: int
    different: int
    different_same_shape: int
    auc: float
    low: float
    high: float
    auc_same_shape: float | None


def link(evidence: Evidence, releases: Sequence[PlacedText], prior: Prior) -> Linkage:
    """Score all pairs of releases; those with the same ``text`` belong together."""
    scores = link_scores([rows for _, rows in evidence_rows(evidence, releases)], prior)
    first, second = np.triu_indices(len(releases), k=1)
    shapes = np.unique([str(text.shape) for text in releases], return_inverse=True)[1]
    originals = np.unique([text.text for text in releases], return_inverse=True)[1]
    fitting = shapes[first] == shapes[second]
    pair_scores = np.where(fitting, scores[first, second], -np.inf)
    same = originals[first] == originals[second]
    if not same.any() or same.all():
        raise UsageError("linkage needs several releases of a text, and of at least two texts")
    area = _auc(pair_scores[same], pair_scores[~same])
    # Pairs share releases and are not independent; texts are.
    several = len(np.unique(originals[first[same]]))
    low, high = auc_interval(area, several, len(np.unique(originals)))
    rivals = pair_scores[~same & fitting]
    return Linkage(
        same=int(same.sum()),
        different=int((~same).sum()),
        different_same_shape=len(rivals),
        auc=area,
        low=low,
        high=high,
        auc_same_shape=_auc(pair_scores[same], rivals) if len(rivals) else None,
    )


def link_scores(rows: Sequence[Float32Array], prior: Prior) -> Float64Array:
    """The log-odds that two releases are of the same text, for all pairs; -inf by length."""
    scores = np.full((len(rows), len(rows)), -np.inf)
    lengths = np.array([len(places) for places in rows])
    root = np.exp(-0.5 * prior.log_weights)
    for length in np.unique(lengths):
        members: IntArray = np.flatnonzero(lengths == length)
        total = np.zeros((len(members), len(members)))
        for place in range(int(length)):
            posteriors = prior.marginals(np.stack([rows[at][place] for at in members])) * root
            with np.errstate(divide="ignore"):  # Two releases that exclude each other: -inf.
                total += np.log(posteriors @ posteriors.T)
        scores[np.ix_(members, members)] = total
    return scores


def _auc(positives: Float64Array, negatives: Float64Array) -> float:
    """The chance that a positive is above a negative; ties count half."""
    ranks = rankdata(np.concatenate([positives, negatives]))[: len(positives)]
    above = ranks.sum() - len(positives) * (len(positives) + 1) / 2
    return float(above / (len(positives) * len(negatives)))
