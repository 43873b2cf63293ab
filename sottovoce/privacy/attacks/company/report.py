"""What attacks on company got: how often they name what stands for the query, and its subject."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.encoders import Encoder
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.privacy.attacks.headline import Headline, strongest
from sottovoce.privacy.attacks.subject import alike_from, cosines
from sottovoce.privacy.attacks.words import Share
from sottovoce.randomness import as_generator
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float64Array


@dataclass(frozen=True)
class Naming:
    """What one attacker named at the first guess, over all sets; it holds no text.

    group
        The string, or group, that stands for what was asked. Where several persons ask more than
        once, they are resampled for the interval: the sets of one are not independent.
    query
        It is also what was asked, word for word.
    subject
        A string with the subject of what was asked (``subject.py``), whether it was meant or not.
    hits, ranks
        Of each set: whether the true group was named, and at which guess it would have been, with
        equals counted half; infinite where the set lacks it.
    """

    attack: str
    knows: str
    group: Share
    query: Share
    subject: Share
    hits: tuple[bool, ...]
    ranks: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The share of sets in which the true group was named: by it attacks are compared."""
        return self.group.value or 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        shares = {"group": self.group, "query": self.query, "subject": self.subject}
        return {
            "attack": self.attack,
            "knows": self.knows,
            **{name: {**vars(share), "value": share.value} for name, share in shares.items()},
        }


@dataclass(frozen=True, repr=False)
class CompanyReport:
    """What all attacks on some sets got."""

    sets: int
    persons: int
    strings: int
    """In a set, at most."""
    chance: float
    """How often a blind guess at a string of the set is right."""
    subject_chance: float
    """How often such a guess has the subject of what was asked, whether it was meant or not."""
    namings: tuple[Naming, ...]
    not_tried: dict[str, str]
    """Attacks that were not tried, and why: that is no zero."""

    @property
    def strongest(self) -> Naming | None:
        """The attack that named most."""
        return strongest(self.namings)

    @property
    def headline(self) -> Headline | None:
        """The same, as other attacks report it."""
        most = self.strongest
        if most is None:
            return None
        share = most.group
        return Headline(
            "groups", most.attack, self.strings, most.mean, share.low, share.high, most.knows
        )

    def naming(self, attack: str) -> Naming:
        """What one attack got."""
        return next(made for made in self.namings if made.attack == attack)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sets": self.sets,
            "persons": self.persons,
            "strings": self.strings,
            "chance": self.chance,
            "subject_chance": self.subject_chance,
            "strongest": self.headline and self.headline.to_dict(),
            "namings": [made.to_dict() for made in self.namings],
            "not_tried": self.not_tried,
        }

    def __repr__(self) -> str:
        return f"CompanyReport({self.sets} sets, {len(self.namings)} attacks)"


@dataclass(frozen=True, repr=False)
class ChorusReport:
    """What all attacks on texts in chorus got: which of k texts is meant, and what it is."""

    texts: int
    k: int
    n: int
    """Variants of each of the k."""
    log: int
    """Queries in the attackers' log, the true one among them."""
    namings: tuple[Naming, ...]
    """``group``: the right one of the k. ``query``: that, and the query itself, at the first
    guess: the combined risk. ``subject``: the query named has the subject of the true one."""
    told: tuple[Naming, ...]
    """What the same attackers name if they are told the group."""
    not_tried: dict[str, str]
    """Attacks that were not tried, and why: that is no zero."""

    @property
    def chance(self) -> float:
        """How often a blind guess at the group is right."""
        return 1 / self.k

    @property
    def strongest(self) -> Naming:
        """The attack that named most queries in the right group."""
        return max(self.namings, key=lambda made: made.query.value or 0.0)

    @property
    def headline(self) -> Headline:
        """The same, as other attacks report it."""
        most, strings = self.strongest, self.k * self.n
        share = most.query
        return Headline(
            "queries", most.attack, strings, share.value or 0.0, share.low, share.high, most.knows
        )

    def naming(self, attack: str) -> Naming:
        """What one attack got."""
        return next(made for made in self.namings if made.attack == attack)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "texts": self.texts,
            "k": self.k,
            "n": self.n,
            "log": self.log,
            "chance": self.chance,
            "strongest": self.headline.to_dict(),
            "namings": [made.to_dict() for made in self.namings],
            "told": [made.to_dict() for made in self.told],
            "not_tried": self.not_tried,
        }

    def __repr__(self) -> str:
        return f"ChorusReport({self.texts} texts, {len(self.namings)} attacks)"


class Judge:
    """Who knows the truth: compares what attackers name with it."""

    def __init__(self, seen: Sequence[SeenSet], encoder: Encoder, kind: Sequence[str]) -> None:
        """``kind``: public texts, of which random pairs say when two have the same subject."""
        self._seen, self._encoder = seen, encoder
        self._alike_from = alike_from(encoder, kind)

    def naming(self, attack: str, knows: str, scores: Sequence[Float64Array]) -> Naming:
        """Judge the string with the largest score of each set; among equals one by chance."""
        rng = as_generator(0)
        named = [int(rng.choice(np.flatnonzero(row == row.max()))) for row in scores]
        strings = [one.strings[at] for one, at in zip(self._seen, named, strict=True)]
        right = [at == one.truth for one, at in zip(self._seen, named, strict=True)]
        queries = [
            hit and folded_text(string) == folded_text(one.text)
            for one, string, hit in zip(self._seen, strings, right, strict=True)
        ]
        near = cosines([one.text for one in self._seen], strings, self._encoder)
        alike = (near > self._alike_from).tolist()
        group, query, subject = map(self._by_person, (right, queries, alike))
        ranks = tuple(map(_rank, scores, (one.truth for one in self._seen)))
        return Naming(attack, knows, group, query, subject, tuple(right), ranks)

    @property
    def subject_chance(self) -> float:
        """The share of a set's strings with the subject of what was asked, over all sets."""
        asked = self._encoder.encode([one.text for one in self._seen])
        alike = [
            one.vectors @ vector > self._alike_from
            for one, vector in zip(self._seen, asked, strict=True)
        ]
        return float(np.mean([row.mean() for row in alike]))

    def _by_person(self, hits: Sequence[bool]) -> Share:
        persons = [one.person for one in self._seen]
        if len(set(persons)) in (1, len(persons)):
            return Share.of_texts(hits)
        right = dict.fromkeys(persons, 0)
        total = dict.fromkeys(persons, 0)
        for person, hit in zip(persons, hits, strict=True):
            right[person] += hit
            total[person] += 1
        return Share.by_text(list(right.values()), list(total.values()))


def _rank(scores: Float64Array, truth: int) -> float:
    """At which guess the truth is named; of several with the same score, in the middle."""
    if truth < 0:
        return math.inf
    better, equal = (scores > scores[truth]).sum(), (scores == scores[truth]).sum()
    return float(1 + better + (equal - 1) / 2)
