"""PyTerrier: the demo's queries, sent as they are and privately, in one table with the risk."""

from __future__ import annotations

import sottovoce
from sottovoce.collections import demo_log, load_collection
from sottovoce.engines import BM25
from sottovoce.integrations.pyterrier import (
    Obfuscate,
    PoolVariants,
    Rerank,
    Retrieve,
    private_experiment,
    qrels,
    topics,
)
from sottovoce.search import load_reranker

QUERIES, SPACE = 6, "default"


def main() -> None:
    """Compare two pipelines on a few queries."""
    collection = load_collection("demo")
    retrieve = Retrieve(BM25(collection.documents), depth=10)
    rerank = Rerank(load_reranker("light"))

    cmp = sottovoce.mechanism("cmp", space=sottovoce.load_space(SPACE), epsilon=7.5)
    obfuscate = Obfuscate(sottovoce.Obfuscator(cmp, n=10, release="once"))
    private = obfuscate >> retrieve >> PoolVariants(obfuscate) >> rerank
    print(private.search("treatment for skin cancer")[["docno", "score", "title"]].head(3))

    table = private_experiment(
        {"the query itself": retrieve >> rerank, "cmp, epsilon 7.5": private},
        topics(collection).head(QUERIES),
        qrels(collection),
        ["ndcg_cut_10"],
        log=demo_log(),
    )
    print(table.drop(columns="attacker_knows").round(2).to_string())
    for name, knows in zip(table["name"], table["attacker_knows"], strict=True):
        print(f"{name}: the attacker knows {knows}")


if __name__ == "__main__":
    main()
