"""PrivateSearch: obfuscate, count, send, pool, re-rank. Only obfuscated queries leave."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sottovoce.boundary import Answers, Boundary, Progress
from sottovoce.engines.base import EngineError, LocalEngine, SearchEngine
from sottovoce.errors import PrivacyWarning, SottovoceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger, request_key
from sottovoce.mechanisms.base import require
from sottovoce.obfuscation import Obfuscation, Obfuscator, folded_text
from sottovoce.pooling import METHODS, Pooled, pool
from sottovoce.randomness import is_seeded
from sottovoce.reranking import Ranked, Reranker, rerank
from sottovoce.text.resolve import comparable
from sottovoce.text.snippets import snippet
from sottovoce.text.tokens import tokenise

DEPTH, TOP = 100, 10
RECALLED = "asked before: the same queries were sent again, which tells nothing new"


@dataclass(frozen=True, repr=False)
class SearchResult:
    """What came of a search. ``query`` and ``hits`` are for its owner alone; ``sent`` left."""

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
    """Whether chance put the query itself among what was sent."""
    engine: str
    reranker: str
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    recalled: bool
    seeded: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``sottovoce search``."""
        return {
            "query": self.query,
            "sent": list(self.sent),
            "hits": [
                {
                    "doc_id": hit.doc_id,
                    "rank": hit.rank,
                    "score": hit.score,
                    "title": hit.title,
                    "snippet": hit.snippet,
                    "found_by": list(hit.found_by),
                }
                for hit in self.hits
            ],
            "pool": self.pool,
            "mechanism": self.mechanism,
            "release": self.release,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent,
            "said_aloud": self.said_aloud,
            "words": self.words,
            "query_sent": self.query_sent,
            "problem": self.problem,
            "engine": self.engine,
            "reranker": self.reranker,
            "unknown": list(self.unknown),
            "kept": list(self.kept),
            "recalled": self.recalled,
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"SearchResult({len(self.sent)} queries sent, {len(self.hits)} hits)"


@dataclass(frozen=True)
class PrivateSearch:
    """Searches an engine that need not cooperate, and does not learn the query.

    obfuscator
        Makes the variants. Secure randomness is its default; a seeded one is warned about.
    reranker
        Orders what was found by the true query, on this machine.
    ledger
        Counts each release before it is sent, and refuses when a budget is spent.
    remember
        The same query asked again sends the same variants (needs a ledger).
    original
        ``allow`` or ``refuse``: what to do if a variant happens to be the query itself. The
        guarantee covers it; refusing sends nothing at all.
    """

    obfuscator: Obfuscator
    engine: SearchEngine
    reranker: Reranker
    ledger: Ledger | None = None
    remember: bool = False
    pooling: Literal["union", "rrf", "combsum"] = "union"
    depth: int = DEPTH
    original: Literal["allow", "refuse"] = "allow"

    def __post_init__(self) -> None:
        require(self.pooling in METHODS, f"pooling is one of {', '.join(METHODS)}")
        require(self.depth >= 1, f"depth must be at least 1, got {self.depth}")
        require(self.original in ("allow", "refuse"), "original is 'allow' or 'refuse'")
        require(
            not self.remember or self.ledger is not None,
            "remembered variants are kept in the ledger: give one, or do not ask to remember",
        )
        require(
            not self.remember or not is_seeded(self.obfuscator.rng),
            "variants drawn from a seed are not remembered: they would be sent later as if they "
            "were secure",
        )
        if is_seeded(self.obfuscator.rng) and self.engine.remote:
            warnings.warn(
                "a seeded search protects nobody: whoever has the seed can undo it",
                PrivacyWarning,
                stacklevel=3,
            )

    @cached_property
    def boundary(self) -> Boundary:
        """The door that this search uses."""
        return Boundary(self.engine)

    def search(
        self, query: str, top: int = TOP, *, progress: Progress | None = None
    ) -> SearchResult:
        """The best hits for a query that stays here.

        Nothing is sent if the query cannot be obfuscated, if the ledger refuses or fails, or if
        a variant is the query itself and that was forbidden.
        """
        require(top >= 1, f"ask for at least one hit, not {top}")
        (result,) = self.obfuscator.obfuscate([query])
        return self.answer(result, top, progress=progress)

    def answer(
        self, result: Obfuscation, top: int | None = TOP, *, progress: Progress | None = None
    ) -> SearchResult:
        """The same for a query that has been obfuscated; ``top=None`` answers the whole pool."""
        require(top is None or top >= 1, f"ask for at least one hit, not {top}")
        variants, recalled, spent = self._counted(result)
        try:
            answers = self.boundary.send(variants, self.depth, progress)
        except EngineError as error:
            raise self._counted_anyway(error, spent) from None
        # In the order of the variants: that of sending is random.
        sent = tuple(each for each in self.boundary.check(variants) if each in answers.sent)
        found = pool([answers.hits.get(each, []) for each in sent], self.pooling)
        ranked = self._ranked(result.text, found)
        guarantee = result.guarantee
        own, aloud = _words(result.text), _words(" ".join(sent))
        return SearchResult(
            query=result.text,
            sent=sent,
            hits=tuple(
                ranked if top is None else [self._shown(hit, result.text) for hit in ranked[:top]]
            ),
            pool=len(found),
            mechanism=result.mechanism,
            release="remembered" if self.remember else result.release,
            guarantee=guarantee.with_caveats(RECALLED) if recalled else guarantee,
            spent=spent,
            said_aloud=len(own & aloud),
            words=len(own),
            problem=self._problem(answers, len(self.boundary.check(variants))),
            query_sent=folded_text(result.text) in map(folded_text, sent),
            engine=self.engine.name,
            reranker=self.reranker.name,
            unknown=result.unknown,
            kept=result.kept,
            recalled=recalled,
            seeded=result.seeded,
        )

    def _counted(self, result: Obfuscation) -> tuple[tuple[str, ...], bool, float | None]:
        """The variants that may be sent, whether they were before, and what they cost."""
        self._refuse_the_original(result.text, result.variants)
        self.boundary.check(result.variants)
        if self.ledger is None:
            return result.variants, False, result.spent
        entry = Entry.of(result, self.obfuscator, self.engine.name)
        key = request_key(self.obfuscator) if self.remember else None
        receipt = self.ledger.charge(entry, remember=key)
        self._refuse_the_original(result.text, receipt.variants)
        return receipt.variants, receipt.recalled, receipt.record.spent

    @staticmethod
    def _problem(answers: Answers, wanted: int) -> str | None:
        if answers.failure is None:
            return None
        return f"only {len(answers.hits)} of {wanted} queries were answered: {answers.failure}"

    def _counted_anyway(self, error: EngineError, spent: float | None) -> EngineError:
        if self.ledger is None:
            return error
        cost = "without bound" if spent is None else f"{spent:g} nats"
        again = "" if self.remember else "; with --release remembered another try costs nothing"
        return EngineError(
            f"{error}. Some queries may have been sent: the release is counted ({cost}){again}"
        )

    def _refuse_the_original(self, query: str, variants: Sequence[str]) -> None:
        if self.original == "refuse" and folded_text(query) in map(folded_text, variants):
            raise SottovoceError(
                "a variant is the query itself, which was forbidden: nothing was sent. Use a "
                "smaller epsilon or more words; a short query often comes out as it is"
            )

    def _ranked(self, query: str, found: list[Pooled]) -> list[Ranked]:
        try:
            return rerank(query, found, self.reranker, [self._text(each) for each in found])
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

    def _text(self, found: Pooled | Ranked) -> str:
        """What is known of a document: all of it on this machine, title and snippet elsewhere."""
        if self._local is not None:
            return self._local.text(found.doc_id)
        return f"{found.title}\n{found.snippet}".strip()

    def _shown(self, hit: Ranked, query: str) -> Ranked:
        if self._local is None:
            return hit
        return hit._replace(snippet=snippet(self._text(hit), hit.title, query))


def _words(text: str) -> set[str]:
    return {comparable(token.surface) for token in tokenise(text)}
