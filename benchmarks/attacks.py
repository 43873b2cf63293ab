"""What attackers get who know the mechanism: one table, a line for each mechanism and release.

    python benchmarks/attacks.py                      the demo queries and log, three seeds
    python benchmarks/attacks.py --only cmp           the lines of one mechanism
    python benchmarks/attacks.py --queries FILE --log FILE --seeds 1,2,3,4,5

Named first, first ten: how often the query is the likeliest of the log that holds it, or among the
ten likeliest. Words: the share recovered without the query in a list, with all words alike
beforehand, as frequent as in the log, or in texts like those of the log (the attacked queries taken
out of it); content words by the last of these. Intervals are of 95 %, over queries. The
time is that of all these attacks together, with all preparation, for each place of a text.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.choices import Release
from sottovoce.collections import DEMO, load_collection
from sottovoce.privacy import QueryLog, Released, RiskReport, attack, read_log
from sottovoce.privacy.attacks.words import Share
from sottovoce.spaces.space import WordSpace

NOISE = ("cmp", "mahalanobis", "vickrey-cmp")
SETTINGS: list[tuple[str, Release]] = [
    *((f"{name}:epsilon={e}", "once") for name in NOISE for e in (5, 10, 12.5, 15)),
    *((f"cmp:epsilon={e}", "independent") for e in (5, 10, 12.5, 15)),
    *((f"{name}:epsilon={e}", "independent") for name in ("santext", "tem") for e in (1, 1.5, 2)),
    *((f"custext:epsilon={e}", "independent") for e in (1, 3)),
    *((f"wbb:epsilon={e}", "independent") for e in (1, 10)),
]
ATTACKER_SEED = 0
"""For laws that are learned from draws; what is drawn to be attacked has the seeds asked for."""
HEADINGS = (
    *("mechanism", "release", "named first", "first ten"),
    *("words, uniform", "words, prior", "words, context", "content words", "ms a place"),
)


@dataclass
class Line:
    """What came of one mechanism and release: right guesses and all, by column and query."""

    counts: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, column: str, query: str, right: int, total: int) -> None:
        """Add what came of one query with one seed."""
        by_query = self.counts.setdefault(column, {})
        right_before, total_before = by_query.get(query, (0, 0))
        by_query[query] = (right_before + right, total_before + total)

    def add(self, report: RiskReport) -> None:
        """Add what came of one seed."""
        for _, recovery in report.recoveries:
            for text in recovery.by_text:
                self.count(f"words, {recovery.attack}", text.id, text.right, text.words)
                if recovery.attack == "context":
                    self.count("content words", text.id, text.content_right, text.content)
        for _, inference in report.inferences:
            for query in inference.queries:
                self.count("named first", query.id, int(query.rank <= 1), 1)
                self.count("first ten", query.id, int(query.rank <= inference.depth), 1)

    @property
    def places(self) -> int:
        """All words that were attacked."""
        return sum(total for _, total in self.counts["words, uniform"].values())

    def shown(self, column: str) -> str:
        """The share over all seeds; for its interval, queries are drawn with all their seeds."""
        right, total = zip(*self.counts[column].values(), strict=True)
        share = Share.by_text(right, total)
        return f"{share.value:.2f} ({share.low:.2f}–{share.high:.2f})"


def measure(
    space: WordSpace,
    spec: str,
    release: Release,
    queries: Sequence[str],
    log: QueryLog,
    *,
    n: int,
    seeds: Sequence[int],
) -> Line:
    """Release all queries once with each seed, and attack what was released."""
    line, mech = Line(), mechanism(spec, space=space)
    for seed in seeds:
        obfuscator = Obfuscator(mech, n=n, release=release, rng=seed)
        releases = [
            Released(str(number), result.text, result.variants)
            for number, result in enumerate(obfuscator.obfuscate(queries))
        ]
        begun = time.perf_counter()
        report = attack(
            releases,
            mechanism=mech,
            release=release,
            pipeline=obfuscator.pipeline,
            log=log,
            add_originals=True,
            counts=[n],
            attacks=["uniform", "prior", "context", "aligned"],
            rng=ATTACKER_SEED,
        )
        line.seconds += time.perf_counter() - begun
        line.add(report)
    return line


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = list(dict.fromkeys(spec.partition(":")[0] for spec, _ in SETTINGS))
    parser.add_argument("--queries", help="what is attacked, one a line; the demo's without")
    parser.add_argument("--log", default=DEMO, help="the attacker's query log; the demo's without")
    parser.add_argument("--seeds", default="1,2,3", help="one release of all queries for each")
    parser.add_argument("--only", choices=names, help="the lines of one mechanism")
    parser.add_argument("--n", type=int, default=20, help="variants of each query")
    parser.add_argument("--limit", type=int, help="the first so many queries alone")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    if options.queries is None:
        queries = list(load_collection(DEMO).queries.values())
    else:
        queries = list(dict.fromkeys(read_log(options.queries)))
    queries, log = queries[: options.limit], QueryLog(read_log(options.log))
    space = load_space("default")
    print(
        f"{len(queries)} queries, a log of {len(log):,} (attacked queries that it lacks are added "
        f"to what is searched), {options.n} variants, {len(seeds)} seeds.\n"
    )
    print(f"| {' | '.join(HEADINGS)} |")
    print(f"|{'---|' * len(HEADINGS)}", flush=True)
    for spec, release in SETTINGS:
        if options.only not in (None, spec.partition(":")[0]):
            continue
        line = measure(space, spec, release, queries, log, n=options.n, seeds=seeds)
        cells = [line.shown(column) for column in HEADINGS[2:-1]]
        pace = f"{1000 * line.seconds / line.places:.0f}"
        print(f"| {' | '.join([spec, release, *cells, pace])} |", flush=True)
        print(f"  {line.seconds:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
