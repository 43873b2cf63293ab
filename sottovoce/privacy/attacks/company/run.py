"""Every attack on company that applies, with what each attacker knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.likeness import LEAST_REFERENCE
from sottovoce.mechanisms.base import SetMechanism
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.company.beliefs import (
    Belief,
    is_popular,
    is_sensitive,
    looks_like,
    nothing,
)
from sottovoce.privacy.attacks.company.lists import list_beliefs
from sottovoce.privacy.attacks.company.nearness import LikeHistory, among_neighbours, near_to
from sottovoce.privacy.attacks.company.public_texts import PublicTexts, queries_of
from sottovoce.privacy.attacks.company.report import CompanyReport, Judge
from sottovoce.privacy.attacks.company.sessions import by_session, clustering, linkage, repetition
from sottovoce.privacy.attacks.company.sets import SeenSet, sets_of_cover
from sottovoce.privacy.attacks.company.sources import recurrence, subtraction
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.releases import Released
from sottovoce.randomness import as_generator
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array

LAW = "the pool, the parameters and the law of the sets"
STRINGS = "strings as they may be sent"
BACKGROUND = 1000
"""Strings of the pool that stand for decoys in attacks on sessions."""
FEWEST_SUBJECTS, NEAR_A_SUBJECT = 20, 5
"""Whose subjects are known together, and how many public strings show what one is about."""
MOST_STAND_INS = 50
"""So many strings that stand for something asked are looked past, for the nearest others."""
NO_POPULARITY = "the pool states no popularity"
NO_REFERENCE = "it learns from public texts of the person's kind: give a reference (--log)"
NOTHING_NEAR = "the pool has too few strings beside those that stand for what is attacked"
FEW_SUBJECTS = "it knows what all persons ask about, not who: it needs at least 20 different texts"
NO_SUBJECTS = "it was not tried on this: it knows what all persons ask about"
NO_CANDIDATES = (
    "it needs a list of what may have been asked that holds all of it: give one (--log), perhaps "
    "with --add-originals"
)
NO_HISTORY = (
    f"it needs what persons asked before, {LEAST_REFERENCE} different texts at least: give "
    "histories (--session with --history)"
)
NO_LIST = "it needs a list of decoys"
NO_SESSIONS = "it needs several sets of a person: say whose they are (--session)"
ONE = "one person"
"""Whose all sets of a session are."""
ONE_PERSON = "it needs the sets of several persons"


@dataclass(frozen=True, repr=False)
class Knowledge:
    """What attackers have besides the sets.

    reference
        Public texts of the kind that these persons ask.
    histories
        What persons asked before, by their name in ``persons``.
    decoys
        A list from which decoys may have been taken.
    listed
        What may have been asked: a list that holds all that is attacked.
    add_asked
        Put what is attacked beside that list.
    asked
        All that is attacked, for who knows on which subjects, and not who asks on which. Attacks
        put it in.

    What is attacked is taken out of the first two.
    """

    reference: Sequence[str] = ()
    histories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    decoys: Collection[str] = ()
    listed: Sequence[str] = ()
    add_asked: bool = False
    asked: Sequence[str] = ()

    def without(self, texts: Sequence[str]) -> Knowledge:
        """The same without the texts that are attacked, but knowing their subjects."""
        attacked = frozenset(map(folded_text, texts))

        def others(known: Sequence[str]) -> Sequence[str]:
            if isinstance(known, PublicTexts):
                return known.without(attacked)
            return [text for text in known if folded_text(text) not in attacked]

        return replace(
            self,
            reference=others(self.reference),
            histories={person: others(asked) for person, asked in self.histories.items()},
            asked=sorted(attacked),
        )


def attack_company(
    cover: SetMechanism,
    sets: Sequence[Sequence[str]],
    texts: Sequence[str],
    *,
    persons: Sequence[str] | None = None,
    knowledge: Knowledge | None = None,
) -> CompanyReport:
    """Attack sets that a mechanism made, knowing its pool, parameters and law.

    sets, texts
        The strings released for each text, as ``Obfuscator`` gives them in ``variants``.
    persons
        Whose each is, in the order in which they were asked; by default everybody asks once.
    """
    known = knowledge or Knowledge()
    if not known.decoys:  # All that this mechanism ever sends: subtracting it leaves nothing.
        known = replace(known, decoys=cover.pool.strings)
    seen = sets_of_cover(cover, sets, texts, persons)
    return attack_sets(seen, cover.pool, known, source=LAW)


def attack_released_sets(
    cover: SetMechanism,
    releases: Sequence[Released],
    log: QueryLog | None,
    session: bool,
    history: Sequence[str] = (),
    *,
    add_originals: bool = False,
) -> CompanyReport:
    """Attack the sets of a file; the log shows what people of the kind ask.

    A log that holds all that is attacked is also a list of what may have been asked.

    session
        Whether all are one person's; else everybody asks once.
    history
        What this person asked before.
    add_originals
        Put what is attacked beside the log.
    """
    attacked = [released for released in releases if released.variants]
    queries = () if log is None else queries_of(log, cover.pool)
    return attack_company(
        cover,
        [released.variants for released in attacked],
        [released.text for released in attacked],
        persons=[ONE] * len(attacked) if session else None,
        knowledge=Knowledge(queries, {ONE: history}, listed=queries, add_asked=add_originals),
    )


def attack_sets(
    seen: Sequence[SeenSet],
    pool: Pool,
    knowledge: Knowledge | None = None,
    *,
    source: str = STRINGS,
) -> CompanyReport:
    """Attack sets from any source.

    pool
        Strings as the source may send them, decoys and queries alike: what is learned is learned
        against them.
    source
        What is known of how sets are made, for reports.
    """
    if not seen:
        raise UsageError("there is nothing to attack: there is no set")
    known = (knowledge or Knowledge()).without([one.text for one in seen])
    attackers = _Attackers(seen, pool, known, source)
    judge = Judge(seen, pool.encoder, pool.strings)
    namings = tuple(
        judge.naming(attack, knows, scores) for attack, knows, scores in attackers.scores()
    )
    present = [1 / len(one.strings) for one in seen if one.truth >= 0]
    return CompanyReport(
        sets=len(seen),
        persons=len({one.person for one in seen}),
        strings=max(len(one.strings) for one in seen),
        chance=float(sum(present) / len(seen)),
        subject_chance=judge.subject_chance,
        namings=namings,
        not_tried=attackers.not_tried,
    )


def beliefs_about(
    pool: Pool, known: Knowledge, not_tried: dict[str, str]
) -> Iterator[tuple[str, tuple[str, Belief]]]:
    """What attackers may believe of single strings, each with what they know for it.

    Beliefs that nothing is known for are noted in ``not_tried``, with the reason.
    """
    yield "law alone", ("nothing of what people ask", nothing)
    if pool.popularity is None:
        not_tried["popularity"] = NO_POPULARITY
    else:
        yield "popularity", ("how popular strings are, as the pool says", is_popular(pool))
    knows = "that people hide sensitive subjects, by a list of words"
    yield "sensitive subjects", (knows, is_sensitive(pool.encoder))
    reference = None
    if _different(known.reference) < LEAST_REFERENCE:
        for name in ("classifier", "nearest", "list, classifier", "list, kind"):
            not_tried[name] = NO_REFERENCE
    else:
        reference = PublicTexts.of(known.reference, pool)
        knows = f"{reference.kind.reference:,} public texts of the person's kind"
        yield "classifier", (knows, looks_like(reference.kind))
        yield "nearest", (knows, near_to(reference))
    yield from _on_subjects(pool, known, not_tried)
    yield from _on_lists(pool, known, reference, not_tried)
    asked = {
        person: texts
        for person, texts in known.histories.items()
        if _different(texts) >= LEAST_REFERENCE
    }
    if not asked:
        not_tried["history"] = NO_HISTORY
    else:
        kind = "" if reference is None else ", and public texts of the person's kind"
        knows = f"what the person asked before{kind}"
        likeness = None if reference is None else reference.kind
        yield "history", (knows, LikeHistory(asked, pool, likeness))


def _on_subjects(
    pool: Pool, known: Knowledge, not_tried: dict[str, str]
) -> Iterator[tuple[str, tuple[str, Belief]]]:
    """By who knows what all persons ask about, not whose is which."""
    why, near = None, PublicTexts([], pool)
    if len(known.asked) < FEWEST_SUBJECTS:
        why = FEW_SUBJECTS if known.asked else NO_SUBJECTS
    else:
        near = PublicTexts(strings_near(known.asked, pool), pool)
        why = None if len(near) >= LEAST_REFERENCE else NOTHING_NEAR
    if why is not None:
        for name in ("subjects", "nearest subject", "neighbours of subjects"):
            not_tried[name] = why
        return
    knows = f"{len(near):,} public texts on the subjects of all persons, not whose is which"
    yield "subjects", (knows, looks_like(near.kind))
    yield "nearest subject", (knows, near_to(near))
    yield "neighbours of subjects", (knows, among_neighbours(near))


def _on_lists(
    pool: Pool, known: Knowledge, reference: PublicTexts | None, not_tried: dict[str, str]
) -> Iterator[tuple[str, tuple[str, Belief]]]:
    """By who has a list of what may have been asked."""
    listed = PublicTexts.of(known.listed, pool)
    beside = PublicTexts([text for text in known.asked if text not in listed.first], pool)
    if not listed or (beside and not known.add_asked):
        not_tried["list"] = NO_CANDIDATES
        return
    count = len(listed.different) + len(beside)
    for name, more, belief in list_beliefs(listed, beside, reference, not_tried):
        yield name, (f"a list of {count:,} texts with all that were asked in it{more}", belief)


def strings_near(texts: Sequence[str], pool: Pool) -> list[str]:
    """The strings of the pool nearest to each of some texts, without what stands for any."""
    stand_for_them = set(pool.representatives(texts).tolist())
    # Some more of each: what stands for this text, or for one like it, is among the nearest.
    more = min(len(stand_for_them), MOST_STAND_INS)
    nearest = pool.best(pool.encoder.encode([*texts]), min(NEAR_A_SUBJECT + more, len(pool)))
    places = {
        place
        for row in nearest.tolist()
        for place in [place for place in row if place not in stand_for_them][:NEAR_A_SUBJECT]
    }
    return [pool.strings[place] for place in sorted(places)]


def _different(texts: Sequence[str]) -> int:
    """How many different texts there are."""
    return len(texts.first if isinstance(texts, PublicTexts) else set(map(folded_text, texts)))


def _kept(belief: Belief) -> Belief:
    """The same, looking at each set once: attacks on sessions ask again."""
    if belief is nothing:
        return belief
    known: dict[int, Float64Array] = {}

    def looked_up(seen: SeenSet) -> Float64Array:
        if id(seen) not in known:
            known[id(seen)] = belief(seen)
        return known[id(seen)]

    return looked_up


Attempt = tuple[str, str, list[Float64Array]]
"""An attack, what the attacker knows, and the log-odds of the strings of each set."""


class _Attackers:
    """All attackers: what they know, and what they make of it."""

    def __init__(self, seen: Sequence[SeenSet], pool: Pool, known: Knowledge, source: str) -> None:
        self.seen, self.pool, self.known, self.source = seen, pool, known, source
        self.not_tried: dict[str, str] = {}

    def scores(self) -> Iterator[Attempt]:
        """The attacks that apply, one after the other; all others with the reason why not."""
        beliefs = {
            name: (knows, _kept(belief))
            for name, (knows, belief) in beliefs_about(self.pool, self.known, self.not_tried)
        }
        for name, (knows, belief) in beliefs.items():
            yield name, f"{self.source}; {knows}", [one.inside + belief(one) for one in self.seen]
        yield from self._on_sources()
        if len({one.person for one in self.seen}) == len(self.seen):
            for name in ("repetition", "linkage", "clustering"):
                self.not_tried[name] = NO_SESSIONS
            return
        yield from self._on_sessions(beliefs)

    # Where decoys come from

    def _on_sources(self) -> Iterator[Attempt]:
        if self.known.decoys:
            knows = f"a list of {len(self.known.decoys):,} strings from which decoys are taken"
            yield "subtraction", knows, subtraction(self.seen, self.known.decoys)
        else:
            self.not_tried["subtraction"] = NO_LIST
        if len({one.person for one in self.seen}) > 1:
            yield "recurrence", "the sets of all persons", recurrence(self.seen)
        else:
            self.not_tried["recurrence"] = ONE_PERSON

    # Sessions

    def _on_sessions(self, beliefs: Mapping[str, tuple[str, Belief]]) -> Iterator[Attempt]:
        again = "whose sets they are, and that the same was asked again"
        repeated = by_session(self.seen, repetition)
        yield "repetition", f"{self.source}; {again}", repeated
        together = "whose sets they are, and that they are about one subject"
        background = self._background()
        yield "linkage", together, by_session(self.seen, linkage(background))
        for name, (knows, belief) in beliefs.items():
            read = clustering(background, len(self.pool), belief)
            clusters = by_session(self.seen, read)
            if belief is nothing:
                yield "clustering", f"{self.source}; {together}", clusters
                continue
            yield f"clustering, {name}", f"{self.source}; {together}; {knows}", clusters
            believed = [
                scores + belief(one) for scores, one in zip(repeated, self.seen, strict=True)
            ]
            yield f"repetition, {name}", f"{self.source}; {again}; {knows}", believed

    def _background(self) -> Float32Array:
        some = as_generator(0).permutation(len(self.pool))[:BACKGROUND]
        return np.asarray(self.pool.vectors[np.sort(some)])
