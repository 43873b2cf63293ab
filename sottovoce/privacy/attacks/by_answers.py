"""Query inference by answers: which query of a log finds what the variants find.

The engine is an attacker, too, and knows what it answered. Whatever words a release has, it is of
use only if it finds documents that the query would find: so these give it away. Texts are
vectors of what they find,

    v(text)_d = idf(d) / log2(1 + rank of d),     idf(d) = log(queries / queries that find d),

a release is the sum of its variants' vectors, and queries are ordered by their cosine with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.engines import SearchEngine
from sottovoce.engines.base import NOTHING, ListingEngine
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.queries import Scored, largest
from sottovoce.privacy.attacks.query_log import NOT_THERE, QueryLog, require_in_log
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float64Array, IntArray, Progress

NAME = "answers"
FOUND = 10
"""Documents that are looked at of each text."""
SEARCHED_AT_A_TIME = 1000


class AnswersAttacker:
    """An engine on this machine, with what it finds for every query of a log.

    beside
        Originals that the log lacks, folded.
    """

    def __init__(
        self,
        engine: SearchEngine,
        log: QueryLog,
        beside: Sequence[str] = (),
        *,
        progress: Progress | None = None,
    ) -> None:
        if engine.remote:
            raise UsageError("an attack by answers asks for the whole log: only an engine here")
        self._engine = engine
        queries = [*log.queries, *beside]
        self._places = {query: place for place, query in enumerate(queries)}
        self._added = len(beside)
        self._numbers: dict[str, int] = {}
        self._rows = self._found(queries, progress)
        # What nearly every query finds says little about any of them.
        met = np.bincount(self._rows[self._rows != NOTHING])
        self._idf = np.log(len(self._rows) / np.maximum(met, 1))
        self._weights = self._weighed(self._rows)
        lengths = np.sqrt((self._weights**2).sum(axis=1))
        self._lengths = np.where(lengths > 0, lengths, 1.0)

    def infer(self, releases: Sequence[Released], variants: int | None = None) -> Inference:
        """Attack every release by itself."""
        attacked = [release for release in releases if release.variants]
        originals = [folded_text(release.text) for release in attacked]
        targets = [self._places.get(text, NOT_THERE) for text in originals]
        require_in_log(targets.count(NOT_THERE), len(targets), add_originals=False)
        size = len(self._rows)
        everyone, ranked = np.arange(size), []
        for release, target in zip(attacked, targets, strict=True):
            seen = release.variants[:variants]
            rank, ties = Scored(everyone, self._scores(seen)).rank(target, size)
            ranked.append(Attacked(release.id, len(seen), rank, ties))
        return Inference(
            attack=f"{NAME} ({self._engine.name})",
            knows=f"a log of {size:,} queries with the true one in it, and what the engine "
            f"{self._engine.name} finds for each of them and for the variants; does not use the "
            "mechanism",
            log=size,
            added=self._added,
            unreleased=len(releases) - len(attacked),
            depth=DEPTH,
            queries=tuple(ranked),
        )

    def likely(self, releases: Sequence[Released], count: int) -> list[IntArray]:
        """The queries that find most of what each release finds, the likeliest first."""
        attacked = [release for release in releases if release.variants]
        return [largest(self._scores(release.variants), count) for release in attacked]

    def _scores(self, variants: Sequence[str]) -> Float64Array:
        """The cosine of each query with a release, but for the length of the release's vector."""
        seen = list(dict.fromkeys(map(folded_text, variants)))
        rows = self._found([text for text in seen if text])
        # Documents that no query of the log finds tell none of them from another.
        known = np.where(rows < len(self._idf), rows, NOTHING)
        # The release's vector, with a zero at the end: the weight of "nothing".
        release_vector = np.zeros(len(self._idf) + 1)
        np.add.at(release_vector, known, self._weighed(known))
        return np.asarray((release_vector[self._rows] * self._weights).sum(axis=1) / self._lengths)

    def _found(self, texts: Sequence[str], progress: Progress | None = None) -> IntArray:
        """Numbers of the first documents of each text, ``NOTHING`` after the last."""
        rows = np.full((len(texts), FOUND), NOTHING, dtype=np.int64)
        for start in range(0, len(texts), SEARCHED_AT_A_TIME):
            block = texts[start : start + SEARCHED_AT_A_TIME]
            rows[start : start + len(block)] = self._listed(block)
            if progress is not None:
                progress(start + len(block), len(texts))
        return rows

    def _listed(self, texts: Sequence[str]) -> IntArray:
        """The same for some texts: by place where the engine can list them, else by id."""
        if isinstance(self._engine, ListingEngine):
            return self._engine.listed(texts, FOUND)
        rows = np.full((len(texts), FOUND), NOTHING, dtype=np.int64)
        for row, hits in zip(rows, self._engine.search(texts, FOUND), strict=True):
            numbers = [self._numbers.setdefault(hit.doc_id, len(self._numbers)) for hit in hits]
            row[: len(hits)] = numbers
        return rows

    def _weighed(self, rows: IntArray) -> Float64Array:
        """The entries of the vectors of texts."""
        discounts = 1 / np.log2(2 + np.arange(FOUND))
        idf = np.append(self._idf, 0.0)  # The last one is where "nothing" looks.
        return np.asarray(idf[rows] * discounts)
