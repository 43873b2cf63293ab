"""What a private search finds, and what it gives away, on a collection with judgments.

    python benchmarks/private_search.py FOLDER               the table of docs/search.md
    python benchmarks/private_search.py demo --rerank light  a first look, in half a minute

Each line is one setting: quality of the answers (nDCG@10, relevant documents found) beside the
share of a query's words that simple attacks recover. At each place, "mode" takes the word that
occurs most often among the variants, "centroid" the word nearest to the mean of their vectors.
"aloud" is the share of words that occur at all.
"""

from __future__ import annotations

import argparse
import operator
import sys
from collections import Counter
from statistics import mean

import numpy as np

from sottovoce import Obfuscator, PrivateSearch, SearchResult, WordSpace, load_space, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import choose_engine
from sottovoce.evaluation import Quality, with_more_depth, with_privacy, without_privacy
from sottovoce.search.reranking import load_reranker

EPSILONS = (5, 10, 12.5, 15, 20)
SETTINGS = [
    (name, release, epsilon)
    for name in ("cmp", "vickrey-cmp")
    for release in ("independent", "once")
    for epsilon in EPSILONS
]


class Attacker:
    """Reads what was sent and guesses the words of the queries."""

    def __init__(self, space: WordSpace) -> None:
        self.space = space
        self.mode: list[float] = []
        self.centroid: list[float] = []
        self.aloud: list[float] = []
        self.pools: list[int] = []

    def __call__(self, result: SearchResult) -> None:
        """Look at one search."""
        truth = result.query.lower().split()
        rows = [query.split() for query in result.sent]
        rows = [row for row in rows if len(row) == len(truth)]
        if rows:
            columns = list(zip(*rows, strict=True))
            modes = [Counter(column).most_common(1)[0][0] for column in columns]
            self.mode.append(mean(map(operator.eq, modes, truth)))
            self.centroid.append(mean(map(operator.eq, self.centres(columns), truth)))
        self.aloud.append(result.said_aloud / max(1, result.words))
        self.pools.append(result.pool)

    def centres(self, columns: list[tuple[str, ...]]) -> list[str]:
        """The word nearest to the mean vector of the words at each place."""
        ids = np.array([self.space.ids(column) for column in columns])
        points = self.space.vectors[ids].mean(axis=1) * (ids >= 0).all(axis=1)[:, None]
        return self.space.words(self.space.nearest_output.top(points)[0][:, 0])


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collection", help="demo, or a folder")
    parser.add_argument("--engine", default="bm25")
    parser.add_argument("--rerank", default="strong")
    parser.add_argument("--variants", type=int, default=20)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--draws", type=int, default=3, help="seeds to average over")
    options = parser.parse_args(arguments)
    collection = load_collection(options.collection)
    engine = choose_engine(options.engine, collection.documents)
    reranker = load_reranker(options.rerank)
    if hasattr(reranker, "prepare"):
        reranker.prepare([engine.text(document.doc_id) for document in collection.documents])
    print(
        "| what is sent | nDCG@10 | 95 %, first draw | P@10 | relevant found | pool | mode "
        "| centroid | aloud |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    plain = without_privacy(collection, engine, reranker, options.depth)
    row("the query itself", [plain], None)
    space = load_space("glove-840b-34k")
    for name, release, epsilon in SETTINGS:
        attacker = Attacker(space)
        found = []
        for seed in range(options.draws):
            chosen = mechanism(name, space=space, epsilon=epsilon)
            obfuscator = Obfuscator(chosen, n=options.variants, release=release, rng=seed)
            search = PrivateSearch(obfuscator, engine, reranker, depth=options.depth)
            found.append(with_privacy(collection, search, attacker))
        row(f"{name}, {release}, epsilon {epsilon:g}", found, attacker)
        if (name, release, epsilon) == ("cmp", "independent", 15):
            depth = round(mean(attacker.pools))
            depths = dict.fromkeys(collection.judgments, depth)
            deep = with_more_depth(collection, engine, reranker, depths)
    row(f"the query itself, {depth} deep", [deep], None)
    return 0


def row(label: str, found: list[Quality], attacker: Attacker | None) -> None:
    """One line of the table; means over the draws, the interval that of the first."""
    low, high = found[0].ndcg.interval(samples=2000)
    cells = [
        label,
        f"{mean(each.ndcg.mean for each in found):.3f}",
        f"{low:.2f}–{high:.2f}",
        f"{mean(each.precision.mean for each in found):.3f}",
        f"{mean(each.recall.mean for each in found):.0%}",
        f"{mean(each.pool for each in found):,.0f}",
        f"{mean(attacker.mode):.0%}" if attacker else "100%",
        f"{mean(attacker.centroid):.0%}" if attacker else "100%",
        f"{mean(attacker.aloud):.0%}" if attacker else "100%",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
