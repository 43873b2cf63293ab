"""Attacks on a chorus: which of k obfuscated texts is the person's own, and what it says.

What is seen are the variants of k texts, and which belong together: words that stand for one word
lie near each other, so this is taken as known. With e_g(q) = ln P(group g | query q), by the
mechanism's law, a group is the person's with the log-odds

    ln sum_q exp(e_g(q) + ln prior(q))  -  ln sum_s exp(e_g(s) + ln decoy(s))

over the queries q of a log that holds the true one, weighted by what the attacker believes that
people ask, and the strings s of the pool, as decoys are drawn. The group with the largest is named,
and in it the query with the largest e_g(q) + ln prior(q). Of a person who asks several times, the
group is named whose released words come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.obfuscation import Chorus, Obfuscation
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.beliefs import Belief
from sottovoce.privacy.attacks.company.report import ChorusReport, Judge, Naming
from sottovoce.privacy.attacks.company.run import NO_SESSIONS, Knowledge, beliefs_about
from sottovoce.privacy.attacks.company.sessions import by_session, recurring_words
from sottovoce.privacy.attacks.company.sets import SeenSet, owners_of
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.places import line_up
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.queries import AlignedLog, Scored
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.sorted_by_points import sort_by_points
from sottovoce.privacy.attacks.unordered import UnorderedScorer, find_places
from sottovoce.privacy.attacks.words import evidence_rows
from sottovoce.randomness import Randomness
from sottovoce.text.comparing import folded_text
from sottovoce.types import UNKNOWN, BoolArray, Float32Array, Float64Array, Progress

GROUPS_KNOWN = "the mechanism with its parameters, the pool, and which variants belong together"
TOLD = "which group is meant"
WHOSE = "whose searches they are"
NO_HISTORIES = "on a chorus it was not built"
SURPRISE = np.log(1e-6)
"""How likely a group is of words that neither log nor pool puts together: laws are computed, and
cut texts read, with errors that must not decide alone."""

DIGITS = 9
"""Of log-odds: groups that differ by rounding alone are alike, and one is named by chance."""


def attack_chorus(
    chorus: Chorus,
    results: Sequence[Obfuscation],
    log: QueryLog,
    *,
    persons: Sequence[str] | None = None,
    knowledge: Knowledge | None = None,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> ChorusReport:
    """Attack what a chorus released, knowing its mechanism, release, pool and k.

    results
        As the chorus gave them. Which group is the text's only decides if attackers are right.
    log
        Queries that attackers believe may have been asked; the texts are added to it.
    persons
        Whose each is; by default everybody asks once.
    knowledge
        Public texts of the persons' kind, for a classifier; the texts are taken out of them.
    """
    texts = [result.text for result in results]
    if not texts or any(result.choir is None for result in results):
        raise UsageError("there is no chorus to attack: give what a Chorus released")
    owners = owners_of([result.variants for result in results], texts, persons)
    candidates = _Candidates.of(texts, chorus.pool, log)
    evidence = _evidence(chorus, results, candidates, log, rng, progress)
    not_tried: dict[str, str] = {}
    known = Knowledge((knowledge or Knowledge()).without(texts).reference)
    shown = f"{GROUPS_KNOWN}; a log of {candidates.asked.sum():,} queries with the true one in it"
    decoys = [group.chance(candidates.decoys) for group in evidence]
    attempts = []
    for name, (knows, belief) in beliefs_about(chorus.pool, known, not_tried):
        prior = candidates.prior(belief, chorus.pool)
        own = [group.chance(prior) for group in evidence]
        attempts.append(_Attempt(name, f"{shown}; {knows}", np.subtract(own, decoys), prior))
    not_tried["history"] = NO_HISTORIES
    for name in [name for name in not_tried if name.startswith("list")]:
        del not_tried[name]  # All of these have one.
    words = [group.background for group in evidence]
    knows = f"{shown}; how often words are said"
    alike = attempts[0].prior
    attempts.append(_Attempt("not in the pool", knows, np.subtract(words, decoys), alike))
    if len({*owners}) == len(owners):
        not_tried["recurring words"] = NO_SESSIONS
    else:
        recurring = _recurring(results, owners)
        attempts += [
            _Attempt("recurring words", f"{shown}; {WHOSE}", recurring, alike),
            *(attempt.reading_sessions(recurring) for attempt in attempts[1:]),
        ]
    namings = [
        _judged(results, owners, evidence, candidates, chorus.pool, attempt) for attempt in attempts
    ]
    return ChorusReport(
        texts=len(texts),
        k=chorus.k,
        n=chorus.n,
        log=int(candidates.asked.sum()),
        namings=tuple(naming for naming, _ in namings),
        told=tuple(told for _, told in namings),
        not_tried=not_tried,
    )


@dataclass(frozen=True, repr=False)
class _Candidates:
    """All that a group can stand for: the queries of the log, and the strings of the pool.

    asked
        Which are in the log.
    decoys
        ln of how likely each is drawn as a decoy.
    """

    strings: list[str]
    asked: BoolArray
    decoys: Float64Array

    @classmethod
    def of(cls, texts: Sequence[str], pool: Pool, log: QueryLog) -> _Candidates:
        # Texts as they were typed come first: they are cut into words as they were released.
        typed: dict[str, str] = {}
        for string in (*texts, *pool.strings, *log.queries):
            typed.setdefault(folded_text(string), string)
        listed = frozenset([*map(folded_text, texts), *log.queries])
        places = [pool.place(string) for string in typed]
        shares = np.ones(len(pool)) if pool.popularity is None else pool.popularity
        weights = [0.0 if place is None else float(shares[place]) for place in places]
        with np.errstate(divide="ignore"):
            decoys = np.log(np.array(weights) / shares.sum())
        return cls(list(typed.values()), np.array([text in listed for text in typed]), decoys)

    def prior(self, belief: Belief, pool: Pool) -> Float64Array:
        """How likely each is asked by a belief, as logarithms; what the log lacks is not."""
        asked = np.flatnonzero(self.asked)
        strings = tuple(self.strings[at] for at in asked.tolist())
        seen = _as_seen(strings, "", UNKNOWN, "")
        odds = belief(replace(seen, vectors=_vectors(strings, pool)))
        prior = np.full(len(self.strings), -np.inf)
        prior[asked] = odds - logsumexp(odds)
        return prior


def _as_seen(strings: tuple[str, ...], text: str, truth: int, person: str) -> SeenSet:
    """Strings in the form in which beliefs and the judge take them; no law is known of them."""
    zeros = np.zeros(len(strings))
    return SeenSet(
        strings, np.empty((len(strings), 0), np.float32), zeros, zeros, text, truth, person
    )


def _vectors(strings: Sequence[str], pool: Pool) -> Float32Array:
    """The pool's own vectors where it has a string; others are computed, and not kept."""
    places = [pool.place(string) for string in strings]
    others = [at for at, place in enumerate(places) if place is None]
    vectors = np.array(pool.vectors[[place or 0 for place in places]])
    if others:
        vectors[others] = pool.encoder.encode([folded_text(strings[at]) for at in others])
    return vectors


class _Attempt(NamedTuple):
    """One attacker: the log-odds of all groups, and what candidates he thinks likely."""

    name: str
    knows: str
    odds: Float64Array
    prior: Float64Array

    def reading_sessions(self, recurring: Float64Array) -> _Attempt:
        """The same attacker, who also sees which words come again."""
        return _Attempt(
            f"recurring words, {self.name}",
            f"{self.knows}; {WHOSE}",
            self.odds + recurring,
            self.prior,
        )


class _Group(NamedTuple):
    """The evidence of one group.

    background
        ln P(group | as many words as often as they are said), comparable with the scores.
    """

    scored: Scored
    background: float

    def chance(self, prior: Float64Array) -> float:
        """The logarithm of P(group) if what it stands for is drawn by a prior."""
        terms = self.scored.scores + prior[self.scored.queries]
        likely = float(logsumexp(terms)) if len(terms) else -np.inf
        return float(np.logaddexp(likely, self.background + SURPRISE))

    def best(self, prior: Float64Array) -> int | None:
        """The candidate that is likeliest meant; None if none is possible."""
        terms = self.scored.scores + prior[self.scored.queries]
        if not len(terms) or terms.max() == -np.inf:
            return None
        return int(self.scored.queries[terms.argmax()])


def _evidence(
    chorus: Chorus,
    results: Sequence[Obfuscation],
    candidates: _Candidates,
    log: QueryLog,
    rng: Randomness,
    progress: Progress | None,
) -> list[_Group]:
    """The evidence of all groups, those of a text next to each other."""
    assert isinstance(chorus.mechanism, WordMechanism)  # noqa: S101 - a chorus has no other
    layout = chorus.pipeline
    cutter = replace(layout, order="kept", pad_to=0)
    everything = QueryLog(candidates.strings)
    mechanism = knowing_words(chorus.mechanism, layout, everything, [], progress)
    space = mechanism.space
    aligned = AlignedLog.of(CutLog.of(candidates.strings, space, cutter, as_typed=True))
    words = Prior.from_log(log.cut(space, cutter).without([result.text for result in results]))
    placed, left_out = line_up(
        list(_released(results)), space, release=chorus.release, pipeline=layout
    )
    if left_out:
        raise UsageError("the variants of some group differ in their number of words")
    shuffled, padded = layout.order == "shuffled", layout.pad_to > 0
    unordered = UnorderedScorer(aligned, ordered=not shuffled, padded=padded)
    evidence = evidence_for(mechanism, chorus.release, rng=rng)
    if shuffled:
        rough = find_places(placed, space, chorus.release)
        placed = sort_by_points(rough, evidence, progress=progress)
    groups = []
    for text, rows in evidence_rows(evidence, placed, progress):
        scored = unordered(rows) if shuffled or padded else aligned.score(rows, text.shape)
        of_this_shape = (int(candidates.asked[scored.queries].sum()) + 1) / len(aligned.log)
        groups.append(_Group(scored, _by_words(rows, words) + np.log(of_this_shape)))
    return groups


def _released(results: Sequence[Obfuscation]) -> Iterator[Released]:
    """Each group as a release of its own."""
    for number, result in enumerate(results):
        assert result.choir is not None  # noqa: S101 - it was checked
        size = len(result.variants) // result.choir.k
        for group in range(result.choir.k):
            variants = result.variants[group * size : (group + 1) * size]
            yield Released(f"{number}-{group}", result.text, variants)


def _by_words(rows: Float32Array, words: Prior) -> float:
    """The logarithm of P(rows) for words as often as they are said.

    As scores do, it counts from the best word of each place; a place that no word explains says
    nothing.
    """
    total = 0.0
    for row in rows.astype(np.float64):
        if np.isfinite(row.max()):
            total += float(logsumexp(row - row.max() + words.log_weights))
    return total


def _recurring(results: Sequence[Obfuscation], owners: Sequence[str]) -> Float64Array:
    """How much the words of each group come again in the person's other searches."""
    groups = iter(_released(results))
    seen = []
    for result, owner in zip(results, owners, strict=True):
        assert result.choir is not None  # noqa: S101 - it was checked
        k, private = result.choir
        strings = tuple(" ".join(group.variants) for group in islice(groups, k))
        seen.append(_as_seen(strings, result.text, private, owner))
    return np.concatenate(by_session(seen, recurring_words(seen)))


def _judged(
    results: Sequence[Obfuscation],
    owners: Sequence[str],
    evidence: Sequence[_Group],
    candidates: _Candidates,
    pool: Pool,
    attempt: _Attempt,
) -> tuple[Naming, Naming]:
    """What an attacker named, and what he names if he is told the group."""
    best = [group.best(attempt.prior) for group in evidence]
    named = ["" if at is None else candidates.strings[at] for at in best]
    seen, odds, truths = [], [], []
    for number, (result, owner) in enumerate(zip(results, owners, strict=True)):
        assert result.choir is not None  # noqa: S101 - it was checked
        k, private = result.choir
        some = slice(number * k, (number + 1) * k)
        seen.append(_as_seen(tuple(named[some]), result.text, private, owner))
        odds.append(np.round(attempt.odds[some], DIGITS))
        truths.append(np.eye(k)[private])
    judge = Judge(seen, pool.encoder, pool.strings)
    return (
        judge.naming(attempt.name, attempt.knows, odds),
        judge.naming(attempt.name, f"{attempt.knows}; {TOLD}", truths),
    )
