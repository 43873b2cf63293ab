"""The attack on queries: which query of a log was meant, scored place by place.

    score(q) = sum over places i of log P(seen at place i | word i of q)  (+ log of how often q is)

Only queries with as many words as the release has places, and of the same shape where that shows,
can have been meant; all others score -inf. If the log holds the query, its rank is

    rank = 1 + #{q: score(q) > s*} + 1/2 #{other q: score(q) = s*},     s* its own score.

If it does not, the best query of the log is judged by its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.places import PlacedText, Shape
from sottovoce.privacy.attacks.ranked import Attacked
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import content_words, stems
from sottovoce.types import UNKNOWN, Float32Array, Float64Array, IntArray

TIE = 1e-6
"""Scores no farther apart, relative to their size, are equal: rows are float32."""


class Group(NamedTuple):
    """The log queries of one length, those of the same shape next to each other."""

    queries: IntArray
    """Their numbers in the log."""
    columns: NDArray[np.int32]
    """Their words, (length, queries): a row for each place."""
    shapes: dict[int, slice]
    """Where the queries of each shape are."""


class Scored(NamedTuple):
    """Numbers and scores of the log queries that can have been meant."""

    queries: IntArray
    scores: Float64Array

    @property
    def best(self) -> int:
        """The number of the query with the largest score; ``UNKNOWN`` where none is possible."""
        if not len(self.scores) or self.scores.max() == -np.inf:
            return UNKNOWN
        return int(self.queries[self.scores.argmax()])

    def rank(self, target: int, log_size: int) -> tuple[float, int]:
        """The mid-rank of a query among all of the log, and how many others tie with it."""
        at = np.flatnonzero(self.queries == target)
        score = float(self.scores[at[0]]) if len(at) else -np.inf
        if score == -np.inf:  # Ties with all that are impossible.
            above = int((self.scores > -np.inf).sum())
            ties = log_size - above - 1
            return 1 + above + ties / 2, ties
        margin = TIE * max(1.0, abs(score))
        lead = self.scores - score
        ties = int((np.abs(lead) <= margin).sum()) - 1
        return 1 + float((lead > margin).sum()) + ties / 2, ties


def largest(scores: Float64Array, count: int) -> IntArray:
    """Where the largest scores stand, the largest first; equal ones in their order."""
    return np.argsort(-scores, kind="stable")[:count]


Scorer: TypeAlias = Callable[[Float32Array, Shape | None], Scored]
"""Scores a log by the rows of a release, and by its shape where that shows."""


@dataclass(frozen=True, repr=False)
class AlignedLog:
    """A log ready to be scored: its queries grouped by their number of words.

    ``frequencies``: log counts of the queries, where some are in the log more often than others.
    """

    log: CutLog
    groups: dict[int, Group]
    frequencies: Float64Array | None

    @classmethod
    def of(cls, log: CutLog) -> AlignedLog:
        """Group the queries of a log."""
        lengths = log.lengths
        order = np.lexsort((log.shapes, lengths))
        groups = {}
        for queries in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
            length = int(lengths[queries[0]])
            columns = log.words[log.starts[queries][None, :] + np.arange(length)[:, None]]
            shapes, firsts = np.unique(log.shapes[queries], return_index=True)
            ends = [*firsts[1:].tolist(), len(queries)]
            slices = dict(zip(shapes.tolist(), map(slice, firsts.tolist(), ends), strict=True))
            groups[length] = Group(queries, np.ascontiguousarray(columns), slices)
        repeated = bool((log.counts != log.counts[0]).any())
        return cls(log, groups, np.log(log.counts) if repeated else None)

    def __repr__(self) -> str:
        return f"AlignedLog({self.log.name})"

    @property
    def name(self) -> str:
        """For reports."""
        return self.log.name + (", with counts" if self.frequencies is not None else "")

    def score(self, rows: Float32Array, shape: Shape | None = None) -> Scored:
        """Score the queries with as many words as there are rows, (places, size + 1).

        shape
            Only queries of this shape; None where the release does not show it.
        """
        group = self.groups.get(len(rows))
        nothing = Scored(np.empty(0, dtype=np.int64), np.empty(0))
        if group is None:
            return nothing
        some = slice(None)
        if shape is not None:
            number = self.log.shape_numbers.get(shape, UNKNOWN)
            if number not in group.shapes:
                return nothing
            some = group.shapes[number]
        queries = group.queries[some]
        scores = np.zeros(len(queries))
        for row, columns in zip(rows, group.columns[:, some], strict=True):
            top = row.max()  # Scores count from the best word of each place: no large constants.
            scores += (row - top if np.isfinite(top) else row)[columns]
        if self.frequencies is not None:
            scores += self.frequencies[queries]
        return Scored(queries, scores)


def rank_queries(
    pairs: Iterable[tuple[PlacedText, Float32Array]],
    log: AlignedLog,
    *,
    shape_shows: bool = True,
    score: Scorer | None = None,
) -> list[Attacked]:
    """Rank the query behind each release in a log that holds it.

    pairs
        Texts with their rows, as :func:`evidence_rows` gives them.
    score
        How log queries are scored; by default place by place. See ``unordered``.
    """
    score = score or log.score
    ranked = []
    for text, rows in pairs:
        target = log.log.numbers.get(folded_text(text.text), UNKNOWN)
        if target == UNKNOWN:
            raise UsageError(
                "the log does not hold all the texts, so no attacker could find them there: add "
                "them to the log, or judge the nearest query by its meaning (nearest_queries)"
            )
        scored = score(rows, text.shape if shape_shows else None)
        rank, ties = scored.rank(target, len(log.log))
        variants = max((len(place.shown) for place in text.places), default=0)
        ranked.append(Attacked(text.id, variants, rank, ties))
    return ranked


@dataclass(frozen=True, repr=False)
class NearestQuery:
    """The best query of a log that does not hold the one that was meant.

    ``common``: the share of the true content words that it has, by their stems; None where the
    text has none. ``cosine``: how alike an encoder finds the two.
    """

    id: str
    query: str | None
    common: float | None
    cosine: float | None

    def __repr__(self) -> str:
        return f"NearestQuery(common={self.common}, cosine={self.cosine})"


def nearest_queries(
    pairs: Iterable[tuple[PlacedText, Float32Array]],
    log: AlignedLog,
    *,
    shape_shows: bool = True,
    score: Scorer | None = None,
    encoder: Encoder | None = None,
) -> list[NearestQuery]:
    """The best query of the log for each release, the attacked query itself left out.

    A release of a shape that no log query has is compared with all of its length.
    """
    score = score or log.score
    texts, best = [], []
    for text, rows in pairs:
        attacked = log.log.numbers.get(folded_text(text.text), UNKNOWN)
        for shape in (text.shape, None) if shape_shows else (None,):
            scored = score(rows, shape)
            scored.scores[scored.queries == attacked] = -np.inf
            if (number := scored.best) != UNKNOWN:
                break
        texts.append(text)
        best.append(None if number == UNKNOWN else log.log.queries[number])
    cosines: Sequence[float | None] = [None] * len(texts)
    if encoder is not None:
        truths = encoder.encode([folded_text(text.text) for text in texts])
        guesses = encoder.encode([query or "" for query in best])
        cosines = np.einsum("ij,ij->i", truths, guesses).astype(float).tolist()
    return [
        NearestQuery(text.id, query, common_content(text.text, query or ""), cosine)
        for text, query, cosine in zip(texts, best, cosines, strict=True)
    ]


def common_content(truth: str, guess: str) -> float | None:
    """The share of the true content words that a guess has, by their stems."""
    wanted = set(stems(content_words(truth)))
    if not wanted:
        return None
    return len(wanted & set(stems(content_words(guess)))) / len(wanted)
