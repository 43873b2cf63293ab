"""What cover finds and gives away, beside mechanisms that replace words: tables of docs/cover.md.

    python benchmarks/cover.py FOLDER... --log FILE --vectors DIR --out DIR
    python benchmarks/cover.py FOLDER... … --jobs cover,pools,words --seeds 1,2,3,4,5
    python benchmarks/cover.py --out DIR --tables

Each FOLDER is a collection with judged queries; --log has a source and a query in each line, and
the queries asked are taken out of it before it is a pool; --vectors as for ``spaces.py``. What
stands for a query is chosen by the strong encoder (or by ``--represented-by``), engines are BM25
and dense by the light encoder, and what is found is ordered by an encoder that did not choose.

*Kind*: where the log holds the queries (MS MARCO), others of that source, which are taken out of
the pool; else the collection's queries that are not asked. One half makes decoys popular, attackers
learn from the other, and from all of it. With too few of these, queries are asked in two halves,
each being all that is public of the other.

Risk is the share of searches in which an attack names what stands for the query, and for
mechanisms that replace words the query itself in a log that holds it. One more attacker knows the
subject: ten other queries of the kind, the nearest to the true one; another all subjects, not whose
is which. Cells are kept under --out, one
file each, and not computed again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spaces
from cover_bench import ALL_SUBJECTS, DEPTHS, CoverBench, chance_of_truth
from cover_tables import print_tables
from spaces import Bench

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.choices import Release
from sottovoce.files import write_whole
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.mechanisms.cover import Cover
from sottovoce.privacy import Released, attack
from sottovoce.privacy.attacks.company.sources import recurrence
from sottovoce.search import laid_out_for
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import IntArray

KIND_OF_LOG = "msmarco"


@dataclass(frozen=True)
class CoverJob:
    """One setting of cover, with a pool from some source."""

    source: str
    k: int
    m: int
    p: float
    decoys: str
    attacked: bool = True

    @property
    def name(self) -> str:
        kind = "cover" if self.attacked else "pool"
        return f"{kind} {self.source} {self.k}x{self.m} {self.p:g} {self.decoys}"

    def measure(self, bench: CoverBench, seeds: Sequence[int]) -> dict[str, Any]:
        """What is found and named, query by query, means over seeds; it holds no text."""
        ndcg: dict[str, list[dict[str, float]]] = {}
        named: dict[str, dict[str, list[float]]] = {}
        sent, present = [], []
        for ready in bench.ready(self.source):
            cover = mechanism(
                f"cover:k={self.k},m={self.m},p={self.p:g},decoys={self.decoys}",
                pool=ready.pool(self.decoys),
            )
            assert isinstance(cover, Cover)
            texts = [bench.texts[row] for row in ready.fold.rows]
            meant = cover.representatives(texts).tolist()
            sets = [cover.release(texts, rng=seed) for seed in seeds]
            grouped = Groups(cover, sets)
            for drawn in sets:
                strings = [ready.places[grouped.places(heads)] for heads in drawn]
                sent += [len(places) for places in strings]
                for engine, quality in found(bench, ready.fold.rows, strings):
                    ndcg.setdefault(engine, []).append(quality)
                seen = [
                    bench.seen(cover, heads, truth, row)
                    for heads, truth, row in zip(drawn, meant, ready.fold.rows, strict=True)
                ]
                present += [one.truth >= 0 for one in seen]
                if not self.attacked:
                    continue
                scored = {
                    name: [one.inside + belief(one) for one in seen]
                    for name, belief in ready.beliefs.items()
                }
                scored["recurrence"] = recurrence(seen)
                for name, rows in scored.items():
                    for one, scores in zip(seen, rows, strict=True):
                        hits = named.setdefault(name, {}).setdefault(one.person, [])
                        hits.append(chance_of_truth(scores, one.truth))
        return {
            "sent": float(np.mean(sent)),
            "chance": float(np.mean(present)) / self.k,
            "epsilon": cover.law.epsilon,
            "strings": len(cover.pool),
            "ndcg": {engine: means(qualities) for engine, qualities in ndcg.items()},
            "named": {
                name: {key: float(np.mean(hits)) for key, hits in by_query.items()}
                for name, by_query in named.items()
            },
        }


class Groups:
    """The strings of each group that some sets hold, looked up together."""

    def __init__(self, cover: Cover, sets: Sequence[IntArray]) -> None:
        heads = np.unique(np.concatenate([drawn.ravel() for drawn in sets]))
        self._near: dict[int, list[int]] = {}
        if cover.m > 1:
            near = cover.pool.best(cover.pool.vectors[heads], cover.m).tolist()
            self._near = dict(zip(heads.tolist(), near, strict=True))
        self._m = cover.m

    def places(self, heads: IntArray) -> IntArray:
        """As ``Cover.group`` has it."""
        return np.unique(
            [
                place
                for head in heads.tolist()
                for place in [head, *(p for p in self._near.get(head, ()) if p != head)][: self._m]
            ]
        )


def found(
    bench: CoverBench, rows: Sequence[int], strings: Sequence[IntArray]
) -> Iterator[tuple[str, dict[str, float]]]:
    """nDCG@10 of some queries by engine and depth, given what strings are sent for each."""
    for name, answers in bench.answers.items():
        tables = [answers.of(places) for places in strings]
        for depth in DEPTHS:
            at_depth = [table[:, :depth] for table in tables]
            yield f"{name} {depth}", bench.ndcg(dict(zip(rows, at_depth, strict=True)))


def means(qualities: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every query over the runs that have it."""
    values: dict[str, list[float]] = {}
    for quality in qualities:
        for key, value in quality.items():
            values.setdefault(key, []).append(value)
    return {key: float(np.mean(of_query)) for key, of_query in values.items()}


@dataclass(frozen=True)
class WordsJob:
    """One setting of a mechanism that replaces words, at some number of variants.

    cmp has the space, vocabulary and prior of a search by BM25; others have all words of a space of
    34,000, and unknown ones are replaced uniformly. Words go in random order to BM25.
    """

    mechanism: str
    epsilon: float
    release: Release
    n: int
    engine: str

    @property
    def name(self) -> str:
        return f"words {self.mechanism} {self.epsilon:g} {self.release} {self.n} {self.engine}"

    def measure(self, bench: CoverBench, seeds: Sequence[int]) -> dict[str, Any]:
        """What is found, and named in the log and among texts on the same subjects."""
        answers, base = bench.answers[self.engine], copy(bench.base)
        base.engine = answers.engine
        made, pipeline = self._built(base)
        ndcg: dict[str, list[dict[str, float]]] = {}
        named: dict[str, list[dict[str, float]]] = {}
        logs = {
            "aligned": base.log(f"{self.mechanism} {self.engine}"),
            ALL_SUBJECTS: bench.subject_log(f"{self.mechanism} {self.engine}"),
        }
        for seed in seeds:
            obfuscator = Obfuscator(
                made, n=self.n, release=self.release, pipeline=pipeline, rng=seed
            )
            results = list(obfuscator.obfuscate(bench.texts))
            rows = [answers.search(list(dict.fromkeys(result.variants))) for result in results]
            for depth in DEPTHS:
                pooled = {row: answered[:, :depth] for row, answered in enumerate(rows)}
                ndcg.setdefault(f"{self.engine} {depth}", []).append(bench.ndcg(pooled))
            releases = [
                Released(key, result.text, result.variants)
                for key, result in zip(bench.keys, results, strict=True)
            ]
            for name, log in logs.items():
                report = attack(
                    releases,
                    mechanism=made,
                    release=self.release,
                    pipeline=pipeline,
                    log=log,
                    add_originals=True,
                    counts=[self.n],
                    attacks=["aligned"],
                    rng=seed,
                )
                attempts = [
                    {query.id: float(query.rank == 1) for query in inference.queries}
                    for _, inference in report.inferences
                ]
                strongest = max(attempts, key=lambda hits: sum(hits.values()))
                named.setdefault(name, []).append(strongest)
        return {
            "sent": self.n,
            "ndcg": {name: means(by_seed) for name, by_seed in ndcg.items()},
            "named": {name: means(by_seed) for name, by_seed in named.items()},
        }

    def _built(self, base: Bench) -> tuple[WordMechanism, TextPipeline]:
        if self.mechanism == "cmp":
            return spaces.built(base, spaces.SETTINGS["new"], self.epsilon)
        space = load_space(spaces.SETTINGS["old"].space)
        made = mechanism(self.mechanism, space=space, epsilon=self.epsilon)
        assert isinstance(made, WordMechanism)
        return made, laid_out_for(base.engine, TextPipeline(unknown="uniform"), made)


@dataclass(frozen=True)
class UnrelatedJob:
    """Random strings of a pool, none of them for the query: what is owed to chance."""

    source: str
    n: int

    @property
    def name(self) -> str:
        return f"unrelated {self.source} {self.n}"

    def measure(self, bench: CoverBench, seeds: Sequence[int]) -> dict[str, Any]:
        """nDCG@10 of each query."""
        ndcg: dict[str, list[dict[str, float]]] = {}
        (ready, *_) = bench.ready(self.source)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            strings = [rng.choice(ready.places, self.n, replace=False) for _ in bench.texts]
            for engine, quality in found(bench, range(len(bench.texts)), strings):
                ndcg.setdefault(engine, []).append(quality)
        qualities = {engine: means(each_seed) for engine, each_seed in ndcg.items()}
        return {"sent": self.n, "ndcg": qualities, "named": {}}


Job = CoverJob | WordsJob | UnrelatedJob


WORDS: tuple[tuple[str, Release, tuple[float, ...]], ...] = (
    ("cmp", "once", (5, 7.5, 10)),
    ("cmp", "independent", (2.5, 5, 7.5)),
    ("mahalanobis", "once", (7.5, 10)),
    ("vickrey-cmp", "once", (7.5, 10)),
    ("vickrey-mahalanobis", "once", (10,)),
    ("santext", "independent", (1, 1.5, 2)),
    ("tem", "independent", (1, 1.5, 2)),
    ("custext", "independent", (1, 10)),
)
"""Published mechanisms that replace words, at epsilons from hardly any risk to half; of wbb in
random order the places are not found, so that no attack of equal strength applies."""


def cover_jobs(bench: CoverBench) -> Iterator[Job]:
    """Sets of some 20, 50 and 100 queries."""
    sizes = ((20, 1), (50, 1), (16, 3), (10, 5), (100, 1), (33, 3), (20, 5))
    for source in ("log", "own", "own and log"):
        if source in bench.sources:
            for n in (20, 50, 100):
                yield UnrelatedJob(source, n)
            for k, m in sizes:
                yield CoverJob(source, k, m, 0.97, "popular")
            for k in (20, 50, 100):
                yield CoverJob(source, k, 1, 0.97, "uniform")
                yield CoverJob(source, k, 1, 0.9, "popular")


def pool_jobs(bench: CoverBench) -> Iterator[Job]:
    """What is found with pools of every source and size."""
    for source in bench.sources:
        for k, m in ((20, 1), (50, 1), (16, 3)):
            yield CoverJob(source, k, m, 0.97, "uniform", attacked=False)


def word_jobs(bench: CoverBench) -> Iterator[Job]:
    """Mechanisms that replace words, at the same numbers of queries."""
    for n in (20, 50, 100):
        for engine in bench.answers:
            for spec, release, epsilons in WORDS:
                for epsilon in epsilons:
                    yield WordsJob(spec, epsilon, release, n, engine)


JOBS: dict[str, Callable[[CoverBench], Iterator[Job]]] = {
    "cover": cover_jobs,
    "pools": pool_jobs,
    "words": word_jobs,
}


def compute(bench: CoverBench, jobs: Sequence[Job], seeds: Sequence[int], out: Path) -> None:
    """All cells of a collection that are missing, or were made in another way."""
    reference = out / f"{bench.name}.json"
    if not reference.exists():
        write_whole(reference, json.dumps(bench.without_privacy()).encode())
    for job in jobs:
        file = out / f"{bench.name}--{job.name.replace(' ', '_')}.json"
        wanted = {**asdict(job), "seeds": list(seeds), "queries": len(bench.texts)}
        if file.exists() and json.loads(file.read_text("utf-8"))["asked"] == wanted:
            continue
        start = time.perf_counter()
        cell = {"asked": wanted, **job.measure(bench, seeds)}
        write_whole(file, json.dumps(cell).encode())
        seconds = time.perf_counter() - start
        print(f"{bench.name}: {job.name}, {seconds:.0f} s", file=sys.stderr, flush=True)


def read_sources(file: Path) -> tuple[list[str], list[str]]:
    """All queries of the log, and those of the kind."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[-1] for row in rows], [row[-1] for row in rows if row[0] == KIND_OF_LOG]


def main() -> None:
    """Compute what is missing, then print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="*", type=Path)
    parser.add_argument("--log", type=Path, help="gzipped: source, tab, query")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", default="cover,pools", help=f"some of {','.join(JOBS)}")
    parser.add_argument("--only", default="", help="jobs whose name holds one of these, by commas")
    parser.add_argument("--queries", type=int, default=100, help="at most so many of a collection")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--represented-by", default="strong", help="encoder of the pools")
    parser.add_argument("--tables", action="store_true", help="print what is there, and stop")
    options = parser.parse_args()
    if not options.tables:
        options.out.mkdir(parents=True, exist_ok=True)
        log, kind = read_sources(options.log)
        seeds = [int(seed) for seed in options.seeds.split(",")]
        in_log = set(map(folded_text, kind))
        for folder in options.collections:
            base = spaces.Bench(folder, log, options.vectors, options.queries)
            holds = in_log.issuperset(map(folded_text, base.texts))
            kind_in_log = kind if holds else ()
            chooser = options.represented_by
            bench = CoverBench(base, folder, log, kind_in_log, options.out, chooser)
            made = (job for name in options.jobs.split(",") for job in JOBS[name](bench))
            wanted = options.only.split(",")
            jobs = [job for job in made if any(part in job.name for part in wanted)]
            compute(bench, jobs, seeds, options.out)
    print_tables(options.out)


if __name__ == "__main__":
    main()
