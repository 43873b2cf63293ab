"""PrivateSearch: obfuscate, count, send, pool, re-rank. Only obfuscated queries leave."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from sottovoce.choices import POOLINGS, Pooling
from sottovoce.defaults import DEPTH, TOP
from sottovoce.engines.base import EngineError, LocalEngine, SearchEngine
from sottovoce.errors import PrivacyWarning, SottovoceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger, Receipt
from sottovoce.mechanisms.base import Mechanism, SetMechanism, require
from sottovoce.mechanisms.company import Company
from sottovoce.obfuscation import Obfuscation, Obfuscator
from sottovoce.randomness import is_seeded
from sottovoce.search.boundary import LONGEST_QUERY, Answers, Boundary, Outgoing
from sottovoce.search.pooling import Pooled, pool
from sottovoce.search.reranking import Ranked, Reranker, rerank
from sottovoce.text import folded_text
from sottovoce.text.comparing import comparable
from sottovoce.text.tokens import tokenize
from sottovoce.text.words import snippet

SAME_SET = (
    "this set was drawn and counted before: however often it is sent, it tells no more of the "
    "query than once"
)
SAME_SUBJECTS = (
    "this company of subjects was drawn and counted before: however many searches it is sent for, "
    "they tell no more of which subject is meant than one, as far as strings within a subject are "
    "asked as its weights say"
)
RECALLED = (
    "each word was drawn and counted before: however often the same draw is sent, it tells no more "
    "of the word than once"
)


class Step(NamedTuple):
    """A step of a search; while sending, how many queries were answered, and of how many."""

    name: Literal["obfuscating", "counting", "sending", "reranking"]
    done: int = 0
    of: int = 0


OnStep: TypeAlias = Callable[[Step], None]
"""Called as a search proceeds. What it raises ends the search."""


@dataclass(frozen=True, repr=False)
class CountedRelease:
    """A query whose variants were drawn, checked and counted, and may be sent now."""

    result: Obfuscation
    outgoing: Outgoing
    spent: float | None
    receipt: Receipt | None
    """What the ledger says; None without one."""

    @property
    def recalled(self) -> bool:
        """Whether all words had been counted before, by the same draws."""
        return self.receipt is not None and self.receipt.recalled

    def __repr__(self) -> str:
        return f"CountedRelease({len(self.outgoing)} queries, spent={self.spent})"


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The result of a search. Only ``sent`` left this machine; ``query`` and ``hits`` did not."""

    query: str
    sent: tuple[str, ...]
    hits: tuple[Ranked, ...]
    pool: int
    mechanism: str
    release: str
    guarantee: Guarantee
    spent: float | None
    """Nats per unit of distance (per word for notion ``local``); None: nothing bounds it."""
    said_aloud: int
    """How many different words of the query stand in what was sent, by chance or kept in clear."""
    words: int
    """How many different words the query has."""
    problem: str | None
    """Why some queries were not answered; None if all were."""
    query_sent: bool
    """Whether the query itself is among what was sent."""
    company: Company | None
    """The set of public queries in which the query left, if the mechanism hides it in one."""
    engine: str
    reranker: str
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    recalled: bool
    """Whether all words had been counted before, by the same draws; perhaps only in a preview."""
    fresh: bool
    """Whether words were drawn anew, whatever was sent before."""
    seeded: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``sottovoce search``."""
        return {
            "query": self.query,
            "sent": list(self.sent),
            "hits": [{**hit._asdict(), "found_by": list(hit.found_by)} for hit in self.hits],
            "pool": self.pool,
            "mechanism": self.mechanism,
            "release": self.release,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent,
            "said_aloud": self.said_aloud,
            "words": self.words,
            "query_sent": self.query_sent,
            "company": self.company and self.company.to_dict(),
            "problem": self.problem,
            "engine": self.engine,
            "reranker": self.reranker,
            "unknown": list(self.unknown),
            "kept": list(self.kept),
            "recalled": self.recalled,
            "fresh": self.fresh,
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"SearchResult({len(self.sent)} queries sent, {len(self.hits)} hits)"


def require_sendable(mechanism: Mechanism) -> None:
    """Refuse sets with strings that no engine is sent.

    One with such a string would be refused, and drawn again for the same query each time.
    """
    require(
        not isinstance(mechanism, SetMechanism) or mechanism.pool.longest <= LONGEST_QUERY,
        f"the pool has strings of over {LONGEST_QUERY:,} characters, which no engine is sent: "
        "'sottovoce pools make NAME --from FILE' leaves them out",
    )


@dataclass(frozen=True)
class PrivateSearch:
    """Searches an engine that need not cooperate, and does not learn the query.

    obfuscator
        Makes the variants. Secure randomness is its default; a seeded one is warned about.
    reranker
        Orders what was found by the true query, on this machine.
    ledger
        Counts each release before it is sent, and refuses when a budget is spent. It also
        remembers words: one that was sent before gets the same substitutes, at no further cost.
    fresh
        Draw words anew even if they were drawn before: each draw tells more, and is counted.
        Without a ledger, and with a seed, all are drawn afresh.

    Whatever the mechanism drew is sent, the query itself included if chance has it so: the
    guarantee covers that. To draw again, or to send nothing, whenever the query comes out would
    tell that it is none of what was sent.
    """

    obfuscator: Obfuscator
    engine: SearchEngine
    reranker: Reranker
    ledger: Ledger | None = None
    fresh: bool = False
    pooling: Pooling = "union"
    depth: int = DEPTH

    def __post_init__(self) -> None:
        require(self.pooling in POOLINGS, f"pooling is one of {', '.join(POOLINGS)}")
        require(self.depth >= 1, f"depth must be at least 1, got {self.depth}")
        if self.obfuscator.keeps_company:
            self._require_memory()
        require_sendable(self.obfuscator.mechanism)
        if is_seeded(self.obfuscator.rng) and self.engine.remote:
            warnings.warn(
                "a seeded search protects nobody: whoever has the seed can undo it",
                PrivacyWarning,
                stacklevel=3,
            )

    def _require_memory(self) -> None:
        """A query must not leave in other company each time: the sets would be compared."""
        name = "chorus" if self.obfuscator.mechanism.by_word else self.obfuscator.mechanism.name
        require(
            not self.fresh,
            f"{name} never draws a query's company anew (--fresh), since what two sets have in "
            "common would give the query away: leave --fresh out; a second time costs nothing",
        )
        require(
            self.ledger is not None or not self.engine.remote,
            f"{name} needs the ledger, by which a query always leaves in the same company: leave "
            "--no-ledger out",
        )
        require(
            not (self.engine.remote and is_seeded(self.obfuscator.rng)),
            f"{name} takes no seed (--seed) where queries go elsewhere: each seed would send the "
            "query in other company, and what the sets have in common would give it away; leave "
            "the seed out, or search on this machine (--engine bm25)",
        )

    @cached_property
    def boundary(self) -> Boundary:
        """What sends the queries of this search."""
        return Boundary(self.engine)

    def search(self, query: str, top: int = TOP, *, on_step: OnStep | None = None) -> SearchResult:
        """The best hits for a query that stays on this machine.

        Nothing is sent if the query cannot be obfuscated, or if the ledger refuses or fails.
        """
        require(top >= 1, f"ask for at least one hit, not {top}")
        return self.send(self.count(query, on_step=on_step), top, on_step=on_step)

    def count(self, query: str, *, on_step: OnStep | None = None) -> CountedRelease:
        """Obfuscate a query and count what sending it will cost. Nothing is sent yet.

        In which way it leaves is noted by :meth:`send`; whoever sends it otherwise calls
        :meth:`note_leaving` before.
        """
        _tell(on_step, Step("obfuscating"))
        (result,) = self._drawing().obfuscate([query])
        _tell(on_step, Step("counting"))
        return self.counted(result)

    def count_many(self, queries: Iterable[str]) -> Iterator[CountedRelease]:
        """The same for several queries, drawn in batches, one after the other."""
        return map(self.counted, self._drawing().obfuscate(queries))

    @property
    def remembers(self) -> bool:
        """Whether a word that was sent before gets the same substitutes again."""
        return not (self.fresh or self.ledger is None or is_seeded(self.obfuscator.rng))

    def _drawing(self) -> Obfuscator:
        """What draws the variants: by the ledger's key if words are remembered."""
        if self.ledger is None or not self.remembers:
            return self.obfuscator
        return replace(self.obfuscator, memory_key=self.ledger.memory_key())

    def counted(self, result: Obfuscation) -> CountedRelease:
        """The same for a query that has been obfuscated."""
        outgoing = self.boundary.check(result.variants)
        if self.ledger is None:
            return CountedRelease(result, outgoing, result.spent, receipt=None)
        # Nobody compares what stays on this machine.
        engine = self.engine
        entry = Entry.of(result, self.obfuscator, engine.name, elsewhere=engine.remote)
        receipt = self.ledger.charge(entry, leaving=False)
        return CountedRelease(result, outgoing, receipt.record.spent, receipt)

    def answer(self, result: Obfuscation, top: int | None = TOP) -> SearchResult:
        """Count and send a query that has been obfuscated; see :meth:`send`."""
        return self.send(self.counted(result), top)

    def send(
        self, release: CountedRelease, top: int | None = TOP, *, on_step: OnStep | None = None
    ) -> SearchResult:
        """Send what was counted, pool the answers, order them by the true query.

        ``top=None`` answers the whole pool.
        """
        require(top is None or top >= 1, f"ask for at least one hit, not {top}")
        result, outgoing = release.result, release.outgoing
        _tell(on_step, Step("sending", 0, len(outgoing)))
        self.note_leaving(release)  # Who stops at that step has sent nothing.
        try:
            answers = self.boundary.send(
                outgoing, self.depth, lambda done, of: _tell(on_step, Step("sending", done, of))
            )
        except EngineError as error:
            raise self._counted_anyway(error, release.spent) from None
        _tell(on_step, Step("sending", len(answers.hits), len(outgoing)))
        # In the order of the variants: that of sending is random.
        sent = tuple(query for query in outgoing.queries if query in answers.sent)
        pooled = pool([answers.hits.get(query, []) for query in sent], self.pooling)
        _tell(on_step, Step("reranking"))
        ranked = self._ranked(result.text, pooled)
        guarantee, recalled = result.guarantee, release.recalled
        again = RECALLED if result.company is None else SAME_SET
        if result.company is not None and result.company.subjects is not None:
            again = SAME_SUBJECTS
        query_words, sent_words = _words(result.text), _words(" ".join(sent))
        return SearchResult(
            query=result.text,
            sent=sent,
            hits=tuple(
                ranked if top is None else [self._shown(hit, result.text) for hit in ranked[:top]]
            ),
            pool=len(pooled),
            mechanism=result.mechanism,
            release=result.release,
            guarantee=guarantee.with_caveats(again) if recalled else guarantee,
            spent=release.spent,
            said_aloud=len(query_words & sent_words),
            words=len(query_words),
            problem=_problem(answers, len(outgoing)),
            query_sent=folded_text(result.text) in map(folded_text, sent),
            company=_company_sent(result.company, sent),
            engine=self.engine.name,
            reranker=self.reranker.name,
            unknown=result.unknown,
            kept=result.kept,
            recalled=recalled,
            fresh=result.remembered_by is None,
            seeded=result.seeded,
        )

    def note_leaving(self, release: CountedRelease) -> None:
        """Note in the ledger that what was counted leaves now, or refuse it: then it must not.

        It may have left in another way in the meantime.
        """
        if len(release.outgoing):
            note_leaving(self.ledger, release.receipt, self.engine)

    def _counted_anyway(self, error: EngineError, spent: float | None) -> EngineError:
        if self.ledger is None:
            return error
        cost = "without bound" if spent is None else f"{spent:g} nats"
        again = "; another try costs nothing" if self.remembers else ""
        return EngineError(
            f"{error}. Some queries may have been sent: the release is counted ({cost}){again}"
        )

    def _ranked(self, query: str, pooled: list[Pooled]) -> list[Ranked]:
        try:
            texts = [self._text(document) for document in pooled]
            return rerank(query, pooled, self.reranker, texts)
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could hold the query: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"re-ranking with {self.reranker.name} failed ({type(error).__name__}); try "
                "--rerank bm25 or --rerank none"
            ) from None

    @cached_property
    def _local(self) -> LocalEngine | None:
        return self.engine if isinstance(self.engine, LocalEngine) else None

    def _text(self, document: Pooled | Ranked) -> str:
        """What is known of a document: all of it on this machine, title and snippet elsewhere."""
        if self._local is not None:
            return self._local.text(document.doc_id)
        return f"{document.title}\n{document.snippet}".strip()

    def _shown(self, hit: Ranked, query: str) -> Ranked:
        if self._local is None:
            return hit
        return hit._replace(snippet=snippet(self._text(hit), hit.title, query))


class Destination(Protocol):
    """What an engine says of itself to the ledger."""

    name: str
    remote: bool


def note_leaving(ledger: Ledger | None, receipt: Receipt | None, engine: Destination) -> None:
    """Tell the ledger that what it counted leaves now, or refuse it: then it must not leave.

    What was counted for one engine is sent to no other: the ledger would not know of it.
    """
    if (ledger is None) != (receipt is None):
        how = "without the ledger" if receipt is None else "by a ledger that is not at hand"
        raise SottovoceError(f"this was counted {how}: count it anew; nothing was sent")
    if ledger is None or receipt is None:
        return
    entry = receipt.entry
    if (entry.destination, entry.elsewhere) != (engine.name, engine.remote):
        raise SottovoceError(
            "this was counted for another engine: count it anew for this one; nothing was sent"
        )
    ledger.note_leaving(receipt)


def _tell(on_step: OnStep | None, step: Step) -> None:
    if on_step is not None:
        on_step(step)


def _problem(answers: Answers, sent: int) -> str | None:
    if answers.failure is None:
        return None
    return f"only {len(answers.hits)} of {sent} queries were answered: {answers.failure}"


def _company_sent(company: Company | None, sent: tuple[str, ...]) -> Company | None:
    """The company as far as it left: an engine may have failed underway."""
    if company is None:
        return None
    left = folded_text(company.representative) in map(folded_text, sent)
    return replace(company, queries=len(sent), sent=left)


def _words(text: str) -> set[str]:
    return {comparable(token.surface) for token in tokenize(text)}
