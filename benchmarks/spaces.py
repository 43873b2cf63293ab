"""What searches find in one word space and in another, at the same risk: tables of docs/spaces.md.

    python benchmarks/spaces.py FOLDER... --log FILE --vectors DIR --out DIR
    python benchmarks/spaces.py … --settings old,new --seeds 1,2,3,4,5 --tables

Each FOLDER is a collection with judged queries. A setting is searched at several epsilons (BM25,
20 variants, ``once``), what is found is ordered by an encoder that made none of the spaces, and
the releases are attacked. Cells are kept under --out, one file each, and not computed again;
--tables prints what is there. Queries that are all in the log are attacked with the whole of it,
other collections with their own queries and a fixed sample of it.

--vectors has, for each collection, NAME_docs.npy and NAME_queries.npy: unit vectors of titles with
texts and of queries, in the order of corpus.jsonl and queries.jsonl. The tables were made with
all-mpnet-base-v2 (384 tokens):

    encoder = SentenceTransformer("all-mpnet-base-v2")
    texts = [f"{document.title} {document.text}".strip() for document in collection.documents]
    numpy.save("NAME_docs.npy", encoder.encode(texts, normalize_embeddings=True))
    queries = list(collection.queries.values())
    numpy.save("NAME_queries.npy", encoder.encode(queries, normalize_embeddings=True))

Two risks: *named*, what the strongest of the attacks on the released variants names in a log that
holds the query, and *point*, what would be named by somebody who saw the noisy points themselves.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import logsumexp
from spaces_tables import print_tables

from sottovoce import Obfuscator, PrivateSearch, defaults, load_space, mechanism
from sottovoce.choices import UnknownPolicy
from sottovoce.collections import Collection, load_collection
from sottovoce.engines import BM25
from sottovoce.evaluation import effectiveness, with_unrelated_queries, without_privacy
from sottovoce.evaluation.search_quality import judged
from sottovoce.files import write_whole
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.output_vocabularies import of_search
from sottovoce.privacy import QueryLog, Released, attack, read_log
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.queries import AlignedLog
from sottovoce.privacy.attacks.report import strongest
from sottovoce.randomness import Draws
from sottovoce.search import laid_out_for
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import Float32Array, Float64Array, IntArray

N, DEPTH = defaults.VARIANTS, defaults.DEPTH
LOG_SAMPLE = 20_000
"""Queries of the log beside a collection's own, where the log lacks these."""
OLD = (5.0, 7.5, 10.0, 12.5, 15.0)
NEW = (4.0, 5.0, 6.0, 7.5, 10.0, 12.5)

Words: TypeAlias = Literal["all", "of the collection", "content"]


@dataclass(frozen=True)
class Setting:
    """How searches are made.

    ``words`` may be released: all, or content words, those of the collection with their document
    frequencies or any, more frequent ones being listed first (an engine elsewhere gets these).
    """

    space: str
    words: Words
    prior: float
    drop_function_words: bool
    unknown: UnknownPolicy
    epsilons: tuple[float, ...]


FITTED = Setting("default", "of the collection", defaults.PRIOR, True, "encode", NEW)
SETTINGS = {
    "old": Setting("glove-840b-34k", "all", 0.0, False, "uniform", OLD),
    "new": FITTED,
    "english": replace(FITTED, words="content"),
    "no-prior": replace(FITTED, prior=0.0),
    "function-words": replace(FITTED, drop_function_words=False),
    "34k": replace(FITTED, space="glove-840b-34k", unknown="uniform"),
    "large": replace(FITTED, space="large", unknown="uniform", epsilons=(2.5, 3.5, 4.5, 6, 7.5)),
    "50d": replace(FITTED, space="glove-6b-50d", unknown="uniform", epsilons=(2, 3, 4, 5, 6)),
}


class VectorReranker:
    """Orders documents by vectors that were computed elsewhere."""

    def __init__(self, folder: Path, collection: Collection, texts: Sequence[str]) -> None:
        self.name = str(folder)
        documents, queries = (
            np.load(folder / f"{collection.name}_{kind}.npy").astype(np.float64)
            for kind in ("docs", "queries")
        )
        self._vectors, self._documents = documents, dict(zip(texts, documents, strict=True))
        self._queries = dict(
            zip(map(folded_text, collection.queries.values()), queries, strict=True)
        )

    def scores(self, query: str, texts: Sequence[str]) -> Float64Array:
        """The cosine of the query and each text."""
        if not texts:
            return np.zeros(0)
        vectors = np.stack([self._documents[text] for text in texts])
        return np.asarray(vectors @ self._queries[query])

    def all_scores(self, query: str) -> Float64Array:
        """The cosine of the query and each document, in their order."""
        return np.asarray(self._vectors @ self._queries[query])


class Bench:
    """A collection, its engine and re-ranker, and the log of those who attack its queries."""

    def __init__(self, folder: Path, log: Sequence[str], vectors: Path, most: int) -> None:
        whole = load_collection(folder)
        self.engine = BM25(whole.documents)
        texts = [self.engine.text(document.doc_id) for document in whole.documents]
        self.reranker = VectorReranker(vectors, whole, texts)
        # In capitals a function word passes for an abbreviation: the attacker's log has none.
        queries = {key: folded_text(text) for key, text in judged(whole).items()}
        if len(queries) > most:
            keys, rng = list(queries), np.random.default_rng(0)
            chosen = sorted(rng.permutation(len(keys))[:most].tolist())
            queries = {keys[at]: queries[keys[at]] for at in chosen}
        self.collection = replace(whole, queries=queries)
        self.all_queries = [folded_text(text) for text in whole.queries.values()]
        if not set(queries.values()) <= set(map(folded_text, log)):
            sample = np.random.default_rng(0).choice(len(log), LOG_SAMPLE, replace=False)
            log = [*whole.queries.values(), *(log[at] for at in sorted(sample.tolist()))]
        self.others = log
        self._logs: dict[str, QueryLog] = {}
        self._released: dict[tuple[str, str], OutputVocabulary] = {}
        self._unrelated: dict[tuple[int, int], list[str]] = {}

    def log(self, setting: str) -> QueryLog:
        """One for each setting: it keeps how it was cut into words."""
        return self._logs.setdefault(setting, QueryLog(self.others))

    def released(self, space: WordSpace, words: Words) -> OutputVocabulary:
        """What a search in this space releases."""
        key = (space.name, words)
        if key not in self._released:
            documents = self.collection.documents if words == "of the collection" else ()
            self._released[key] = of_search(space, documents, self.collection.name)
        return self._released[key]

    @cached_property
    def texts(self) -> list[str]:
        """The queries."""
        return list(self.collection.queries.values())

    def reference(self, seeds: Sequence[int]) -> dict[str, float]:
        """nDCG@10 of the queries themselves, and of 20 unrelated ones for each."""
        plain = without_privacy(self.collection, self.engine, self.reranker, DEPTH)
        unrelated = [
            with_unrelated_queries(
                self.collection, self.engine, self.reranker, self.others, N, DEPTH, rng=seed
            )
            for seed in seeds
        ]
        return {
            "the query itself": plain.ndcg.mean,
            "unrelated queries": float(np.mean([quality.ndcg.mean for quality in unrelated])),
            "unrelated pool": float(np.mean([quality.pool for quality in unrelated])),
        }

    def unrelated(self, query: int, seed: int) -> list[str]:
        """Documents that unrelated queries find, as many as a pool can have."""
        if (query, seed) not in self._unrelated:
            rng, documents = np.random.default_rng([seed, query]), dict[str, None]()
            for place in rng.permutation(len(self.others))[: 20 * N].tolist():
                if len(documents) >= N * DEPTH:
                    break
                (hits,) = self.engine.search([self.others[place]], DEPTH)
                documents |= dict.fromkeys(hit.doc_id for hit in hits)
            self._unrelated[query, seed] = list(documents)
        return self._unrelated[query, seed]


def built(bench: Bench, setting: Setting, epsilon: float) -> tuple[NoiseMechanism, TextPipeline]:
    """The mechanism of a setting, and how texts are cut for it."""
    space = load_space(setting.space)
    if setting.words != "all":
        space = space.with_output(bench.released(space, setting.words))
    made = mechanism("cmp", space=space, epsilon=epsilon, prior=setting.prior)
    assert isinstance(made, NoiseMechanism)
    pipeline = TextPipeline(unknown=setting.unknown)
    dropped = setting.drop_function_words
    return made, laid_out_for(bench.engine, pipeline, made, drop_function_words=dropped)


def cell(bench: Bench, name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """What one setting finds and gives away, query by query; it holds no text."""
    made, pipeline = built(bench, SETTINGS[name], epsilon)
    obfuscator = Obfuscator(made, n=N, release="once", pipeline=pipeline, rng=seed)
    search = PrivateSearch(obfuscator, bench.engine, bench.reranker, depth=DEPTH)
    keys = list(bench.collection.queries)
    run, chance, releases = {}, {}, []
    for number, result in enumerate(obfuscator.obfuscate(bench.texts)):
        hits = search.answer(result, None).hits
        run[keys[number]] = {hit.doc_id: hit.score for hit in hits}
        documents = bench.unrelated(number, seed)[: len(hits)]
        texts = [bench.engine.text(document) for document in documents]
        scores = bench.reranker.scores(result.text, texts).tolist()
        chance[keys[number]] = dict(zip(documents, scores, strict=True))
        releases.append(Released(keys[number], result.text, result.variants))
    log = bench.log(name)
    report = attack(
        releases,
        mechanism=made,
        release="once",
        pipeline=pipeline,
        log=log,
        add_originals=True,
        counts=[N],
        rng=seed,
    )
    best = max((inference for _, inference in report.inferences), key=lambda i: i.lazy.value)
    words = strongest(recovery for _, recovery in report.recoveries)
    judgments = {key: bench.collection.judgments[key] for key in keys}
    return {
        "ndcg": effectiveness(run, judgments, ["nDCG@10"])["nDCG@10"].values,
        "chance": effectiveness(chance, judgments, ["nDCG@10"])["nDCG@10"].values,
        "pool": {key: len(hits) for key, hits in run.items()},
        "named": {query.id: [query.rank, query.ties] for query in best.queries},
        "point": dict(zip(keys, point_ranks(bench, made, pipeline, log, seed), strict=True)),
        "attack": best.attack,
        "words": words.mean if words else None,
        "words attack": words.attack if words else None,
        "left out": report.left_out,
    }


def point_ranks(
    bench: Bench, made: NoiseMechanism, pipeline: TextPipeline, log: QueryLog, seed: int
) -> Iterator[tuple[float, int]]:
    """Rank and ties of each query for somebody who sees a noisy point of each word, in order."""
    made = replace(made, space=knowing_words(made, pipeline, log, bench.texts).space)
    space, cutter = made.space, replace(pipeline, order="kept")
    cut = log.cut(space, cutter).with_texts(bench.texts, space, cutter)
    aligned = AlignedLog.of(cut)
    norms = np.einsum("ij,ij->i", space.vectors, space.vectors)
    for number, text in enumerate(bench.texts):
        target, rng = cut.numbers[folded_text(text)], np.random.default_rng([seed, number])
        words = cut.words[cut.starts[target] : cut.starts[target + 1]].astype(np.int64)
        unknown = words == space.size
        words[unknown] = rng.choice(space.output.ids, int(unknown.sum()))
        points = made.perturb(words, Draws([(rng, len(words))]))
        scored = aligned.score(log_densities(made, points, norms, space.output.ids))
        yield scored.rank(target, len(cut))


def log_densities(
    made: NoiseMechanism, points: Float32Array, norms: Float32Array, released: IntArray
) -> Float32Array:
    """-epsilon |z - v| for every word, last for one that the space lacks, (points, size + 1)."""
    squares = norms - 2 * (points @ made.space.vectors.T) + (points**2).sum(axis=1)[:, None]
    rows = -made.epsilon * np.sqrt(np.maximum(squares, 0))
    stands_in = logsumexp(rows[:, released], axis=1) - np.log(len(released))
    return np.column_stack([rows, stands_in]).astype(np.float32)


def asked(bench: Bench, name: str) -> dict[str, Any]:
    """What decides a cell besides its file's name: if it has changed, it is computed again."""
    setting = {**asdict(SETTINGS[name]), "epsilons": None}
    sizes = {"n": N, "depth": DEPTH, "queries": len(bench.texts), "log": len(bench.others)}
    return {**setting, **sizes}


def kept(file: Path, wanted: dict[str, Any]) -> bool:
    """Whether a cell is there, and was made in the way that is asked for."""
    return file.exists() and json.loads(file.read_text("utf-8"))["asked"] == wanted


def compute(
    benches: dict[str, Bench], settings: dict[str, list[float]], seeds: list[int], out: Path
) -> None:
    """All cells that are missing: seed by seed, so that what is there can be compared any time."""
    jobs = [
        (collection, name, epsilon, seed)
        for seed in seeds
        for collection in benches
        for name, epsilons in settings.items()
        for epsilon in epsilons
    ]
    for number, (collection, name, epsilon, seed) in enumerate(jobs, start=1):
        bench, file = benches[collection], out / f"{collection}--{name}--{epsilon:g}--{seed}.json"
        wanted = asked(bench, name)
        if kept(file, wanted):
            continue
        start = time.perf_counter()
        measured = {"asked": wanted, **cell(bench, name, epsilon, seed)}
        write_whole(file, json.dumps(measured).encode())
        seconds = time.perf_counter() - start
        print(f"{number} of {len(jobs)}: {file.stem}, {seconds:.0f} s", file=sys.stderr, flush=True)
    for collection, bench in benches.items():
        file = out / f"{collection}.json"
        if not file.exists():
            write_whole(file, json.dumps(bench.reference(seeds)).encode())


def main() -> None:
    """Compute what is missing, then print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="*", type=Path)
    parser.add_argument("--log", type=Path, help="as sottovoce attack --log reads it")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", default="old,new", help=f"some of {','.join(SETTINGS)}")
    parser.add_argument("--queries", type=int, default=100, help="at most so many of a collection")
    parser.add_argument("--up-to", type=float, default=15.0, help="the largest epsilon")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--tables", action="store_true", help="print what is there, and stop")
    options = parser.parse_args()
    if not options.tables:
        options.out.mkdir(parents=True, exist_ok=True)
        log = read_log(options.log)
        benches = {
            folder.name: Bench(folder, log, options.vectors, options.queries)
            for folder in options.collections
        }
        seeds = [int(seed) for seed in options.seeds.split(",")]
        settings = {
            name: [epsilon for epsilon in SETTINGS[name].epsilons if epsilon <= options.up_to]
            for name in options.settings.split(",")
        }
        compute(benches, settings, seeds, options.out)
    print_tables(options.out, list(SETTINGS))


if __name__ == "__main__":
    main()
