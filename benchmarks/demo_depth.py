"""How many documents to take from each answer on the demo collection: 10, or 100 as elsewhere.

python benchmarks/demo_depth.py prints nDCG@10 over the judged queries and the size of the pools,
for the query itself, for ``cmp`` at its usual epsilon, and for unrelated queries.
"""

from __future__ import annotations

from statistics import mean

import numpy as np

import sottovoce
from sottovoce import defaults
from sottovoce.collections import demo_log, load_collection
from sottovoce.engines import BM25
from sottovoce.evaluation import with_privacy, with_unrelated_queries, without_privacy
from sottovoce.search import load_reranker
from sottovoce.search.reranking import EncoderReranker

SEEDS = range(5)


def main() -> None:
    """Measure all of them."""
    collection = load_collection("demo")
    engine = BM25(collection.documents)
    cmp = sottovoce.mechanism(defaults.MECHANISM)
    print("re-ranker  depth  pool  itself  cmp  unrelated")
    for name in ("light", "strong"):
        reranker = load_reranker(name)
        if isinstance(reranker, EncoderReranker):
            reranker.prepare([engine.text(document.doc_id) for document in collection.documents])
        for depth in (defaults.DEMO_DEPTH, defaults.DEPTH):
            plain = without_privacy(collection, engine, reranker, depth)
            chance = np.random.default_rng(0)
            unrelated = with_unrelated_queries(
                collection, engine, reranker, demo_log(), defaults.VARIANTS, depth, chance
            )
            private = []
            for seed in SEEDS:
                obfuscator = sottovoce.Obfuscator(
                    cmp, n=defaults.VARIANTS, release="once", rng=seed
                )
                search = sottovoce.PrivateSearch(obfuscator, engine, reranker, depth=depth)
                private.append(with_privacy(collection, search))
            print(
                f"{name:9}  {depth:5}  {mean(quality.pool for quality in private):4.0f}  "
                f"{plain.ndcg.mean:6.3f}  {mean(quality.ndcg.mean for quality in private):.3f}  "
                f"{unrelated.ndcg.mean:.3f}"
            )


if __name__ == "__main__":
    main()
