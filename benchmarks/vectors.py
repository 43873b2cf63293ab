"""What a store of vectors finds and learns, given noisy vectors: tables of docs/vectors.md.

    python benchmarks/vectors.py FOLDER... --log FILE --out DIR
    python benchmarks/vectors.py FOLDER... … --encoders light,strong --seeds 1,2,3 --vectors DIR
    python benchmarks/vectors.py --out DIR --tables

Each FOLDER is a collection with judged queries, at most 100 of which are asked, the same as in
``cover.py``. The store has the encoder's vectors of all documents and compares with all of them.
What it answers is ordered by those of --rerankers, light, strong or bm25, and by the vectors of
--vectors (as for ``spaces.py``) where they are there.

*Log*: the exact posterior names the query in the log; queries that it lacks are put beside it.
*All subjects*: the same in a log of the queries and the five strings nearest to each. *Subject*:
the likeliest query that is not the true one is on its subject (``subject.py``, by the light
encoder). *Inside*: all of the true top ten, and the mean share of them. Cells are kept under --out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.collections import load_collection
from sottovoce.encoders import Encoder, corpus_vectors, load_encoder
from sottovoce.engines import BM25
from sottovoce.engines.base import whole_text
from sottovoce.evaluation import effectiveness
from sottovoce.evaluation.search_quality import judged
from sottovoce.files import write_whole
from sottovoce.obfuscation.vectors import VectorNoise
from sottovoce.privacy import QueryLog, SeenVector, invert, read_log
from sottovoce.privacy.attacks.company.run import NEAR_A_SUBJECT
from sottovoce.privacy.attacks.subject import alike_from, cosines
from sottovoce.randomness import Draws, Streams
from sottovoce.statistics import bootstrap_mean, clopper_pearson
from sottovoce.text import folded_text
from sottovoce.types import Float64Array, IntArray

DEPTHS = (10, 100, 1000)
TOP = 10
EPSILONS = (20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 200.0)
ENCODERS = ("light", "strong")
ALONE = "noise alone"
"""A vector that has nothing to do with the query: what depth finds by itself."""


class StoreBench:
    """A collection in a store of vectors, its judged queries, and those who attack them."""

    def __init__(self, folder: Path, log: QueryLog, vectors: Path | None, most: int) -> None:
        whole = load_collection(folder)
        self.name, self.log, self.judgments = folder.name, log, whole.judgments
        queries = {key: folded_text(text) for key, text in judged(whole).items()}
        if len(queries) > most:
            keys, rng = list(queries), np.random.default_rng(0)
            some = sorted(rng.permutation(len(keys))[:most].tolist())
            queries = {keys[at]: queries[keys[at]] for at in some}
        self.keys, self.texts = list(queries), list(queries.values())
        self.ids = [document.doc_id for document in whole.documents]
        self._collection = whole.documents
        self._documents = [whole_text(document) for document in whole.documents]
        self.scores: dict[str, Float64Array] = {}
        self._alike: dict[str, float] = {}
        if vectors is not None and (vectors / f"{self.name}_docs.npy").exists():
            rows = [list(whole.queries).index(key) for key in self.keys]
            asked = np.load(vectors / f"{self.name}_queries.npy")[rows].astype(np.float64)
            documents = np.load(vectors / f"{self.name}_docs.npy").astype(np.float64)
            self.scores[vectors.name] = asked @ documents.T

    def documents(self, encoder: Encoder) -> Float64Array:
        """The vectors that a store has."""
        return corpus_vectors(encoder, self._documents).astype(np.float64)

    def scored_by(self, names: Sequence[str]) -> None:
        """Let these order answers: by how well each document answers each true query."""
        for name in names:
            if name == "bm25":
                places = {doc_id: at for at, doc_id in enumerate(self.ids)}
                scores = np.zeros((len(self.texts), len(self.ids)))
                answers = BM25(self._collection).search(self.texts, len(self.ids))
                for row, hits in zip(scores, answers, strict=True):
                    row[[places[hit.doc_id] for hit in hits]] = [hit.score for hit in hits]
                self.scores[name] = scores
            else:
                encoder = load_encoder(name)
                asked = encoder.encode(self.texts).astype(np.float64)
                self.scores[name] = asked @ self.documents(encoder).T

    @cached_property
    def subject_log(self) -> QueryLog:
        """The strings of the log nearest to all queries, by the strong encoder as in cover.py."""
        strong = load_encoder("strong")
        products = strong.encode(self.texts) @ np.asarray(self.log.vectors(strong)).T
        same = set(self.texts)
        near: dict[str, None] = {}
        for row in products:
            best = np.argsort(-row, kind="stable")[: NEAR_A_SUBJECT + len(same)].tolist()
            unlike = [self.log.queries[at] for at in best if self.log.queries[at] not in same]
            near.update(dict.fromkeys(unlike[:NEAR_A_SUBJECT]))
        return QueryLog(near)

    def alike(self, encoder: Encoder) -> float:
        """The cosine from which on two queries have the same subject; found once."""
        if encoder.name not in self._alike:
            self._alike[encoder.name] = alike_from(encoder, self.log.queries)
        return self._alike[encoder.name]

    def ndcg(self, fetched: IntArray, scores: Float64Array) -> dict[str, float]:
        """nDCG@10 of each query, given rows of documents, put in order by the true query."""
        run = {}
        for key, row, of_query in zip(self.keys, fetched, scores, strict=True):
            documents = np.sort(row)
            best = documents[np.argsort(-of_query[documents], kind="stable")[:TOP]]
            run[key] = [self.ids[at] for at in best.tolist()]
        judgments = {key: self.judgments[key] for key in run}
        return dict(effectiveness(run, judgments, ["nDCG@10"])["nDCG@10"].values)


def best(points: Float64Array, documents: Float64Array) -> IntArray:
    """The documents with the largest product with each point, best first."""
    products = points @ documents.T
    depth = min(max(DEPTHS), products.shape[1])
    rows = np.argpartition(-products, depth - 1, axis=1)[:, :depth]
    order = np.argsort(-np.take_along_axis(products, rows, axis=1), axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1)


def found(bench: StoreBench, answers: IntArray, true: IntArray) -> dict[str, Any]:
    """What an answer is worth at each depth, query by query."""
    cells: dict[str, Any] = {}
    for depth in DEPTHS:
        fetched = answers[:, :depth]
        inside = [
            len(set(row.tolist()) & set(top.tolist()))
            for row, top in zip(fetched, true[:, :TOP], strict=True)
        ]
        cells[f"top {depth}"] = dict(zip(bench.keys, inside, strict=True))
        for name, scores in bench.scores.items():
            cells[f"ndcg {depth} {name}"] = bench.ndcg(fetched, scores)
    return cells


def measure(
    bench: StoreBench, name: str, epsilon: float | None, seeds: Sequence[int]
) -> dict[str, Any]:
    """One setting; an epsilon of None is the query itself, one of 0 noise alone."""
    encoder = load_encoder(name)
    mechanism = VectorNoise(encoder, epsilon or 1.0)
    vectors, documents = mechanism.encode(bench.texts), bench.documents(encoder)
    true = best(vectors.astype(np.float64), documents)
    if epsilon is None:
        return {"seeds": [found(bench, true, true)]}
    judge = load_encoder("light")
    threshold = bench.alike(judge)
    cells = []
    for seed in seeds:
        streams = Streams(seed, mechanism.spec)
        draws = Draws([(streams.generator(at, 0, 0, 0), 1) for at in range(len(vectors))])
        sent = mechanism.move(vectors if epsilon else np.zeros_like(vectors), draws)
        cell = found(bench, best(sent.astype(np.float64), documents), true)
        seen = list(map(SeenVector, bench.keys, bench.texts, sent))
        logs = {"log": bench.log, "all subjects": bench.subject_log}
        for kind, log in logs.items():
            inversion = invert(seen, log, mechanism, add_originals=True)
            ranks = inversion.inference.ranks
            cell[kind] = dict(zip(bench.keys, (ranks == 1).tolist(), strict=True))
            if kind == "log":
                alike = cosines(bench.texts, inversion.nearest_others, judge) > threshold
                cell["subject"] = dict(zip(bench.keys, alike.tolist(), strict=True))
                cell["posterior"] = dict(zip(bench.keys, inversion.posteriors, strict=True))
        cells.append(cell)
    return {"seeds": cells}


def compute(bench: StoreBench, encoders: Sequence[str], seeds: Sequence[int], out: Path) -> None:
    """All cells of a collection that are missing."""
    for name in encoders:
        for epsilon in (None, 0.0, *EPSILONS):
            label = {None: "true", 0.0: "alone"}.get(epsilon, f"{epsilon}")
            file = out / f"{bench.name}--{name}--{label}.json"
            if file.exists():
                continue
            start = time.process_time()
            write_whole(file, json.dumps(measure(bench, name, epsilon, seeds)).encode())
            seconds = time.process_time() - start
            print(f"{file.stem}: {seconds:.0f} s", file=sys.stderr, flush=True)


# Tables


def by_query(cells: Sequence[dict[str, Any]], key: str) -> Float64Array:
    """The mean of each query over the seeds."""
    return np.mean([list(cell[key].values()) for cell in cells], axis=0)


def rows(out: Path, collection: str, encoder: str, by: str | None) -> Iterator[str]:
    """The lines of one table: nDCG@10; the share of the top ten inside, and how often all are."""
    files = {file.stem.split("--")[2]: file for file in out.glob(f"{collection}--{encoder}--*")}
    plain = json.loads(files["true"].read_text("utf-8"))["seeds"]
    rerankers = [key.split(" ", 2)[2] for key in plain[0] if key.startswith(f"ndcg {DEPTHS[0]} ")]
    by = by or next((name for name in rerankers if name != encoder), encoder)
    labels = ["true", *sorted((label for label in files if label[0].isdigit()), key=float), "alone"]
    for label in labels:
        cells = json.loads(files[label].read_text("utf-8"))["seeds"]
        shown = [{"true": "the query itself", "alone": ALONE}.get(label) or f"{float(label):g}"]
        for kind in ("log", "all subjects", "subject"):
            if kind not in cells[0]:
                shown.append("1" if kind != "subject" else "")
                continue
            right = by_query(cells, kind)
            one_seed = clopper_pearson(int(sum(cells[0][kind].values())), len(right))
            interval = f" ({one_seed[0]:.2f}–{one_seed[1]:.2f})" if kind == "log" else ""
            shown.append(f"{right.mean():.2f}{interval}")
        for depth in DEPTHS:
            ndcg = by_query(cells, f"ndcg {depth} {by}")
            inside = by_query(cells, f"top {depth}")
            whole = np.mean([[v == TOP for v in cell[f"top {depth}"].values()] for cell in cells])
            shown.append(f"{ndcg.mean():.3f}; {inside.mean() / TOP:.2f}, {whole:.2f}")
        yield f"| {' | '.join(shown)} |"
    low, high = bootstrap_mean(by_query(plain, f"ndcg {DEPTHS[1]} {by}"))
    yield f"ordered by {by}; the query itself at depth {DEPTHS[1]}: 95 % {low:.3f}–{high:.3f}"


def print_tables(out: Path, by: str | None) -> None:
    """All tables that are there."""
    names = sorted({tuple(file.stem.split("--")[:2]) for file in out.glob("*--*--true.json")})
    for collection, encoder in names:
        print(f"\n{collection}, store of {encoder}")
        print("| epsilon | log | all subjects | subject | 10 deep | 100 | 1,000 |")
        print("\n".join(rows(out, collection, encoder, by)))


def main() -> None:
    """Compute what is missing, then print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="*", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--encoders", default=",".join(ENCODERS))
    parser.add_argument("--rerankers", default=",".join(ENCODERS), help="also bm25")
    parser.add_argument("--queries", type=int, default=100, help="at most so many of a collection")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--by", help="the re-ranker to show; else one that is not the store's")
    parser.add_argument("--tables", action="store_true", help="print what is there, and stop")
    options = parser.parse_args()
    if not options.tables:
        options.out.mkdir(parents=True, exist_ok=True)
        log = QueryLog(read_log(options.log))
        seeds = [int(seed) for seed in options.seeds.split(",")]
        for folder in options.collections:
            bench = StoreBench(folder, log, options.vectors, options.queries)
            bench.scored_by(options.rerankers.split(","))
            compute(bench, options.encoders.split(","), seeds, options.out)
    print_tables(options.out, options.by)


if __name__ == "__main__":
    main()
