"""What goes into the ledger and what comes out of it, as data and in words; and its errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import SUBJECT, Guarantee, Notion

if TYPE_CHECKING:
    from sottovoce.obfuscation import Obfuscation, Obfuscator


TEXT = "text"


class Promise(NamedTuple):
    """Releases under the same promise add up; those under different promises never do.

    Euclidean distance in one space is another metric than in the next, so the space belongs to a
    metric promise. A local promise about whole texts, or about their subjects, is another than one
    about words: ``metric`` says ``text`` or ``subject`` there.
    """

    notion: Notion
    metric: str | None = None
    space_sha256: str | None = None

    @classmethod
    def of(cls, guarantee: Guarantee, space_sha256: str | None) -> Promise:
        """The promise that a guarantee makes on a space."""
        if guarantee.notion == "local" and guarantee.scope in (TEXT, SUBJECT):
            return cls("local", guarantee.scope)
        metric = guarantee.notion == "metric"
        return cls(guarantee.notion, guarantee.metric, space_sha256 if metric else None)

    @property
    def unit(self) -> str:
        """What its nats are counted for."""
        return unit(self.notion, self.metric)

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def unit(notion: Notion, metric: str | None) -> str:
    """What nats are counted for under a notion, in words."""
    if notion == "metric":
        return f"per unit of {metric} distance"
    if metric == TEXT:
        return "between any two texts"
    if metric == SUBJECT:
        return "between any two subjects"
    return "per word, inside its group" if notion == "group" else "per word"


@dataclass(frozen=True, repr=False)
class Entry:
    """A release about to happen.

    Of ``text`` a keyed hash is written down, of ``variants`` how many they are.

    mechanism, release, space, space_sha256
        How the variants were drawn: the mechanism's spec, the strategy, the space if there is one.
    guarantee, releases
        What one release promises, and how many there are: n for ``independent``, 1 for ``once``,
        0 if no word needed protection.
    protected, in_clear, unknown
        How many words the mechanism replaced, how many stay as they are, and how many the space
        lacks: uniform words stood in for them, so that they are among the protected, or they were
        left out.
    destination
        Who gets the variants: the name of an engine.
    words
        Keyed hashes of the words, each once, if their draws are remembered.
    remembered_by
        The fingerprint of the key by which draws are remembered; None: they were drawn afresh.
    elsewhere
        Whether an engine elsewhere gets it, which can compare it with what it got before.
    company, representative
        How the company is drawn in which the text leaves; None: in none. And the public string
        that stands for it there, if one does. Keyed hashes of both are written down.
    """

    text: str
    variants: tuple[str, ...]
    mechanism: str
    release: str
    guarantee: Guarantee
    releases: int
    destination: str
    space: str | None = None
    space_sha256: str | None = None
    protected: int = 0
    in_clear: int = 0
    unknown: int = 0
    words: tuple[str, ...] = ()
    remembered_by: str | None = None
    elsewhere: bool = False
    company: Mapping[str, Any] | None = None
    representative: str | None = None

    def __post_init__(self) -> None:
        counts = (self.releases, self.protected, self.in_clear, self.unknown)
        if any(type(count) is not int or count < 0 for count in counts):
            raise UsageError("releases and words are counted in whole numbers from 0")
        names = (self.mechanism, self.release, self.destination, self.space or "")
        if not all(name.isprintable() for name in names):
            raise UsageError("names of mechanisms, spaces and destinations are one printable line")
        if self.spent == math.inf:
            raise UsageError("the cost is too large to be counted: use a smaller epsilon")

    @classmethod
    def of(
        cls,
        result: Obfuscation,
        obfuscator: Obfuscator,
        destination: str,
        *,
        elsewhere: bool = True,
    ) -> Entry:
        """The entry for a result of this obfuscator."""
        space, sha256 = obfuscator.mechanism.metric_space or (None, None)
        counts = result.counts
        several = 1 if result.release == "once" else min(len(result.variants), obfuscator.n)
        return cls(
            text=result.text,
            variants=result.variants,
            mechanism=result.mechanism,
            release=result.release,
            guarantee=result.guarantee,
            releases=0 if result.spent == 0 else several,
            destination=destination,
            space=space,
            space_sha256=sha256,
            protected=counts.protected,
            in_clear=counts.kept,
            unknown=counts.uniform + counts.dropped,
            words=result.word_hashes,
            elsewhere=elsewhere,
            remembered_by=result.remembered_by,
            company=obfuscator.company_setting,
            representative=None if result.company is None else result.company.representative,
        )

    @property
    def promise(self) -> Promise:
        """What the release is counted with."""
        return Promise.of(self.guarantee, self.space_sha256)

    @property
    def spent(self) -> float | None:
        """Nats per unit of the metric; None: nothing bounds it."""
        if not self.releases:
            return 0.0
        epsilon = self.guarantee.epsilon
        return None if epsilon is None else epsilon * self.releases

    def __repr__(self) -> str:
        return f"Entry({self.mechanism}, {len(self.variants)} variants, spent={self.spent})"


@dataclass(frozen=True)
class Record:
    """One line of the ledger, never changed. ``text`` is a keyed hash; totals include the line.

    ``spent`` and totals are nats per unit of the metric; None: nothing bounds them. Where all words
    had been released before by the same draws, ``repeats`` is the record of the last of them. One
    of no variants only notes that what the record ``repeats`` counted has left.
    """

    number: int
    time: str
    text: str
    mechanism: str
    space: str | None
    space_sha256: str | None
    release: str
    variants: int
    notion: Notion
    metric: str | None
    epsilon: float | None
    releases: int
    protected: int
    in_clear: int
    unknown: int
    spent: float | None
    destination: str
    repeats: int | None
    promise: str
    text_total: float | None
    total: float | None
    link: str

    @property
    def counted_by(self) -> int:
        """The record that counted the release: another one if this notes that it has left."""
        return self.number if self.repeats is None or self.variants else self.repeats

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Budget:
    """The most that may be spent under each promise, in nats per unit; None: no limit."""

    per_text: float | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        for limit in (self.per_text, self.total):
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise UsageError(
                    "a budget is a number of nats from 0; to have none, say 'sottovoce ledger "
                    "budget --none', or None in Python"
                )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Receipt:
    """A release that has been counted, and may be sent now.

    ``left_for_text`` and ``left_in_total`` are None where there is no budget.
    """

    entry: Entry
    record: Record
    left_for_text: float | None
    left_in_total: float | None

    @property
    def recalled(self) -> bool:
        """Whether all its words had been counted before, by the same draws."""
        return self.record.repeats is not None

    def __repr__(self) -> str:
        return f"Receipt({self.record.number}, spent={self.record.spent})"


@dataclass(frozen=True)
class Spent:
    """What was spent under one promise, on one text or in all.

    notion, metric, space_sha256
        The promise; ``space`` is the name of that space when it was last used.
    nats
        Per unit of the metric; None: nothing bounds it.
    releases, records, unbounded
        How many releases, in how many records, how many of these without a bound.
    in_clear
        Words sent as they were, which no epsilon covers.
    left
        Of the budget; None if there is none.
    """

    notion: Notion
    metric: str | None
    space: str | None
    nats: float | None
    releases: int
    records: int
    unbounded: int
    in_clear: int
    left: float | None
    space_sha256: str | None = None

    @property
    def unit(self) -> str:
        """What its nats are counted for."""
        return unit(self.notion, self.metric)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


# What was spent, in words.


def in_words(spent: Spent, *, nearest: float | None = None, random: float | None = None) -> str:
    """What was spent, as a sentence.

    ``nearest`` and ``random`` are typical distances, in the metric of the promise, from a word to
    its nearest neighbour and to a random word; for the default space and Euclidean distance they
    are 4.8 and 9.0.
    """
    return f"{_bound(spent, nearest, random)}{_clear(spent.in_clear)}."


def _bound(spent: Spent, nearest: float | None, random: float | None) -> str:
    if spent.nats is None:
        return "Nothing bounds what these releases say"
    at_most = f"At most {spent.nats:g} nats {spent.unit}"
    if spent.notion != "metric":
        return f"{at_most} ({_odds(spent.nats)})"
    alternatives = {"its nearest neighbour": nearest, "a random word": random}
    typical = [
        f"{spent.nats * distance:.0f} between a word and {other} ({_odds(spent.nats * distance)})"
        for other, distance in alternatives.items()
        if distance is not None
    ]
    return f"{at_most}: {', '.join(typical)}" if typical else at_most


def _odds(nats: float) -> str:
    """How far that many nats can move an observer's odds between two words."""
    powers = nats / math.log(10)
    factor = f"{math.exp(nats):.2g}" if powers < 4 else f"10^{powers:.0f}"
    return f"odds change by a factor of {factor} at most"


def _clear(count: int) -> str:
    if not count:
        return ""
    words = "1 word was" if count == 1 else f"{count} words were"
    return f"; {words} sent in clear, which no number of nats covers"


# What can go wrong. After any of these errors nothing may be sent.


class LedgerError(SottovoceError):
    """The release could not be counted, so it must not happen."""


class NoLedgerError(LedgerError):
    """There is no ledger yet, and the caller did not ask to make one."""


class DamagedLedgerError(LedgerError):
    """The ledger failed its integrity check. It is never replaced automatically."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"the ledger in {folder} is damaged ({problem}), so nothing may be released. Restore "
            "the folder from a backup, or set it aside and start anew with 'sottovoce ledger "
            "reset', which forgets what was spent"
        )


class OlderLedgerError(LedgerError):
    """The ledger is sound, and not the latest: records that were counted are not in it."""

    def __init__(self, folder: Path, records: int, counted: int) -> None:
        super().__init__(
            f"the ledger in {folder} is an older copy: it has {records:,} records, and {counted:,} "
            "had been counted here, so nothing may be released. Put the newer one back; if it is "
            "lost, go on with this one by 'sottovoce ledger check --accept-older': what was "
            "released since then stays released, and is not counted"
        )


class OtherCompanyError(SottovoceError):
    """The same query has left in other company, or in none: what both say would give it away."""

    def __init__(self, record: Record, *, in_company: bool) -> None:
        before, together = (
            ("in company", "what both have in common")
            if in_company
            else ("without company", "what it left by")
        )
        super().__init__(
            f"this query, or one with the same nearest public string, has left {before} "
            f"({record.mechanism}, record {record.number} of the ledger), and {together} would "
            "give it away: ask in the same way as before, with the settings, the pool, the encoder "
            "and the version of numpy of that record; 'sottovoce ledger reset' forgets it, and "
            "what has left stays known; nothing was sent"
        )


class BudgetError(SottovoceError):
    """The release would cost more than is left, or more than any budget covers.

    ``cost`` is None where nothing bounds it; then ``spent`` and ``left`` are None too.
    """

    def __init__(
        self,
        message: str,
        *,
        cost: float | None = None,
        spent: float | None = None,
        left: float | None = None,
    ) -> None:
        super().__init__(message)
        self.cost, self.spent, self.left = cost, spent, left
