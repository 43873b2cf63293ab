"""What a chorus gives away, and what it finds, beside the same number of queries without one.

    python benchmarks/chorus.py                  the demo: 65 queries, its log as pool
    python benchmarks/chorus.py --half           a pool that lacks them: half of the log's others
    python benchmarks/chorus.py --again          each asks twice, with a word in common

The mechanism is used as a search uses it (fitted to the documents, content words in random order,
``once``). Shares are means over the seeds; nDCG@10 is BM25's, re-ranked by the light encoder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from time import perf_counter

from sottovoce import Obfuscator, PrivateSearch, mechanism
from sottovoce.collections import Collection, demo_log, load_collection
from sottovoce.defaults import DEMO_DEPTH
from sottovoce.engines import BM25
from sottovoce.evaluation import with_privacy, without_privacy
from sottovoce.evaluation.search_quality import judged
from sottovoce.obfuscation import Chorus
from sottovoce.output_vocabularies import of_search
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy import ChorusReport, Knowledge, QueryLog, Released, attack, attack_chorus
from sottovoce.search import fitted_to, laid_out_for, load_reranker
from sottovoce.search.reranking import EncoderReranker
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import content_words

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import decoy_sources as sources
from naive_chorus import RemembersByWord

CHOIRS = ((5, 4), (10, 2), (5, 10))
"""k and n."""
NEAR = 15
"""Strings near to a query, among which one with a word of it is looked for."""
WEAKER = ("5", "6")
"""Epsilons at which the mechanism alone finds as much as a chorus does at larger ones."""


class Bench:
    """The demo, its engine and re-ranker, and what attackers know."""

    def __init__(self, pool: Pool, collection: Collection) -> None:
        self.pool, self.collection = pool, collection
        self.texts = list(judged(collection).values())
        self.engine = BM25(collection.documents)
        self.reranker = load_reranker("light")
        if isinstance(self.reranker, EncoderReranker):
            texts = [self.engine.text(document.doc_id) for document in collection.documents]
            self.reranker.prepare(texts)
        self.log = QueryLog(demo_log())
        # What people of this kind ask: the strings nearest to the queries, but not these.
        self.known = Knowledge(sources.near_subjects(load_pool("demo", "light"), self.texts, 15))

    def obfuscator(self, spec: str, n: int, seed: int) -> Obfuscator:
        """A mechanism as a search uses it."""
        plain = mechanism(spec)
        space = plain.space.with_output(of_search(plain.space, self.collection.documents, "demo"))
        fitted = fitted_to(self.engine, plain, lambda: space)
        made = Obfuscator(fitted, n=n, release="once", rng=seed)
        layout = laid_out_for(self.engine, made.pipeline, fitted, drop_function_words=True)
        return replace(made, pipeline=layout)

    def ndcg(self, obfuscator: Obfuscator) -> float:
        """How good the answers are."""
        search = PrivateSearch(obfuscator, self.engine, self.reranker, depth=DEMO_DEPTH)
        return with_privacy(self.collection, search).ndcg.mean

    def alone(self, spec: str, n: int, seeds: Sequence[int]) -> None:
        """The mechanism without company."""
        named, found = [], []
        for seed in seeds:
            made = self.obfuscator(spec, n, seed)
            releases = [
                Released(str(number), result.text, result.variants)
                for number, result in enumerate(made.obfuscate(self.texts))
            ]
            report = attack(
                releases,
                mechanism=made.mechanism,
                release="once",
                pipeline=made.pipeline,
                log=self.log,
                add_originals=True,
                attacks=["aligned"],
                counts=[n],
                rng=0,
            )
            named.append(report.inferences[-1][1].lazy.value)
            found.append(self.ndcg(made))
        print(f"\n{spec} alone, n={n}: {n} queries, nDCG@10 {mean(found):.3f}")
        print(f"  aligned: query {mean(named):.2f}", flush=True)

    def chorus(self, spec: str, k: int, n: int, seeds: Sequence[int]) -> None:
        """The mechanism in a chorus."""
        reports, found, start = [], [], perf_counter()
        for seed in seeds:
            made = self.obfuscator(spec, n, seed)
            parts = {
                name: getattr(made, name) for name in ("mechanism", "n", "release", "pipeline")
            }
            choir = Chorus(**parts, rng=seed, pool=self.pool, k=k)
            results = list(choir.obfuscate(self.texts))
            reports.append(attack_chorus(choir, results, self.log, knowledge=self.known, rng=0))
            found.append(self.ndcg(choir))
        print(f"\n{spec} in chorus, k={k}, n={n}: {k * n} queries, ", end="")
        print(
            f"nDCG@10 {mean(found):.3f}, blind guess {1 / k:.2f} ({perf_counter() - start:.0f} s)"
        )
        show(reports)

    def again(self, spec: str, k: int, n: int) -> None:
        """Each person asks twice: a query, and the nearest string of the pool with a word of it."""
        pairs = list(self._pairs())
        texts = [text for pair in pairs for text in pair]
        persons = [str(number) for number in range(len(pairs)) for _ in range(2)]
        made = self.obfuscator(spec, n, seed=0)
        parts = {name: getattr(made, name) for name in ("mechanism", "n", "release", "pipeline")}
        print(f"\n{spec}, k={k}, n={n}, {len(pairs)} persons, two searches with a word in common:")
        for name, kind in (("a chorus", Chorus), ("words remembered by word", RemembersByWord)):
            choir = kind(**parts, pool=self.pool, k=k)
            results = [
                next(replace(choir, memory_key=person.encode()).obfuscate([text]))
                for text, person in zip(texts, persons, strict=True)
            ]
            report = attack_chorus(
                choir, results, self.log, persons=persons, knowledge=self.known, rng=0
            )
            print(f" {name}")
            show([report])

    def _pairs(self) -> Iterator[tuple[str, str]]:
        nearest = self.pool.best(self.pool.encoder.encode(self.texts), NEAR)
        for text, row in zip(self.texts, nearest.tolist(), strict=True):
            held = {*content_words(text)}
            strings = (self.pool.strings[place] for place in row)
            for string in strings:
                if folded_text(string) != folded_text(text) and held & {*content_words(string)}:
                    yield text, string
                    break


def show(reports: Sequence[ChorusReport]) -> None:
    """A line for each attack."""
    for at, made in enumerate(reports[0].namings):
        namings, told = [r.namings[at] for r in reports], [r.told[at] for r in reports]
        group, query, subject, inside = (
            mean(share.value or 0 for share in shares)
            for shares in (
                [naming.group for naming in namings],
                [naming.query for naming in namings],
                [naming.subject for naming in namings],
                [naming.query for naming in told],
            )
        )
        print(
            f"  {made.attack:35} group {group:.2f}   query, told the group {inside:.2f}   "
            f"both {query:.2f}   subject {subject:.2f}",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", action="store_true", help="a pool without the queries asked")
    parser.add_argument("--again", action="store_true", help="two searches of each person")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--epsilons", default="7.5,10")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    collection, pool = load_collection("demo"), load_pool("demo", "light")
    if options.half:
        asked = set(map(folded_text, judged(collection).values()))
        others = [string for string in pool.strings if folded_text(string) not in asked]
        pool = Pool(others[::2], "light")
    bench = Bench(pool, collection)
    epsilons = options.epsilons.split(",")
    if options.again:
        for epsilon in epsilons:
            bench.again(f"cmp:epsilon={epsilon}", *CHOIRS[0])
        return
    plain = without_privacy(collection, bench.engine, bench.reranker, DEMO_DEPTH)
    print(f"the queries themselves: nDCG@10 {plain.ndcg.mean:.3f}")
    for epsilon in (*WEAKER, *epsilons):
        for n in dict.fromkeys(k * n for k, n in CHOIRS):
            bench.alone(f"cmp:epsilon={epsilon}", n, seeds)
    for epsilon in epsilons:
        for k, n in CHOIRS:
            bench.chorus(f"cmp:epsilon={epsilon}", k, n, seeds)


if __name__ == "__main__":
    main()
