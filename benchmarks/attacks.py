"""What the strongest attacks get, by mechanism, over several seeds: the tables of docs/attacks.md.

    python benchmarks/attacks.py                                       the demo queries and log
    python benchmarks/attacks.py --queries FILE --log FILE --seeds 1,2,3,4,5 --only once

FILE has one query a line (the log: as ``sottovoce attack --log`` reads it). Shares are means over
queries and seeds, in brackets the least and the greatest of the seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.choices import Release
from sottovoce.collections import load_judged_queries
from sottovoce.mechanisms import Mechanism
from sottovoce.pools import load_pool
from sottovoce.privacy import QueryLog, Released, RiskReport, attack, read_log
from sottovoce.text import TextPipeline

ONCE = [f"cmp:epsilon={epsilon}" for epsilon in (5, 10, 12.5, 15)] + ["mahalanobis:epsilon=10"]
NOISE = [f"cmp:epsilon={epsilon}" for epsilon in (5, 7.5, 10)]
NOISE += ["vickrey-cmp:epsilon=10", "mahalanobis:epsilon=10", "vickrey-mahalanobis:epsilon=10"]
LAWS = [f"{name}:epsilon={epsilon}" for name in ("santext", "tem") for epsilon in (1, 1.5, 2)]
LAWS += ["custext:epsilon=1", "wbb:epsilon=1", "wbb:epsilon=10"]
POOLS = [f"comet-cmp:epsilon={epsilon}" for epsilon in (2, 5, 10)] + ["comet-mahalanobis:epsilon=5"]
GROUPS: dict[str, tuple[Release, list[str]]] = {
    "once": ("once", ONCE),
    "noise": ("independent", NOISE),
    "laws": ("independent", LAWS),
    "pools": ("once", POOLS),
}
LAYOUTS = {
    "in order": TextPipeline(),
    "shuffled": TextPipeline().laid_out(shuffle=True),
    "shuffled, padded to 8": TextPipeline().laid_out(shuffle=True, pad_to=8),
}
N = 20


def main() -> None:
    """Print a row for each mechanism."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--log", default="demo")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--only", choices=[*GROUPS, "layouts"])
    parser.add_argument("--pool", default="demo", help="the strings that comet releases")
    parser.add_argument("--json", type=Path, help="write the figures of each seed there, too")
    options = parser.parse_args()
    queries = list(load_judged_queries("demo").values())
    if options.queries is not None:
        queries = options.queries.read_text("utf-8").splitlines()
    log = QueryLog(read_log(options.log))
    seeds = [int(seed) for seed in options.seeds.split(",")]
    figures: dict[str, list[dict[str, float]]] = {}
    for label, made, release, pipeline in settings(options.only, options.pool):
        start, places, by_seed = time.perf_counter(), 0, []
        for seed in seeds:
            releases = released(made, queries, release, pipeline, seed)
            report = attack(
                releases,
                mechanism=made,
                release=release,
                pipeline=pipeline,
                log=log,
                add_originals=True,
                counts=[N],
                rng=seed,
            )
            by_seed.append(shares(report))
            places += sum(len(query.split()) for query in queries)
        figures[label] = by_seed
        milliseconds = 1000 * (time.perf_counter() - start) / places
        print(f"{label:42s} {row(by_seed)}  {milliseconds:5.0f} ms a word", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1))


def settings(
    only: str | None, pool: str
) -> Iterator[tuple[str, Mechanism, Release, TextPipeline | None]]:
    """What is attacked: label, mechanism, release, and how texts are laid out."""
    if only == "layouts":
        made = mechanism("cmp:epsilon=10", space=load_space("glove-840b-34k"))
        for name, pipeline in LAYOUTS.items():
            yield f"{made.spec}, once, {name}", made, "once", pipeline
        return
    for group, (release, specs) in GROUPS.items():
        if only not in (None, group):
            continue
        for spec in specs:
            if group == "pools":
                yield f"{spec}, {release}", mechanism(spec, pool=load_pool(pool)), release, None
            else:
                made = mechanism(spec, space=load_space("glove-840b-34k"))
                yield f"{spec}, {release}", made, release, TextPipeline()


def released(
    made: Mechanism, queries: list[str], release: Release, pipeline: TextPipeline | None, seed: int
) -> list[Released]:
    """Seeded variants of every query."""
    obfuscator = Obfuscator(made, n=N, release=release, pipeline=pipeline, rng=seed)
    return [
        Released(str(number), result.text, result.variants)
        for number, result in enumerate(obfuscator.obfuscate(queries))
    ]


def shares(report: RiskReport) -> dict[str, float]:
    """The shares of one seed, by attack."""
    figures = {}
    for _, inference in report.inferences:
        figures["first"], figures["first ten"] = inference.lazy.value, inference.active.value
    for _, recovery in report.recoveries:
        figures[recovery.attack] = recovery.mean
    if report.recoveries:
        best = max((recovery for _, recovery in report.recoveries), key=lambda made: made.mean)
        figures["content"], figures["function"] = best.content.value or 0, best.function.value or 0
    return figures


def row(by_seed: list[dict[str, float]]) -> str:
    """The means over seeds, and the range of the first guess."""
    cells = []
    for name in by_seed[0]:
        values = [figures[name] for figures in by_seed]
        ends = f" ({min(values):.2f}-{max(values):.2f})" if name == "first" else ""
        cells.append(f"{name} {np.mean(values):.3f}{ends}")
    return ", ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
