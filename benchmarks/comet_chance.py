"""What chance finds: queries that know nothing of the true one, searched and re-ranked alike.

    python benchmarks/comet_chance.py DIR --n 50

DIR is the folder that replication/prepare.py made. Variants are random queries of the public pool,
or as many random words as the query has. Where a mechanism scores no more than this, its variants
are noise, and its place among the others says nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce import load_space
from sottovoce.collections import Collection, load_collection
from sottovoce.encoders import load_encoder
from sottovoce.engines.dense import Dense
from sottovoce.evaluation.search_quality import effectiveness, judged
from sottovoce.search.pooling import pool
from sottovoce.search.reranking import EncoderReranker, rerank

COLLECTIONS = ("ir/msmarco-dl19-pool", "made/nfcorpus-50")
MEASURES = ["nDCG@10", "P@10"]
DEPTH = 100


class Protocol:
    """The light encoder searches, the strong one orders the pool by the true query."""

    def __init__(self, collection: Collection) -> None:
        self.engine = Dense(collection.documents, "light")
        self.reranker = EncoderReranker(load_encoder("strong"))
        self.reranker.prepare([self.engine.text(each.doc_id) for each in collection.documents])
        self.judgments = collection.judgments

    def measure(self, variants: dict[str, list[str]], queries: dict[str, str]) -> list[float]:
        """The mean of each measure."""
        run = {}
        for query, sent in variants.items():
            pooled = pool(self.engine.search(sent, DEPTH), "union")
            texts = [self.engine.text(hit.doc_id) for hit in pooled]
            ranked = rerank(queries[query], pooled, self.reranker, texts)
            run[query] = {hit.doc_id: hit.score for hit in ranked[:DEPTH]}
        judgments = {query: self.judgments[query] for query in run}
        measured = effectiveness(run, judgments, MEASURES)
        return [float(np.mean(list(measured[name].values.values()))) for name in MEASURES]


def main() -> None:
    """Print a line for each collection, kind of variants and seed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    public = (options.data / "made" / "msmarco-queries.txt").read_text().splitlines()
    space = load_space("glove-840b-34k")
    for name in COLLECTIONS:
        collection = load_collection(options.data / name)
        protocol, queries = Protocol(collection), judged(collection)
        for seed in range(options.seeds):
            rng = Generator(PCG64(seed))
            strings = {query: rng.choice(public, options.n).tolist() for query in queries}
            words = {
                query: [
                    " ".join(space.words(rng.integers(space.size, size=len(text.split()))))
                    for _ in range(options.n)
                ]
                for query, text in queries.items()
            }
            for kind, variants in (("public queries", strings), ("words", words)):
                values = protocol.measure(variants, queries)
                figures = ", ".join(
                    f"{measure} {value:.3f}"
                    for measure, value in zip(MEASURES, values, strict=True)
                )
                print(f"{collection.name}, random {kind}, seed {seed}: {figures}", flush=True)


if __name__ == "__main__":
    main()
