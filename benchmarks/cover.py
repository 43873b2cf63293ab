"""What cover finds and gives away, beside other mechanisms: tables of docs/cover-measured.md.

    python benchmarks/cover.py FOLDER... --log FILE --vectors DIR --out DIR
    python benchmarks/cover.py FOLDER... … --jobs cover,words --seeds 1,2,3 --only "50x1,santext"
    python benchmarks/cover.py --out DIR --tables --page docs/comparison.md --figure FILE.svg

Each FOLDER is a collection with judged queries; --log has a source and a query in each line, and
the queries asked are taken out of it before it is a pool; --vectors as for ``spaces.py``. What
stands for a query is chosen by the strong encoder (or by ``--represented-by``), engines are BM25
and dense by the light encoder, and what is found is ordered by an encoder that did not choose.

*Kind*: where the log holds the queries (MS MARCO), others of that source, which are taken out of
the pool; else the collection's queries that are not asked. One half makes decoys popular, attackers
learn from the other, and from all of it. With too few of these, queries are asked in two halves,
each being all that is public of the other.

Risk is the share of searches in which an attack names what stands for the query, and for
mechanisms that replace words the query itself; who attacks has a log that holds it, all queries
alike; or also other queries of the kind, so that those of the log that look like these are
likelier; or a short list: all queries, and the five strings of the log nearest to each. Of cover
two more are tried: one knows the subjects of all queries, not whose is which, the other ten other
queries of the kind, the nearest to the true one. Cells are kept under --out, one file for a seed,
number of queries and engine, and not computed again; what is there can be looked at any time.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import spaces
from cover_bench import DEPTHS, QUARTER, CoverBench, chance_of_truth
from cover_page import draw, merge, print_together, read_sections
from cover_tables import print_attacks, print_tables, sections
from cover_words import COUNTS, Cells, ChorusJob, TextsJob, WordsJob, beside_cover

from sottovoce import mechanism
from sottovoce.files import write_whole
from sottovoce.mechanisms.cover import Cover
from sottovoce.privacy.attacks.company.sources import recurrence
from sottovoce.text import folded_text
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

    def cells(self, bench: CoverBench, seed: int) -> Cells:
        """What is found and named, query by query."""
        ndcg: dict[str, dict[str, float]] = {}
        named: dict[str, dict[str, float]] = {}
        sent, present = [], []
        for ready in bench.ready(self.source):
            cover = mechanism(
                f"cover:k={self.k},m={self.m},p={self.p:g},decoys={self.decoys}",
                pool=ready.pool(self.decoys),
            )
            assert isinstance(cover, Cover)
            texts = [bench.texts[row] for row in ready.fold.rows]
            meant = cover.representatives(texts).tolist()
            drawn = cover.release(texts, rng=seed)
            grouped = Groups(cover, drawn)
            strings = [ready.places[grouped.places(heads)] for heads in drawn]
            sent += [len(places) for places in strings]
            for engine, quality in found(bench, ready.fold.rows, strings):
                ndcg.setdefault(engine, {}).update(quality)
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
                    hit = chance_of_truth(scores, one.truth)
                    named.setdefault(name, {})[one.person] = hit
        yield (
            self.name,
            {
                "sent": float(np.mean(sent)),
                "chance": float(np.mean(present)) / self.k,
                "epsilon": cover.law.epsilon,
                "strings": len(cover.pool),
                "ndcg": ndcg,
                "named": named,
            },
        )


class Groups:
    """The strings of each group that some sets hold, looked up together."""

    def __init__(self, cover: Cover, drawn: IntArray) -> None:
        heads = np.unique(drawn)
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


@dataclass(frozen=True)
class UnrelatedJob:
    """Random strings of a pool, none of them for the query: what is owed to chance."""

    source: str
    n: int

    @property
    def name(self) -> str:
        return f"unrelated {self.source} {self.n}"

    def cells(self, bench: CoverBench, seed: int) -> Cells:
        """nDCG@10 of each query."""
        (ready, *_) = bench.ready(self.source)
        rng = np.random.default_rng(seed)
        strings = [rng.choice(ready.places, self.n, replace=False) for _ in bench.texts]
        ndcg = dict(found(bench, range(len(bench.texts)), strings))
        yield self.name, {"sent": self.n, "ndcg": ndcg, "named": {}}


Job = CoverJob | UnrelatedJob | WordsJob | TextsJob | ChorusJob


def cover_jobs(_: CoverBench) -> Iterator[Job]:
    """Sets of some 20, 50 and 100 queries."""
    sizes = ((20, 1), (50, 1), (16, 3), (10, 5), (100, 1), (33, 3), (20, 5))
    for source in ("log", "half of the log", QUARTER, "own", "own and log"):
        for n in COUNTS:
            yield UnrelatedJob(source, n)
        for k, m in sizes:
            yield CoverJob(source, k, m, 0.97, "popular")
            yield CoverJob(source, k, m, 0.97, "uniform")
        for k in COUNTS:
            yield CoverJob(source, k, 1, 0.9, "popular")


def pool_jobs(bench: CoverBench) -> Iterator[Job]:
    """What is found with pools of every source and size."""
    for source in bench.sources:
        for k, m in ((20, 1), (50, 1), (16, 3)):
            yield CoverJob(source, k, m, 0.97, "uniform", attacked=False)


def word_jobs(bench: CoverBench) -> Iterator[Job]:
    """Mechanisms that replace words, and whole texts, at the same numbers of queries."""
    yield from beside_cover(bench.answers)


JOBS: dict[str, Callable[[CoverBench], Iterator[Job]]] = {
    "cover": cover_jobs,
    "pools": pool_jobs,
    "words": word_jobs,
}


def compute(
    benches: Sequence[CoverBench],
    kinds: str,
    only: str,
    seeds: Sequence[int],
    out: Path,
    counts: Sequence[int] = COUNTS,
) -> None:
    """All cells that are missing, job by job, with all seeds of one; they hold no text.

    What a job learns of a mechanism serves the next collection, and the next seed.
    """
    for bench in benches:
        reference = out / f"{bench.name}.json"
        if not reference.exists():
            write_whole(reference, json.dumps(bench.without_privacy()).encode())
    todo = [
        (place, seed, bench, job)
        for bench in benches
        for place, job in enumerate(job for kind in kinds.split(",") for job in JOBS[kind](bench))
        if any(part in job.name for part in only.split(","))
        and not set(counts).isdisjoint(getattr(job, "counts", counts))
        for seed in seeds
    ]
    for _, seed, bench, job in sorted(todo, key=lambda one: one[0]):
        numbers = "-".join(map(str, getattr(job, "counts", ())))
        done = out / f"{bench.name}--{job.name.replace(' ', '_')}--{numbers}--{seed}.done"
        if done.exists():
            continue
        start = time.process_time()
        for name, cell in job.cells(bench, seed):
            asked = {"job": name, "seed": seed, "queries": len(bench.texts)}
            file = out / f"{bench.name}--{name.replace(' ', '_')}--{seed}.json"
            write_whole(file, json.dumps({"asked": asked, **cell}).encode())
        done.touch()
        seconds = time.process_time() - start
        print(f"{bench.name}: {job.name} {numbers}, seed {seed}, {seconds:.0f} s", file=sys.stderr)


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
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="queries a search")
    parser.add_argument("--queries", type=int, default=100, help="at most so many of a collection")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--represented-by", default="strong", help="encoder of the pools")
    parser.add_argument("--tables", action="store_true", help="print what is there, and stop")
    parser.add_argument("--attacks", action="store_true", help="print each attack, and stop")
    parser.add_argument(
        "--page",
        type=Path,
        help="put what is there into this page, whose other rows stay, and stop",
    )
    parser.add_argument("--fill", action="store_true", help="put there only what it leaves empty")
    parser.add_argument("--figure", type=Path, help="draw what the page says")
    options = parser.parse_args()
    if options.figure and not options.page:
        parser.error("--figure draws what a page says: add --page FILE.md")
    if not (options.tables or options.attacks or options.page):
        options.out.mkdir(parents=True, exist_ok=True)
        log, kind = read_sources(options.log)
        seeds = [int(seed) for seed in options.seeds.split(",")]
        in_log = set(map(folded_text, kind))
        benches = []
        for folder in options.collections:
            base = spaces.Bench(folder, log, options.vectors, options.queries)
            holds = in_log.issuperset(map(folded_text, base.texts))
            kind_in_log = kind if holds else ()
            chooser = options.represented_by
            benches.append(CoverBench(base, folder, log, kind_in_log, options.out, chooser))
        counts = [int(count) for count in options.counts.split(",")]
        compute(benches, options.jobs, options.only, seeds, options.out, counts)
    if options.tables:
        print_tables(options.out)
    if options.attacks:
        print_attacks(options.out)
    if options.page:
        merge(options.page, sections(options.out), only_fill=options.fill)
        on_page = read_sections(options.page.read_text("utf-8"))
        print_together(on_page)
        if options.figure:
            draw(on_page, options.figure)


if __name__ == "__main__":
    main()
