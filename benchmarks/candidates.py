"""Two candidates for private search by words that were not kept: figures of docs/cover-measured.md.

    python benchmarks/candidates.py FOLDER --log FILE --vectors DIR --seeds 1,2 JOB...

A JOB is a law, ``overlap:learned:4``, or a way to assemble variants, ``draw:documents:7.5``.

Laws draw each word of each variant by P(y | x) ~ q(y) exp(-beta d(x, y)). d is ``embedding``, the
distance of vectors, or ``overlap``, 1 - the cosine of the sets of documents that two words find; q
is ``uniform`` or ``learned``: the output marginal of the rate-distortion optimum for the words that
are asked in the log, by Blahut's and Arimoto's iteration. They are attacked by the likelihood of
all variants, each in an order of its own, of every query of the log: exactly. So is
``santext:published:1.5``, SanText as ``cover.py`` releases it.

Assemblies read all variants off one noisy point z of each word (cmp at some epsilon): ``rank`` as
the release ``once`` does; by the posterior exp(-epsilon |z - y|) times a prior, ``draw`` word by
word, ``likeliest`` the most probable combinations, ``joint`` drawn with a prior of pairs. The prior
is ``documents`` (that of a search) or ``asked``. *point* is what somebody names who sees the
points: no attack on anything read off them names more, but by luck. Other attacks know which words
of the variants belong together; the order of words never shows.

Log, vectors, words and vocabulary as for ``cover.py``: 50 variants, BM25, 100 documents of each.
"""

from __future__ import annotations

import argparse
import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import spaces
from candidate_laws import Distance, DocumentDistance, EmbeddingDistance
from cover import read_sources
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from scipy.stats import entropy

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.evaluation import effectiveness
from sottovoce.privacy.attacks.evidence import unknown_column
from sottovoce.privacy.attacks.exact_laws import ExactLaw
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.queries import AlignedLog, Group, Scored
from sottovoce.privacy.attacks.unordered import UnorderedScorer, permanents
from sottovoce.randomness import Draws
from sottovoce.search import laid_out_for
from sottovoce.spaces.space import OutputVocabulary
from sottovoce.text import TextPipeline, folded_text
from sottovoce.text.words import content_words, stems
from sottovoce.types import Float32Array, Float64Array, IntArray

N, DEPTH = 50, 100
NEAR, SWEEPS = 400, 15
"""Combinations are made of so many words of each place; sweeps of Gibbs sampling."""
COMMON, STEPS = 4000, 50
"""The attack on draws normalizes over so many words, the popular ones and those seen."""


class WordBench:
    """A collection, its queries as words, and the log of those who attack them."""

    def __init__(self, folder: Path, log: Sequence[str], vectors: Path, most: int) -> None:
        self.base = base = spaces.Bench(folder, log, vectors, most)
        self.keys = list(base.collection.queries)
        made, pipeline = spaces.built(base, spaces.SETTINGS["new"], 5.0)
        query_log = base.log("new")
        self.made = replace(made, space=knowing_words(made, pipeline, query_log, base.texts).space)
        self.space, cutter = self.made.space, replace(pipeline, order="kept")
        self.cut = query_log.cut(self.space, cutter).with_texts(base.texts, self.space, cutter)
        self.aligned = AlignedLog.of(self.cut)
        self.targets = [self.cut.numbers[folded_text(text)] for text in base.texts]
        starts, in_log = self.cut.starts, self.cut.words
        spans = [slice(starts[target], starts[target + 1]) for target in self.targets]
        self.words = [in_log[span].astype(np.int64) for span in spans]
        if any((words == self.space.size).any() for words in self.words):
            raise SystemExit("a query has a word without a vector: not provided for here")
        self.output = self.space.output.ids
        self.log_words = np.unique(in_log[in_log < self.space.size]).astype(np.int64)
        # How often words are asked, by others than those who are attacked.
        asked = in_log.copy()
        for span in spans:
            asked[span] = self.space.size
        self.asked = np.bincount(asked, minlength=self.space.size + 1)[:-1]
        self._scores = [base.reranker.all_scores(text) for text in base.texts]
        self._ids = [document.doc_id for document in base.collection.documents]
        self._numbers = {document: number for number, document in enumerate(self._ids)}

    def ndcg(self, variants: Sequence[IntArray]) -> float:
        """nDCG@10 of variants, given as places in the output vocabulary, (variants, words)."""
        run = {}
        for key, scores, places in zip(self.keys, self._scores, variants, strict=True):
            texts = {" ".join(self.space.words(self.output[row])) for row in places}
            answers = self.base.engine.search(sorted(texts), DEPTH)
            documents = {self._numbers[hit.doc_id] for hits in answers for hit in hits}
            best = sorted(documents, key=lambda number: (-scores[number], number))[:10]
            run[key] = [self._ids[number] for number in best]
        judgments = {key: self.base.collection.judgments[key] for key in run}
        return effectiveness(run, judgments, ["nDCG@10"])["nDCG@10"].mean

    def documents_of(self, words: IntArray) -> csr_matrix:
        """Which documents hold each word, by its stem: rows of ones."""
        holders: dict[str, set[int]] = defaultdict(set)
        for number, document in enumerate(self.base.collection.documents):
            for stem in stems(content_words(f"{document.title} {document.text}")):
                holders[stem].add(number)
        found = [
            set().union(*(holders.get(stem, ()) for stem in stems(content_words(word))))
            for word in self.space.words(words)
        ]
        edges = np.cumsum([0, *map(len, found)])
        numbers = np.array([number for row in found for number in sorted(row)], dtype=np.int64)
        ones = np.ones(len(numbers), dtype=np.float32)
        return csr_matrix((ones, numbers, edges), shape=(len(words), len(self._ids)))

    def named(self, scored: Scored, query: int) -> bool:
        """Whether the query is the first of the log."""
        return scored.rank(self.targets[query], len(self.cut))[0] == 1


# The first candidate: laws with a learned output marginal.


def likelihoods(tables: Float64Array, group: Group) -> Scored:
    """Of all variants, each in an order of its own: (variants, places, words of the log + 1)."""
    scores = np.zeros(len(group.queries))
    for table in tables:
        scores += permanents(table - table.max(), group.columns)
    return Scored(group.queries, scores)


def measure_santext(bench: WordBench, epsilon: float, seeds: Sequence[int]) -> None:
    """Print how often SanText's queries are named, released as ``cover.py`` does it."""
    base, space = bench.base, load_space(spaces.SETTINGS["old"].space)
    made = mechanism("santext", space=space, epsilon=epsilon)
    pipeline = laid_out_for(base.engine, TextPipeline(unknown="uniform"), made)
    cutter = replace(pipeline, order="kept")
    cut = base.log("santext").cut(space, cutter).with_texts(base.texts, space, cutter)
    groups, law = AlignedLog.of(cut).groups, ExactLaw(made)
    for seed in seeds:
        obfuscator = Obfuscator(made, n=N, release="independent", pipeline=pipeline, rng=seed)
        named = []
        for text, result in zip(base.texts, obfuscator.obfuscate(base.texts), strict=True):
            variants = np.stack([space.ids(variant.split()) for variant in result.variants])
            seen, at = np.unique(variants, return_inverse=True)
            rows = law.log_likelihood([np.array([word]) for word in seen])
            rows = np.column_stack([rows, unknown_column(rows, space.output.ids)])
            tables = rows.astype(np.float64)[at.reshape(variants.shape)]
            scored = likelihoods(tables, groups[variants.shape[1]])
            named.append(scored.rank(cut.numbers[folded_text(text)], len(cut))[0] == 1)
        print(f"seed {seed}: named {np.mean(named):.3f}")


def measure_law(
    bench: WordBench, distance: Distance, prior: str, beta: float, seeds: Sequence[int]
) -> None:
    """Print nDCG@10 and how often the query is named."""
    asked, size = bench.asked[bench.log_words].astype(np.float64), len(bench.output)
    uniform = prior == "uniform"
    q = np.full(size, 1 / size) if uniform else distance.learned(beta, asked / asked.sum())
    print(f"as many words as {np.exp(entropy(q)):.0f} that are equally likely")
    log_q, log_sums = np.log(np.maximum(q, 1e-300)), np.log(distance.sums(beta, q))
    places = np.full(bench.space.size + 1, len(bench.log_words))
    places[bench.log_words] = np.arange(len(bench.log_words))
    groups = {len(words): bench.aligned.groups[len(words)] for words in bench.words}
    released = np.flatnonzero(np.isin(bench.log_words, bench.output))
    columns = {length: places[group.columns] for length, group in groups.items()}
    for seed in seeds:
        rng, variants, named = np.random.default_rng([seed, 8]), [], []
        for query, words in enumerate(bench.words):
            law = log_q[:, None] - beta * distance.to_words(places[words])
            law = np.exp(law - law.max(axis=0))
            drawn = [rng.choice(size, N, p=chances / chances.sum()) for chances in law.T]
            variants.append(np.stack(drawn, axis=1))
            seen, at = np.unique(variants[-1], return_inverse=True)
            rows = log_q[seen, None] - beta * distance.of_outputs(seen) - log_sums
            rows = np.column_stack([rows, unknown_column(rows, released)])
            group = groups[len(words)]._replace(columns=columns[len(words)])
            named.append(bench.named(likelihoods(rows[at.reshape(N, -1)], group), query))
        print(f"seed {seed}: nDCG@10 {bench.ndcg(variants):.3f}, named {np.mean(named):.3f}")


# The second candidate: variants assembled by the posterior given one noisy point.


class NoisyPoints:
    """One noisy point for each word of each query, and what is read off them."""

    def __init__(self, bench: WordBench, prior: str, epsilon: float, seed: int) -> None:
        self.bench, self.epsilon, self.seed = bench, epsilon, seed
        self.made = replace(bench.made, epsilon=epsilon)
        if prior == "asked":
            asked = OutputVocabulary("asked", bench.output, bench.asked[bench.output] + 0.5)
            self.made = replace(self.made, space=bench.space.with_output(asked), prior=1.0)
        self.points = [
            self.made.perturb(words, Draws([(np.random.default_rng([seed, row]), len(words))]))
            for row, words in enumerate(bench.words)
        ]
        self.log_prior = self.made.prior * self.made.space.output.log_popularity
        self._released = bench.space.vectors[bench.output]

    def posterior(self, query: int) -> Float64Array:
        """Log-probabilities of the words that may be released, (words of the query, output)."""
        rows = self.log_prior - self.epsilon * distances(self.points[query], self._released)
        return np.asarray(rows - logsumexp(rows, axis=1, keepdims=True))

    def rank(self, query: int) -> IntArray:
        """The release ``once``: the words nearest to each point, dealt at random."""
        near = np.searchsorted(self.bench.output, self.made.near(self.points[query], N)[0])
        keys = [[self.seed, query, 77], *([self.seed, query, i] for i in range(1, len(near)))]
        dealt = [
            np.random.default_rng(key).permutation(row) for key, row in zip(keys, near, strict=True)
        ]
        return np.stack(dealt, axis=1)

    def draw(self, query: int) -> IntArray:
        """Draws, word by word."""
        rng, chances = self._rng(query), np.exp(self.posterior(query))
        drawn = [rng.choice(len(row), N, p=row / row.sum()) for row in chances]
        return np.stack(drawn, axis=1)

    def likeliest(self, query: int) -> IntArray:
        """The most probable combinations, best first."""
        words, scores = self._near(query)
        first = (0,) * len(words)
        heap, reached, best = [(-scores[:, 0].sum(), first)], {first}, []
        while len(best) < N:
            cost, ranks = heapq.heappop(heap)
            best.append(ranks)
            for place, rank in enumerate(ranks):
                after = (*ranks[:place], rank + 1, *ranks[place + 1 :])
                if after not in reached and rank + 1 < NEAR:
                    reached.add(after)
                    step = scores[place, rank] - scores[place, rank + 1]
                    heapq.heappush(heap, (cost + step, after))
        return np.take_along_axis(words, np.array(best).T, axis=1).T

    def joint(self, query: int, holds: csr_matrix) -> IntArray:
        """Draws with a prior of pairs: how much oftener documents hold both than by chance."""
        rng, (words, scores) = self._rng(query), self._near(query)
        counts = np.diff(holds.indptr)
        lifts = {}
        for i, of_one in enumerate(words):
            for j, of_other in enumerate(words[:i]):
                expected = np.outer(counts[of_one], counts[of_other]) / holds.shape[1]
                together = (holds[of_one] @ holds[of_other].T).toarray()
                lifts[i, j] = np.log((together + 0.5) / (expected + 0.5))
                lifts[j, i] = lifts[i, j].T
        start = [rng.choice(NEAR, N, p=np.exp(row - logsumexp(row))) for row in scores]
        ranks = np.stack(start, axis=1)
        for _ in range(SWEEPS):
            for i, row in enumerate(scores):
                given = np.tile(row, (N, 1))
                for j in range(len(scores)):
                    if j != i:
                        given += lifts[i, j][:, ranks[:, j]].T
                ranks[:, i] = (given + rng.gumbel(size=given.shape)).argmax(axis=1)
        return np.take_along_axis(words, ranks.T, axis=1).T

    def _rng(self, query: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, query, 77])

    def _near(self, query: int) -> tuple[IntArray, Float64Array]:
        """The likeliest words of each place, and their log-probabilities."""
        rows = self.posterior(query)
        words = np.argsort(-rows, axis=1)[:, :NEAR]
        return words, np.take_along_axis(rows, words, axis=1)

    # Attacks.

    def named_by_points(self) -> float:
        """How often the query is named by who sees the points."""
        rows = distances(np.concatenate(self.points), self.bench.space.vectors)
        return self._named(-self.epsilon * rows)

    def named_by_ranks(self, variants: Sequence[IntArray]) -> float:
        """How often by who takes the words of a place for the nearest ones."""
        seen = [self.bench.output[column] for places in variants for column in places.T]
        evidence = OnePoint.of(self.made, rng=np.random.default_rng(0))
        return self._named(evidence.log_likelihood(seen))

    def named_by_draws(self, variants: Sequence[IntArray]) -> float:
        """How often by who takes them for draws: finds the likeliest point, then who made it."""
        shown = [column for places in variants for column in places.T]
        popular = np.argsort(-self.log_prior)[:COMMON]
        some = np.union1d(popular, np.unique(np.concatenate(shown)))
        words, log_prior = self._released[some], self.log_prior[some]
        counts = np.stack(
            [np.bincount(np.searchsorted(some, places), minlength=len(some)) for places in shown]
        )
        before = OnePoint.of(self.made, rng=np.random.default_rng(0))
        mean, root = before.mean, before.root

        def loss(flat: Float64Array) -> tuple[float, Float64Array]:
            x = flat.reshape(len(shown), -1)
            points = (mean + x @ root.T).astype(np.float32)
            apart = np.maximum(distances(points, words), 1e-3)
            scores = log_prior - self.epsilon * apart
            scores -= logsumexp(scores, axis=1, keepdims=True)
            pulls = self.epsilon * (counts - N * np.exp(scores)) / apart
            gradient = pulls.sum(axis=1, keepdims=True) * points - pulls @ words
            return 0.5 * (x * x).sum() - (counts * scores).sum(), (x + gradient @ root).ravel()

        start = np.zeros(len(shown) * len(mean))
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
        points = (mean + best.reshape(len(shown), -1) @ root.T).astype(np.float32)
        apart = distances(points, self.bench.space.vectors)
        return self._named(-0.5 * apart**2 * before.precision[0, 0])

    def _named(self, rows: Float64Array) -> float:
        bench, start, hits = self.bench, 0, []
        rows = rows.astype(np.float32)
        rows = np.column_stack([rows, unknown_column(rows, bench.output)])
        for query, words in enumerate(bench.words):
            scored = UnorderedScorer(bench.aligned)(rows[start : start + len(words)])
            hits.append(bench.named(scored, query))
            start += len(words)
        return float(np.mean(hits))


def distances(points: Float32Array, vectors: Float32Array) -> Float64Array:
    """(points, vectors)."""
    squares = (points**2).sum(axis=1)[:, None] + (vectors**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares - 2 * (points @ vectors.T), 0)), dtype=np.float64)


def measure_assembly(
    bench: WordBench, how: str, prior: str, epsilon: float, seeds: Sequence[int]
) -> None:
    """Print nDCG@10 and how often the query is named."""
    for seed in seeds:
        noisy, queries = NoisyPoints(bench, prior, epsilon, seed), range(len(bench.words))
        if how == "joint":
            holds = bench.documents_of(bench.output)
            variants = [noisy.joint(query, holds) for query in queries]
        else:
            ways = {"rank": noisy.rank, "draw": noisy.draw, "likeliest": noisy.likeliest}
            variants = [ways[how](query) for query in queries]
        attack = noisy.named_by_ranks if how == "rank" else noisy.named_by_draws
        print(
            f"seed {seed}: nDCG@10 {bench.ndcg(variants):.3f}, named {attack(variants):.3f}, "
            f"point {noisy.named_by_points():.3f}"
        )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collection", type=Path)
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--log", type=Path, required=True, help="gzipped: source, tab, query")
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=100, help="at most so many")
    parser.add_argument("--seeds", default="1")
    options = parser.parse_args()
    log, _ = read_sources(options.log)
    bench = WordBench(options.collection, log, options.vectors, options.queries)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    kinds: dict[str, Callable[[], Distance]] = {
        "embedding": lambda: EmbeddingDistance(bench.space.vectors, bench.output, bench.log_words),
        "overlap": lambda: DocumentDistance(
            *map(bench.documents_of, (bench.output, bench.log_words))
        ),
    }
    made: dict[str, Distance] = {}
    for job in options.jobs:
        print(job, flush=True)
        name, prior, strength = job.split(":")
        if name == "santext":
            measure_santext(bench, float(strength), seeds)
        elif name in kinds:
            if name not in made:
                made[name] = kinds[name]()
            measure_law(bench, made[name], prior, float(strength), seeds)
        else:
            measure_assembly(bench, name, prior, float(strength), seeds)


if __name__ == "__main__":
    main()
