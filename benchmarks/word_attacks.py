"""Which query of a log was meant, by words released for it: for several logs and counts at once.

The attacks are those of ``sottovoce.privacy.attack`` and name the same queries. Only whether the
query is named first is worked out, so most of the work is left out: places are found, and laws
evaluated, for a text and not for each log; a law is evaluated for words that queries of the right
length have; and of fresh draws in random order, read variant by variant, no query is scored whose
score cannot reach that of the true one, nor any after one has beaten it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from sottovoce.choices import Release
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.exponential import ExponentialMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy import QueryLog, Released
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.exact_laws import ExactLaw
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.pair_sums import log_sums
from sottovoce.privacy.attacks.places import PlacedText, line_up
from sottovoce.privacy.attacks.queries import TIE, AlignedLog, rank_queries
from sottovoce.privacy.attacks.simulated_law import SimulatedLaw
from sottovoce.privacy.attacks.sorted_by_points import sort_by_points
from sottovoce.privacy.attacks.unordered import (
    MOST_PLACES,
    UnorderedScorer,
    best_assignments,
    find_places,
)
from sottovoce.privacy.attacks.words import evidence_rows
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import Float64Array, IntArray

QUERIES_AT_A_TIME, WORDS_AT_A_TIME = 256, 128

Named = dict[str, dict[str, float]]
"""By attacker and query: 1 where the query was named first, else 0."""
Priors = Mapping[str, Mapping[str, float]]
"""By what is attacked: the log-weight of each query of a log."""


@dataclass(frozen=True)
class CutLogs:
    """The attacker's logs in the words of one space; one for all epsilons of a mechanism."""

    space: WordSpace
    logs: Mapping[str, AlignedLog]

    @classmethod
    def of(
        cls,
        mechanism: WordMechanism,
        pipeline: TextPipeline,
        logs: Mapping[str, Sequence[str]],
        texts: Sequence[str],
    ) -> CutLogs:
        """The space knows all words of all logs, where its encoder gives words vectors."""
        everything = QueryLog(query for queries in logs.values() for query in queries)
        space = knowing_words(mechanism, pipeline, everything, texts).space
        cutter = replace(pipeline, order="kept", pad_to=0)
        aligned = {
            name: AlignedLog.of(
                QueryLog(queries).cut(space, cutter).with_texts(texts, space, cutter)
            )
            for name, queries in logs.items()
        }
        return cls(space, aligned)


class WordAttack:
    """Attacks on one mechanism's releases in all logs."""

    def __init__(
        self,
        mechanism: WordMechanism,
        release: Release,
        pipeline: TextPipeline,
        logs: CutLogs,
        seed: int,
        weighed: tuple[str, str, Priors] | None = None,
    ) -> None:
        """``weighed``: one more attacker, the log that this one has, and what is believed of it."""
        self._weighed = weighed
        self._space, self._release, self._pipeline = logs.space, release, pipeline
        self._logs, self._shuffled = logs.logs, pipeline.order == "shuffled"
        known = mechanism
        if logs.space is not mechanism.space:
            known = replace(mechanism, space=logs.space)
        self._known, self._seed = known, seed
        if release == "once":
            self._evidence = evidence_for(known, release, rng=seed)

    def named(self, releases: Sequence[Released], counts: Sequence[int]) -> dict[int, Named]:
        """What is named by so many variants; a release ``once`` is read as a whole."""
        if self._release != "once":
            return self._one_by_one(releases, counts)
        named: dict[int, Named] = {}
        for count in counts:
            texts = [self._lined_up(released, count) for released in releases]
            named[count] = self._by_one_point(texts)
        return named

    def _one_by_one(self, releases: Sequence[Released], counts: Sequence[int]) -> dict[int, Named]:
        """By every variant as it stands."""
        law = law_of(self._known, self._seed)
        hits: dict[int, Named] = {count: {} for count in counts}
        for released in releases:
            text = self._lined_up(released, max(counts))
            for name, log in self._logs.items():
                attackers = self._attackers(name, log, released.id)
                for attacker, count, hit in self._by_fresh_draws(text, law, log, counts, attackers):
                    hits[count].setdefault(attacker, {})[released.id] = float(hit)
        return hits

    def _attackers(self, name: str, log: AlignedLog, text: str) -> dict[str, AlignedLog]:
        """Who has a log, and what each of them believes of its queries."""
        attackers = {name: log}
        if self._weighed is not None and self._weighed[1] == name:
            label, _, priors = self._weighed
            weights = np.array([priors[text][folded_text(query)] for query in log.log.queries])
            attackers[label] = replace(log, frequencies=weights)
        return attackers

    def _lined_up(self, released: Released, count: int) -> PlacedText:
        ((text,), _) = line_up(
            [released],
            self._space,
            release=self._release,
            pipeline=self._pipeline,
            variants=count,
        )
        return text

    def _by_one_point(self, texts: Sequence[PlacedText]) -> Named:
        """Whether each query is named first in each log, by places that are found for all."""
        if self._shuffled:
            texts = find_places(texts, self._space, self._release)
            texts = sort_by_points(texts, self._evidence)
        hits: Named = {}
        for text, rows in evidence_rows(self._evidence, texts):
            for name, log in self._logs.items():
                for attacker, believed in self._attackers(name, log, text.id).items():
                    (ranked,) = rank_queries(
                        [(text, rows)],
                        believed,
                        shape_shows=not self._shuffled,
                        score=UnorderedScorer(believed) if self._shuffled else None,
                    )
                    hits.setdefault(attacker, {})[text.id] = float(ranked.rank == 1)
        return hits

    def _by_fresh_draws(
        self,
        text: PlacedText,
        law: Law,
        log: AlignedLog,
        counts: Sequence[int],
        attackers: Mapping[str, AlignedLog],
    ) -> Iterator[tuple[str, int, bool]]:
        """For each attacker and number of variants whether the query is named first."""
        shown = [[word.id for word in text.places[at].shown] for at in text.replaced]
        released = np.array(shown, dtype=np.int64).reshape(len(shown), -1).T
        group = log.groups[released.shape[1]]
        some = slice(None)
        if not self._shuffled:
            some = group.shapes[log.log.shape_numbers[text.shape]]
        queries, columns = group.queries[some], group.columns[:, some]
        target = int(np.flatnonzero(queries == log.log.numbers[folded_text(text.text)])[0])
        words, places = np.unique(columns, return_inverse=True)
        outputs, where = np.unique(released, return_inverse=True)
        rows = law.rows(outputs, words)
        scores = _Scores(
            rows[where.reshape(released.shape)], places.reshape(columns.shape), self._shuffled
        )
        for attacker, believed in attackers.items():
            logs = believed.frequencies
            weights = np.zeros(len(queries)) if logs is None else logs[queries]
            for count in counts:
                yield attacker, count, scores.is_first(target, count, weights)


class _Scores:
    """Scores of queries by variants, computed as far as it takes to see which is first.

    ``tables``: log P(word shown | word), (variants, places, words); ``columns``: the words of the
    queries, (length, queries).
    """

    def __init__(self, tables: Float64Array, columns: IntArray, shuffled: bool) -> None:
        tops = tables.max(axis=2, keepdims=True)
        self._tables = tables - np.where(np.isfinite(tops), tops, 0.0)
        self._columns, self._shuffled = columns, shuffled
        if shuffled:
            # The mean over orders is at most the product, over words, of sums over places.
            with np.errstate(divide="ignore"):
                self._words = np.log(np.exp(self._tables).sum(axis=1))
        self._known: dict[int, Float64Array] = {}

    def is_first(self, target: int, count: int, weights: Float64Array) -> bool:
        """Whether no other query is as likely, by the first ``count`` variants.

        weights
            The log of what is believed of each query beforehand.
        """
        if not self._shuffled:
            by_place = self._tables[:count].sum(axis=0)
            scores = sum(row[words] for row, words in zip(by_place, self._columns, strict=True))
            return self._beaten_by(scores + weights, target) == 0
        own = float(self._exact(np.array([target]), count, weights)[0])
        if own == -np.inf:
            return False
        length = len(self._columns)
        bounds = self._words[:count].sum(axis=0)[self._columns].sum(axis=0) + weights
        if length <= MOST_PLACES:
            bounds = bounds - count * math.lgamma(length + 1)
        margin = TIE * max(1.0, abs(own))
        order = np.argsort(-bounds, kind="stable")
        order = order[(bounds[order] >= own - margin) & (order != target)]
        for start in range(0, len(order), QUERIES_AT_A_TIME):
            some = order[start : start + QUERIES_AT_A_TIME]
            if (self._exact(some, count, weights) >= own - margin).any():
                return False
        return True

    @staticmethod
    def _beaten_by(scores: Float64Array, target: int) -> int:
        own = scores[target]
        if own == -np.inf:
            return len(scores)
        return int((scores >= own - TIE * max(1.0, abs(own))).sum()) - 1

    def _exact(self, queries: IntArray, count: int, weights: Float64Array) -> Float64Array:
        """The scores of some queries by the first variants; kept for larger counts."""
        new = [query for query in queries.tolist() if query not in self._known]
        for query, scores in zip(new, self._by_variant(np.array(new, dtype=int)), strict=True):
            self._known[query] = scores
        sums = [self._known[query][:count].sum() for query in queries.tolist()]
        return np.array(sums) + weights[queries]

    def _by_variant(self, queries: IntArray) -> Float64Array:
        """(queries, variants)."""
        columns = self._columns[:, queries]
        if not len(queries):
            return np.empty((0, len(self._tables)))
        if len(columns) > MOST_PLACES:
            padded = np.concatenate([self._tables, np.zeros((*self._tables.shape[:2], 1))], axis=2)
            by_variant = [best_assignments(table, columns.astype(np.int32)) for table in padded]
            return np.array(by_variant).T
        return permanents(np.exp(self._tables), columns).T


def permanents(chances: Float64Array, columns: IntArray) -> Float64Array:
    """Log of the mean over orders of the words, (variants, queries), all variants together."""
    variants, places, _ = chances.shape
    values: dict[int, Any] = {0: 1.0}
    for size, word in enumerate(columns, start=1):
        step = np.ascontiguousarray(chances[:, :, word].swapaxes(0, 1)).reshape(places, -1)
        layer: dict[int, Any] = {}
        for members in combinations(range(places), size):
            subset = sum(1 << member for member in members)
            total = values[subset ^ 1 << members[0]] * step[members[0]]
            for member in members[1:]:
                total += values[subset ^ 1 << member] * step[member]
            layer[subset] = total
        values = layer
    (total,) = values.values()
    with np.errstate(divide="ignore"):
        logs = np.log(total)
    return np.asarray(logs).reshape(variants, -1) - math.lgamma(places + 1)


class Law(ABC):
    """Log P(y | w) of fresh draws."""

    @abstractmethod
    def rows(self, outputs: IntArray, words: IntArray) -> Float64Array:
        """(outputs, words); the number after the last word is one that the space lacks."""


_laws: dict[Any, Law] = {}


def law_of(mechanism: WordMechanism, seed: int) -> Law:
    """Laws are kept: other collections, engines and seeds may ask for the same."""
    key = (mechanism.spec, mechanism.space.sha256, mechanism.space.output.name)
    if key not in _laws:
        _laws[key] = (
            Boxed(mechanism) if isinstance(mechanism, BoxMechanism) else Paired(mechanism, seed)
        )
    return _laws[key]


class Boxed(Law):
    """Laws of mechanisms that choose within a box: those of all words, in one table."""

    def __init__(self, mechanism: BoxMechanism) -> None:
        size = mechanism.space.size
        boxes = mechanism.laws(np.arange(size))
        edges = np.cumsum([0, *(len(box) for box, _ in boxes)])
        ids, logs = (np.concatenate(parts) for parts in zip(*boxes, strict=True))
        self._laws = csr_matrix((logs, ids, edges), shape=(size, size)).tocsc()
        self._released, self._size = mechanism.space.output.ids, size

    def rows(self, outputs: IntArray, words: IntArray) -> Float64Array:
        table = np.full((len(outputs), self._size + 1), -np.inf)
        for row, word in zip(table, outputs.tolist(), strict=True):
            some = slice(self._laws.indptr[word], self._laws.indptr[word + 1])
            row[self._laws.indices[some]] = self._laws.data[some]
            row[-1] = np.log(np.exp(row[self._released]).mean())
        return table[:, words]


class Paired(Law):
    """Laws by the distance of two words."""

    def __init__(self, mechanism: WordMechanism, seed: int) -> None:
        law = evidence_for(mechanism, "independent", rng=seed)
        assert isinstance(law, SimulatedLaw) or isinstance(mechanism, ExponentialMechanism)
        assert isinstance(law, (ExactLaw, SimulatedLaw))
        self._law = law
        self._released, self._size = mechanism.space.output.ids, mechanism.space.size
        self._normalizers = np.full(self._size, np.nan)
        self._unknown: Float64Array | None = None

    def rows(self, outputs: IntArray, words: IntArray) -> Float64Array:
        listed = words[words < self._size]
        table = np.empty((len(outputs), len(words)))
        law = self._law
        if isinstance(law, SimulatedLaw):
            self._normalize(law, listed)
            table[:, : len(listed)] = law.law(listed, outputs, self._normalizers[listed]).T
        else:
            table[:, : len(listed)] = law._exponential_law(listed, outputs).T
        if len(listed) < len(words):
            table[:, -1] = self._of_unknown(outputs)
        return table

    def _normalize(self, law: SimulatedLaw, words: IntArray) -> None:
        """Of words that were not asked for before."""
        new = words[np.isnan(self._normalizers[words])]
        for start in range(0, len(new), WORDS_AT_A_TIME):
            some = new[start : start + WORDS_AT_A_TIME]
            scores = law._pair_scores(some, self._released)
            scores += law._word_scores[self._released]
            self._normalizers[some] = logsumexp(scores, axis=1)

    def _of_unknown(self, outputs: IntArray) -> Float64Array:
        """Log P(y | a word that the space lacks): any released word may stand for it."""
        law, released = self._law, self._released
        if isinstance(law, SimulatedLaw):
            self._normalize(law, released)
            rows = law.law(released, outputs, self._normalizers[released])
            return np.asarray(logsumexp(rows, axis=0) - np.log(len(released)))
        if self._unknown is None:
            assert len(released) == self._size  # Scores of two words are symmetric.
            shares = -law._log_normalizers - np.log(self._size)
            self._unknown = log_sums(self._size, released, law._scores, shares)
        return self._unknown[outputs]
