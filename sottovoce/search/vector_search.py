"""PrivateVectorSearch: encode here, add noise, count, ask the store, order by the true vector."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sottovoce.defaults import STORE_DEPTH, TOP
from sottovoce.engines.base import EngineError, LocalEngine
from sottovoce.engines.vector_engine import VectorEngine, VectorHit, best_first, check_depth
from sottovoce.errors import PrivacyWarning, SottovoceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger, Receipt
from sottovoce.mechanisms.base import require
from sottovoce.obfuscation.vectors import NoisyVector, VectorNoise, noisy_vector
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.search.pooling import pool
from sottovoce.search.private_search import note_leaving
from sottovoce.search.reranking import Ranked, Reranker, rerank
from sottovoce.search.vector_boundary import OutgoingVector, VectorBoundary
from sottovoce.text.words import snippet

BY_TRUE_VECTOR = "true vector"
SAME_VECTOR = (
    "this vector was drawn and counted before: however often it is sent, it tells no more of the "
    "query than once"
)
A_VECTOR = ("one noisy vector",)
"""What the ledger counts as sent: of variants it keeps the number alone."""


@dataclass(frozen=True, repr=False)
class CountedVector:
    """A query whose noisy vector was drawn, checked and counted, and may be sent now."""

    noisy: NoisyVector
    outgoing: OutgoingVector
    spent: float
    receipt: Receipt | None
    """What the ledger says; None without one."""

    @property
    def recalled(self) -> bool:
        """Whether the same vector had been counted before."""
        return self.receipt is not None and self.receipt.recalled

    def __repr__(self) -> str:
        return f"CountedVector(spent={self.spent})"


@dataclass(frozen=True, repr=False)
class VectorSearchResult:
    """The result of a search. Only ``sent`` left this machine; ``query`` and ``hits`` did not."""

    query: str
    sent: tuple[float, ...]
    """The noisy vector."""
    hits: tuple[Ranked, ...]
    fetched: int
    """How many documents the store answered."""
    mechanism: str
    guarantee: Guarantee
    spent: float
    """Nats per unit of distance."""
    noise_to_signal: float | None
    """How many times as long as the true vector the noise is; for its owner alone."""
    engine: str
    reranker: str
    recalled: bool
    """Whether the same vector had been counted before."""
    fresh: bool
    """Whether noise was drawn anew, whatever was sent before."""
    seeded: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``sottovoce search``."""
        hits = [{**hit._asdict(), "found_by": list(hit.found_by)} for hit in self.hits]
        shown = {"sent": list(self.sent), "hits": hits, "guarantee": self.guarantee.to_dict()}
        return {**vars(self), **shown}

    def __repr__(self) -> str:
        return f"VectorSearchResult({len(self.hits)} hits of {self.fetched})"


@dataclass(frozen=True)
class PrivateVectorSearch:
    """Searches a store of vectors that need not cooperate, and does not learn the query.

    mechanism
        The encoder that made the store's vectors, and epsilon.
    reranker
        What orders the answers; None: the true vector, by the store's own metric and the vectors
        that it answers. If the true top k is among them, that is the order of the store itself.
    ledger
        Counts each release before it is sent, and refuses when a budget is spent. By its key the
        same query always gets the same noise, at no further cost.
    fresh
        Draw noise anew even if the query was sent before: each draw tells more, and is counted.
    depth
        How many documents to ask for: more than are wanted, since noise moves the true ones down.
        See :func:`sottovoce.search.promise_depth`.
    """

    mechanism: VectorNoise
    engine: VectorEngine
    reranker: Reranker | None = None
    ledger: Ledger | None = None
    fresh: bool = False
    depth: int = STORE_DEPTH
    rng: Randomness = None

    def __post_init__(self) -> None:
        check_depth(self.depth)
        if is_seeded(self.rng) and self.engine.remote:
            warnings.warn(
                "a seeded search protects nobody: whoever has the seed can undo it",
                PrivacyWarning,
                stacklevel=3,
            )

    @cached_property
    def boundary(self) -> VectorBoundary:
        """What asks the store."""
        return VectorBoundary(self.engine)

    @property
    def remembers(self) -> bool:
        """Whether a query that was sent before gets the same noise again."""
        return not (self.fresh or self.ledger is None or is_seeded(self.rng))

    def search(self, query: str, top: int = TOP) -> VectorSearchResult:
        """The best hits for a query that stays on this machine, and so does its vector.

        Nothing is sent if the query cannot be encoded, or if the ledger refuses or fails.
        """
        require(top >= 1, f"ask for at least one hit, not {top}")
        return self.send(self.count(query), top)

    def count(self, query: str) -> CountedVector:
        """Draw the noise and count what sending will cost. Nothing is sent yet.

        In which way it leaves is noted by :meth:`send`.
        """
        require(bool(query.strip()), "give something to search for")
        key = self.ledger.memory_key() if self.ledger is not None and self.remembers else None
        noisy = noisy_vector(query, self.mechanism, rng=self.rng, memory_key=key)
        outgoing = self.boundary.check(noisy.vector)
        if self.ledger is None:
            return CountedVector(noisy, outgoing, self.mechanism.epsilon, receipt=None)
        space, sha256 = self.mechanism.metric_space
        receipt = self.ledger.charge(
            Entry(
                text=query,
                variants=A_VECTOR,
                mechanism=noisy.mechanism,
                release="once",
                guarantee=noisy.guarantee,
                releases=1,
                destination=self.engine.name,
                space=space,
                space_sha256=sha256,
                protected=1,
                words=noisy.word_hashes,
                elsewhere=self.engine.remote,
            ),
            leaving=False,
        )
        return CountedVector(noisy, outgoing, receipt.record.spent or 0.0, receipt)

    def send(self, release: CountedVector, top: int | None = TOP) -> VectorSearchResult:
        """Ask the store with what was counted; order its answer by the true query.

        ``top=None`` answers all that was fetched.
        """
        require(top is None or top >= 1, f"ask for at least one hit, not {top}")
        noisy = release.noisy
        note_leaving(self.ledger, release.receipt, self.engine)
        try:
            near = self.boundary.send(release.outgoing, self.depth)
        except EngineError as error:
            raise self._counted_anyway(error, release.spent) from None
        guarantee = noisy.guarantee
        return VectorSearchResult(
            query=noisy.text,
            sent=tuple(release.outgoing.vector.tolist()),
            hits=tuple(
                self._shown(hit, noisy.text) if top else hit
                for hit in self._ranked(noisy, near)[:top]
            ),
            fetched=len(near),
            mechanism=noisy.mechanism,
            guarantee=guarantee.with_caveats(SAME_VECTOR) if release.recalled else guarantee,
            spent=release.spent,
            noise_to_signal=noisy.noise_to_signal,
            engine=self.engine.name,
            reranker=BY_TRUE_VECTOR if self.reranker is None else self.reranker.name,
            recalled=release.recalled,
            fresh=not noisy.word_hashes,
            seeded=noisy.seeded,
        )

    def _counted_anyway(self, error: EngineError, spent: float) -> EngineError:
        if self.ledger is None:
            return error
        again = "; another try costs nothing" if self.remembers else ""
        return EngineError(
            f"{error}. The vector may have been sent: the release is counted ({spent:g} nats)"
            f"{again}"
        )

    def _ranked(self, noisy: NoisyVector, near: list[VectorHit]) -> list[Ranked]:
        try:
            if self.reranker is None:
                hits = best_first(near, self.engine.metric, noisy.true)
                return [
                    Ranked(hit.doc_id, rank, hit.score, hit.title, hit.snippet, (0,))
                    for rank, hit in enumerate(hits, start=1)
                ]
            pooled = pool([[one.hit for one in near]])
            texts = [self._text(hit.doc_id, hit.title, hit.snippet) for hit in pooled]
            return rerank(noisy.text, pooled, self.reranker, texts)
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could hold the query: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"ordering the answer failed ({type(error).__name__}); try another --rerank"
            ) from None

    @cached_property
    def _local(self) -> LocalEngine | None:
        return self.engine if isinstance(self.engine, LocalEngine) else None

    def _text(self, doc_id: str, title: str, beginning: str) -> str:
        """What is known of a document: all of it on this machine, title and snippet elsewhere."""
        return f"{title}\n{beginning}".strip() if self._local is None else self._local.text(doc_id)

    def _shown(self, hit: Ranked, query: str) -> Ranked:
        if self._local is None:
            return hit
        return hit._replace(snippet=snippet(self._local.text(hit.doc_id), hit.title, query))
