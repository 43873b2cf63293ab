"""What ``cover.py`` measures on: a collection, its engines, pools of public strings, attackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from spaces import Bench
from word_attacks import CutLogs

from sottovoce.encoders import Encoder, corpus_vectors, load_encoder
from sottovoce.engines.base import NOTHING, DocumentEngine
from sottovoce.engines.dense import Dense
from sottovoce.evaluation import effectiveness
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.cover import Cover
from sottovoce.pool_making import cleaned, popularity_like, strings_of
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.by_answers import AnswersAttacker
from sottovoce.privacy.attacks.company.beliefs import Belief
from sottovoce.privacy.attacks.company.lists import list_beliefs, weights_by_kind
from sottovoce.privacy.attacks.company.nearness import LikeHistory
from sottovoce.privacy.attacks.company.public_texts import PublicTexts
from sottovoce.privacy.attacks.company.run import Knowledge, beliefs_about
from sottovoce.privacy.attacks.company.sets import SeenSet
from sottovoce.privacy.attacks.cosine import originals_in
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import UNKNOWN, BoolArray, Float32Array, Float64Array, IntArray

NOT_SEARCHED = NOTHING - 1
"""In the tables of answers: a string that was not searched yet."""
DEEPEST = 200
DEPTHS = (100, DEEPEST)
HISTORY = 10
QUARTER = "quarter of the log"
"""A pool that is a small part of what people ask, so that each string stands for some of it."""
KNOWS_SUBJECT = "history"
"""The attacker who has other queries of the person, on the same subject."""
KNOWS_LOG = "aligned"
"""The attacker of words who has a log that holds the queries, all alike."""
KNOWS_KIND = "kind"
"""The same, who knows other queries of the kind: those of the log that look like these are
likelier."""
ALL_ALIKE = (KNOWS_LOG, "law alone", "popularity", "list", "recurrence")
"""Attackers who have nothing but the log, and to whom all queries on it are alike."""
SHORT_LIST = "short list"
"""The attacker with a short list: all queries that are asked, and the strings nearest to them."""
NEAR_THE_QUERY = 5
"""So many strings of the log beside each query on it."""
ALL_SUBJECTS = ("subjects", "nearest subject", "neighbours of subjects")
"""Attackers of cover who know the subjects of all queries that are asked, not whose is which:
strings near to them, but neither the queries nor what stands for them."""
KIND_SAMPLE = 4000
"""Queries of the kind that are learned from: like those asked, they are taken out of the log, so
that other strings stand for them."""
FEW_TEXTS = 1000
"""With fewer texts of the kind to learn from, an attacker gains by having all of them."""
ENOUGH_OTHERS = 100
"""With fewer queries that are not asked, each half of those asked is public for the other."""
OWN = {"cranfield": ("titles", "sentences"), "npl": ("sentences", "phrases")}
"""What strings are made of a collection's documents; of all others phrases."""


class KnownVectors:
    """An encoder that has the vectors of all strings of some pools already."""

    exact_batches = True

    def __init__(self, encoder: Encoder, strings: Sequence[str], vectors: Float32Array) -> None:
        self._encoder, self._vectors = encoder, vectors
        self._places = {string: place for place, string in enumerate(strings)}
        self.name, self.dimension = f"{encoder.name}, known", encoder.dimension

    @property
    def fingerprint(self) -> str:
        return self._encoder.fingerprint

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Rows as the encoder has them."""
        places = [self._places.get(text, UNKNOWN) for text in texts]
        rows = np.array(self._vectors[places])
        new = [row for row, place in enumerate(places) if place == UNKNOWN]
        if new:
            rows[new] = self._encoder.encode([texts[row] for row in new])
        return rows

    def knows(self, texts: Sequence[str]) -> BoolArray:
        return self._encoder.knows(texts)


class Answers:
    """Which documents an engine finds for each string of a list: searched once, kept in a file."""

    def __init__(self, engine: DocumentEngine, strings: Sequence[str], file: Path) -> None:
        self.engine, self._strings, self._file = engine, strings, file

    @cached_property
    def _table(self) -> NDArray[np.int32]:
        shape = (len(self._strings), DEEPEST)
        if not self._file.exists():
            made = np.lib.format.open_memmap(self._file, "w+", np.int32, shape)
            made[:] = NOT_SEARCHED
        table: NDArray[np.int32] = np.lib.format.open_memmap(self._file, "r+")
        if table.shape != shape:
            raise SystemExit(f"{self._file.name} is of other strings: take another --out")
        return table

    def of(self, places: IntArray) -> IntArray:
        """A row of document numbers for each string, best first; NOTHING after the last."""
        new = np.unique(places[self._table[places, 0] == NOT_SEARCHED])
        for start in range(0, len(new), 1000):
            block = new[start : start + 1000]
            self._table[block] = self.search([self._strings[at] for at in block.tolist()])
        return np.asarray(self._table[places])

    def search(self, texts: Sequence[str]) -> IntArray:
        """The same for any texts."""
        return self.engine.listed(texts, DEEPEST).astype(np.int32)


@dataclass(frozen=True)
class Fold:
    """Queries that are asked together, and what is public of their kind.

    rows
        The places of the queries among all that are asked.
    popular, learned
        What makes decoys popular, and what attackers learn from.
    """

    rows: tuple[int, ...]
    popular: tuple[str, ...]
    learned: tuple[str, ...]


class Ready:
    """A pool for one fold; popularity, and what attackers make of it, are learned when needed."""

    def __init__(self, bench: CoverBench, source: str, fold: Fold) -> None:
        self._bench, self.fold = bench, fold
        self.plain = Pool(bench.sources[source], bench.encoder).prepare()
        self.places = np.array([bench.numbers[string] for string in self.plain.strings])
        """Where the strings of the pool stand in the list of all strings."""

    def pool(self, decoys: str) -> Pool:
        """The pool as it states, or does not state, a popularity."""
        return self.popular if decoys == "popular" else self.plain

    @cached_property
    def popular(self) -> Pool:
        """The pool with the popularity of the kind."""
        weights = popularity_like(self.fold.popular, self.plain)
        return Pool(self.plain.strings, self.plain.encoder, weights=weights).prepare()

    @cached_property
    def beliefs(self) -> dict[str, Belief]:
        """What ``attack_company`` tries on single sets, learned once for all settings of a pool."""
        bench, fold, pool = self._bench, self.fold, self.popular
        asked = [folded_text(bench.texts[row]) for row in fold.rows]
        known = Knowledge(fold.learned, listed=self.listed, add_asked=True, asked=asked)
        beliefs = believed(pool, known)
        if len(fold.learned) < FEW_TEXTS and fold.learned != fold.popular:
            more = Knowledge([*fold.popular, *fold.learned], listed=self.listed, add_asked=True)
            of_all = believed(pool, more)
            beliefs |= {f"{name}, with all that is public": of_all[name] for name in of_all}
        short = PublicTexts(bench.short_list, pool)
        for name, _, belief in list_beliefs(short, PublicTexts([], pool), None, {}):
            beliefs[name.replace("list", SHORT_LIST)] = belief
        histories = bench.histories(fold, pool)
        kind = PublicTexts(fold.learned, pool).kind
        return {**beliefs, KNOWS_SUBJECT: LikeHistory(histories, pool, kind)}

    @cached_property
    def listed(self) -> PublicTexts:
        """The log as a list of what may have been asked."""
        return PublicTexts(self._bench.base.others, self.popular).different

    @cached_property
    def likelier(self) -> dict[str, float]:
        """The log-weight of each query of the log, for who knows other queries of the kind."""
        reference = PublicTexts(self.fold.learned, self.popular)
        beside = PublicTexts([*map(folded_text, self._bench.texts)], self.popular)
        return {
            text: weight
            for texts in (self.listed, beside)
            for text, weight in zip(
                texts.texts, weights_by_kind(texts, self.listed, reference).tolist(), strict=True
            )
        }


def believed(pool: Pool, known: Knowledge) -> dict[str, Belief]:
    """Beliefs of single strings, by name."""
    return {name: belief for name, (_, belief) in beliefs_about(pool, known, {})}


class CoverBench:
    """A collection with judged queries and everything that is asked of it."""

    def __init__(
        self,
        base: Bench,
        folder: Path,
        log: Sequence[str],
        kind: Sequence[str],
        out: Path,
        represented_by: str = "strong",
    ) -> None:
        """``kind``: strings of the log that are of the queries' kind, if any are.

        ``represented_by``: the encoder that chooses what stands for a query.
        """
        self.base, self.name, self.texts = base, folder.name, base.texts
        self.keys = list(base.collection.queries)
        attacked = set(map(folded_text, self.texts))
        self._kind = [text for text in kind if folded_text(text) not in attacked]
        order = np.random.default_rng(0).permutation(len(self._kind))[:KIND_SAMPLE]
        self._public = [self._kind[at] for at in order]
        not_in_pool = attacked.union(map(folded_text, self._public))
        self._log = [text for text in log if folded_text(text) not in not_in_pool]
        self._all_queries = base.all_queries
        chooser = load_encoder(represented_by)
        sources = [f"{part}:{folder}" for part in OWN.get(folder.name, ("phrases",))]
        own = list(cleaned(chain.from_iterable(map(strings_of, sources))).strings)
        vectors = [corpus_vectors(chooser, list(log)), corpus_vectors(chooser, own)]
        self.encoder = KnownVectors(chooser, [*log, *own], np.concatenate(vectors))
        self.strings = list(dict.fromkeys([*self._log, *own]))
        self.numbers = {string: number for number, string in enumerate(self.strings)}
        order = np.random.default_rng(0).permutation(len(self._log))
        half, quarter = (sorted(order[: len(order) // part].tolist()) for part in (2, 4))
        self.sources = {
            "log": self._log,
            "half of the log": [self._log[at] for at in half],
            QUARTER: [self._log[at] for at in quarter],
            "own": own,
            "own and log": self.strings,
        }
        self._ids = [document.doc_id for document in base.collection.documents]
        engines = {"bm25": base.engine, "dense": Dense(base.collection.documents, "light")}
        self.answers = {
            name: Answers(engine, self.strings, out / f"{self.name}--{name}.npy")
            for name, engine in engines.items()
        }
        self._scores = [base.reranker.all_scores(text) for text in self.texts]
        self._ready: dict[str, list[Ready]] = {}
        self._cut_logs: dict[str, CutLogs] = {}
        self._query_logs: dict[str, QueryLog] = {}
        self._engines_as_attackers: dict[tuple[str, str], AnswersAttacker] = {}

    # What is found

    def ndcg(self, found: Mapping[int, IntArray]) -> dict[str, float]:
        """nDCG@10 of queries, given rows of documents; the documents are re-ranked by the query."""
        run = {}
        for row, answers in found.items():
            documents = np.unique(answers[answers >= 0])
            best = np.argsort(-self._scores[row][documents], kind="stable")[:10]
            run[self.keys[row]] = [self._ids[number] for number in documents[best].tolist()]
        judgments = {key: self.base.collection.judgments[key] for key in run}
        return dict(effectiveness(run, judgments, ["nDCG@10"])["nDCG@10"].values)

    def without_privacy(self) -> dict[str, dict[str, float]]:
        """nDCG@10 of the queries themselves, by engine and depth."""
        return {
            f"{name} {depth}": self.ndcg(dict(enumerate(rows[:, None, :depth])))
            for name, answers in self.answers.items()
            for rows in [answers.search(self.texts)]
            for depth in DEPTHS
        }

    # Pools and attackers

    def folds(self) -> list[Fold]:
        """Who asks what, and what is public then."""
        asked = [folded_text(text) for text in self.texts]
        others = self._public or [text for text in self._all_queries if text not in set(asked)]
        if len(others) >= ENOUGH_OTHERS:
            rows = tuple(range(len(asked)))
            return [Fold(rows, tuple(others[::2]), tuple(others[1::2]))]
        halves = [tuple(range(start, len(asked), 2)) for start in (0, 1)]
        public = [tuple(asked[row] for row in rows) for rows in halves]
        return [Fold(halves[0], public[1], public[1]), Fold(halves[1], public[0], public[0])]

    def ready(self, source: str) -> list[Ready]:
        """The pool of a source for each fold; it is kept."""
        if source not in self._ready:
            self._ready[source] = [Ready(self, source, fold) for fold in self.folds()]
        return self._ready[source]

    @cached_property
    def _near_strings(self) -> list[str]:
        """The strings of the log nearest to all queries."""
        pool = self.ready("log")[0].plain
        rows = pool.best(pool.encoder.encode([*map(folded_text, self.texts)]), NEAR_THE_QUERY)
        return [pool.strings[place] for place in np.unique(rows).tolist()]

    @property
    def short_list(self) -> list[str]:
        """These, and the queries themselves."""
        return [*self._near_strings, *map(folded_text, self.texts)]

    def likelier(self) -> dict[str, Mapping[str, float]]:
        """By key of a query what is believed of those of the log by who knows others of the kind.

        As attackers of cover weigh it, with the pool that is compared.
        """
        source = "log" if self._kind else "own"
        return {
            self.keys[row]: ready.likelier
            for ready in self.ready(source)
            for row in ready.fold.rows
        }

    def attack_logs(self) -> dict[str, Sequence[str]]:
        """The queries among which attackers choose who know a log, and who have a short list.

        The queries that are attacked are put beside them where they are not there.
        """
        return {KNOWS_LOG: self.base.others, SHORT_LIST: self._near_strings}

    def query_log(self, name: str) -> QueryLog:
        """One of these as attacks read it; it keeps its words for the next mechanism."""
        if name not in self._query_logs:
            self._query_logs[name] = QueryLog(self.attack_logs()[name])
        return self._query_logs[name]

    def cut_logs(self, setting: str, mechanism: WordMechanism, pipeline: TextPipeline) -> CutLogs:
        """The same in the words of a space; kept for the next epsilon."""
        if setting not in self._cut_logs:
            logs = self.attack_logs()
            self._cut_logs[setting] = CutLogs.of(mechanism, pipeline, logs, self.texts)
        return self._cut_logs[setting]

    def engine_as_attacker(self, engine: str, log: str) -> AnswersAttacker:
        """An engine with what it finds for the queries of a log; kept for the next mechanism."""
        if (engine, log) not in self._engines_as_attackers:
            queries = self.query_log(log)
            _, beside = originals_in(queries, self.texts, add_originals=True)
            asked = self.answers[engine].engine
            self._engines_as_attackers[engine, log] = AnswersAttacker(asked, queries, beside)
        return self._engines_as_attackers[engine, log]

    def histories(self, fold: Fold, pool: Pool) -> dict[str, list[str]]:
        """For each query the nearest other ones of its kind, but for what stands for it."""
        texts = [folded_text(self.texts[row]) for row in fold.rows]
        vectors = self.encoder.encode(texts)
        stands = pool.best(vectors, 1)[:, 0].tolist()
        kind = self._kind or self._all_queries
        near = np.argsort(-(vectors @ self.encoder.encode(kind).T), axis=1, kind="stable")
        return {
            self.keys[row]: [
                kind[at]
                for at in near[number, : HISTORY + 2].tolist()
                if kind[at] not in (texts[number], folded_text(pool.strings[stands[number]]))
            ][:HISTORY]
            for number, row in enumerate(fold.rows)
        }

    def seen(self, cover: Cover, heads: IntArray, meant: int, row: int) -> SeenSet:
        """A set as attackers see it; of groups they are told which string each was made of."""
        inside, outside = cover.log_odds(heads)
        (at,) = np.nonzero(heads == meant)
        return SeenSet(
            strings=tuple(cover.pool.strings[head] for head in heads.tolist()),
            vectors=cover.pool.vectors[heads],
            inside=inside,
            outside=outside,
            text=self.texts[row],
            truth=int(at[0]) if len(at) else UNKNOWN,
            person=self.keys[row],
        )


def chance_of_truth(scores: Float64Array, truth: int) -> float:
    """How likely the true string is named first, equals being drawn by lot."""
    best = np.flatnonzero(scores == scores.max())
    return float(truth in best) / len(best)
