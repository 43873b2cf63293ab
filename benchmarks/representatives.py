"""What stands for a query in ``cover``, chosen by meaning alone and by its words as well.

    python benchmarks/representatives.py FOLDER... --log FILE --vectors DIR --out DIR

The law of cover holds for any public rule that chooses a string of the pool, so a better rule
would be free. Tried here: the string with the largest sum of the cosine of vectors (the light
encoder) and of WEIGHT times a measure of common words, either the cosine of tf-idf vectors of stems
or the share of the query's words, by rarity, that the string has. Printed is nDCG@10 of that string
alone and among 49 random strings of the pool (three seeds), by BM25 and dense search at depth 100,
ordered by the vectors of --vectors (see ``spaces.py``; those of the strong encoder).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import spaces
from cover import read_sources
from cover_bench import DEPTHS, CoverBench
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from sottovoce.text import folded_text
from sottovoce.text.words import content_words, stems
from sottovoce.types import Float64Array, IntArray

WEIGHTS = (0.2, 0.5, 1.0)
BESIDE, SEEDS = 49, (1, 2, 3)


def cosines_of_words(queries: csr_matrix, strings: csr_matrix) -> Float64Array:
    """Cosines of tf-idf vectors."""
    return np.asarray((queries @ strings.T).toarray())


def shares_of_words(queries: csr_matrix, strings: csr_matrix) -> Float64Array:
    """How much of a query's words a string has, rare words counting more."""
    common = np.asarray((queries @ (strings > 0).T).toarray())
    return common / np.maximum(np.asarray(queries.sum(axis=1)), 1e-9)


MEASURES: dict[str, Callable[[csr_matrix, csr_matrix], Float64Array]] = {
    "tf-idf": cosines_of_words,
    "share": shares_of_words,
}


def chosen(bench: CoverBench, strings: Sequence[str]) -> Iterator[tuple[str, IntArray]]:
    """The place of what stands for each query, by every rule."""
    texts = [folded_text(text) for text in bench.texts]
    meaning = bench.encoder.encode(texts) @ bench.encoder.encode(strings).T
    yield "meaning alone", meaning.argmax(axis=1)
    by_words = TfidfVectorizer(analyzer=lambda text: stems(content_words(text)))
    of_strings = by_words.fit_transform(strings)
    of_texts = by_words.transform(texts)
    for name, measure in MEASURES.items():
        words = measure(of_texts, of_strings)
        for weight in WEIGHTS:
            yield f"{name}, {weight:g}", (meaning + weight * words).argmax(axis=1)


def found(bench: CoverBench, engine: str, sent: Sequence[IntArray]) -> float:
    """Mean nDCG@10, given the strings that are sent for each query."""
    answers = bench.answers[engine]
    rows = {row: answers.of(places)[:, : DEPTHS[0]] for row, places in enumerate(sent)}
    return float(np.mean(list(bench.ndcg(rows).values())))


def measure(bench: CoverBench) -> Iterator[str]:
    """A row for each rule: alone and among others, engine by engine."""
    strings = bench.sources["own" if "own" in bench.sources else "log"]
    places = np.array([bench.numbers[string] for string in strings])
    for rule, meant in chosen(bench, strings):
        cells = [bench.name, rule]
        for engine in bench.answers:
            alone = [places[[one]] for one in meant]
            among = [
                found(bench, engine, [np.append(own, others) for own, others in pairs])
                for seed in SEEDS
                for rng in [np.random.default_rng(seed)]
                for pairs in [[(own, rng.choice(places, BESIDE, replace=False)) for own in alone]]
            ]
            cells += [f"{found(bench, engine, alone):.3f}", f"{np.mean(among):.3f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table of all collections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--log", type=Path, required=True, help="gzipped: source, tab, query")
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="answers of engines are kept here")
    parser.add_argument("--queries", type=int, default=100, help="at most so many of a collection")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    log, kind = read_sources(options.log)
    of_kind = set(map(folded_text, kind))
    print("| | chosen by | BM25: alone | among 49 | dense: alone | among 49 |")
    print("|---|---|--:|--:|--:|--:|")
    for folder in options.collections:
        base = spaces.Bench(folder, log, options.vectors, options.queries)
        in_log = of_kind.issuperset(map(folded_text, base.texts))
        bench = CoverBench(base, folder, log, kind if in_log else (), options.out, "light")
        for row in measure(bench):
            print(row, flush=True)


if __name__ == "__main__":
    main()
