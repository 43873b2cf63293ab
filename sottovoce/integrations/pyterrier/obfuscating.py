"""Obfuscate: one row a query in, one row a variant out, and nothing of the query in any column."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, ClassVar, NamedTuple

from sottovoce.engines.base import EngineError, Hit
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.integrations.pyterrier.package import pd, pt
from sottovoce.ledger import Ledger
from sottovoce.obfuscation import Obfuscator
from sottovoce.randomness import secure_generator
from sottovoce.search import CountedRelease, PrivateSearch, load_reranker

REMEMBERED = 100_000
"""Queries whose answers may still be pooled; then the oldest are forgotten."""


class TrueQuery(NamedTuple):
    """What stays here of a row: its qid, and the query as it was counted and released."""

    qid: str
    release: CountedRelease

    def __repr__(self) -> str:
        return "TrueQuery()"


class SideTable:
    """True queries by the random ids under which their variants leave; in memory only."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._queries: OrderedDict[tuple[str, ...], TrueQuery] = OrderedDict()
        self._places: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def keep(self, query: TrueQuery) -> tuple[str, ...]:
        """A random id for each query that will be sent for this one."""
        ids = tuple(secrets.token_hex(8) for _ in query.release.outgoing.queries)
        with self._lock:
            self._queries[ids] = query
            self._places.update(dict.fromkeys(ids, ids))
            while len(self._queries) > self.most:
                oldest, _ = self._queries.popitem(last=False)
                for name in oldest:
                    del self._places[name]
        return ids

    def of(self, name: str) -> tuple[TrueQuery, int]:
        """The query that a random id stands for, and which of its variants it is."""
        with self._lock:
            ids = self._places.get(name)
            if ids is None:
                raise SottovoceError(
                    "these results belong to no query that this Obfuscate remembers: pool them "
                    "with the Obfuscate that is in the same pipeline, and before it forgets"
                )
            return self._queries[ids], ids.index(name)

    def all(self) -> list[TrueQuery]:
        """Everything that is remembered, the oldest first."""
        with self._lock:
            return list(self._queries.values())

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._queries.clear()
            self._places.clear()


class Elsewhere:
    """The retriever of the pipeline, as far as counting what is sent needs to know it."""

    pause = 0.0
    most_queries: int | None = None

    def __init__(self, name: str, remote: bool) -> None:
        self.name, self.remote = name, remote

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        raise EngineError("the pipeline sends the queries")


class Obfuscate(pt.Transformer):
    """Turns queries into obfuscated ones, under random ids and in random order.

    What comes out has the columns ``qid`` and ``query`` and no other: whatever else was known of
    a query stays behind. :class:`PoolVariants` brings the answers back to it.

    obfuscator
        Makes the variants; see :class:`sottovoce.Obfuscator`.
    ledger
        Counts each release before it leaves, refuses when a budget is spent, and remembers words.
    fresh
        Draw words anew even if the ledger remembers them.
    remote
        Whether the retriever is elsewhere: then a seed is warned about, and refused in company.
    remember
        How many queries are kept for pooling.
    """

    schematic: ClassVar[dict[str, Any]] = {"label": "Obfuscate", "help_url": None, "settings": {}}

    def __init__(
        self,
        obfuscator: Obfuscator,
        *,
        ledger: Ledger | None = None,
        fresh: bool = False,
        remote: bool = True,
        remember: int = REMEMBERED,
    ) -> None:
        self.obfuscator, self.ledger, self.fresh = obfuscator, ledger, fresh
        self.remote, self.remember = remote, remember
        self.kept = SideTable(remember)
        self._search = PrivateSearch(
            obfuscator, Elsewhere("pyterrier", remote), load_reranker("none"), ledger, fresh
        )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The variants of all queries, mixed. Nothing comes out if one cannot be obfuscated."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp["qid"].duplicated().any():
            raise UsageError("a qid is there twice: give each query one row, and a qid of its own")
        releases = list(self._search.count_many(inp["query"].tolist()))
        for release in releases:
            self._search.note_leaving(release)
        rows = [
            row
            for qid, release in zip(inp["qid"], releases, strict=True)
            for row in self._rows(TrueQuery(qid, release))
        ]
        order = secure_generator().permutation(len(rows))
        return pd.DataFrame([rows[place] for place in order], columns=["qid", "query"], dtype=str)

    def _rows(self, query: TrueQuery) -> Iterable[tuple[str, str]]:
        return zip(self.kept.keep(query), query.release.outgoing.queries, strict=True)

    def forget(self) -> None:
        """Forget all queries: their answers can no longer be pooled."""
        self.kept.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Without the true queries: a copy remembers only what it releases itself."""
        return {**self.__dict__, "kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, kept=SideTable(state["remember"]))

    def __repr__(self) -> str:
        maker = self.obfuscator
        return f"Obfuscate({maker.mechanism.spec}, n={maker.n}, {maker.release})"
