"""Runs of ten searches on one subject: how often an attacker who links them names the true ones.

python benchmarks/subjects.py queries.tsv.gz --encoder light

A hundred made-up persons. A run is a string of the pool and the nine nearest to it; or the nine
nearest of its subject; or any ten strings of its subject. The attacker knows the pool and takes, in
each set, the member that is most alike to some member of each other set, compared with how alike
it is to the strings of the pool that are nearest to it in general.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from sottovoce import Obfuscator, mechanism
from sottovoce.mechanisms.cover import Cover
from sottovoce.mechanisms.cover_subjects import CoverSubjects
from sottovoce.pools import Pool, load_pool
from sottovoce.types import Float64Array, IntArray

PERSONS, SEARCHES = 100, 10
SAMPLE, NEAREST = 2000, 20


def usual_nearness(pool: Pool, rng: np.random.Generator) -> Float64Array:
    """How alike each string is to the nearest of a sample of the pool, on average."""
    sample = pool.vectors[rng.choice(len(pool), min(SAMPLE, len(pool)), replace=False)].T
    parts = [
        np.sort(pool.vectors[start : start + 10_000] @ sample, axis=1)[:, -NEAREST:].mean(axis=1)
        for start in range(0, len(pool), 10_000)
    ]
    return np.concatenate(parts).astype(np.float64)


def named(cover: Cover, runs: list[IntArray], usual: Float64Array) -> float:
    """The share of searches whose string the attacker names."""
    vectors, hits = cover.pool.vectors, []
    for number, run in enumerate(runs):
        texts = [cover.pool.strings[place] for place in run]
        released = Obfuscator(cover, memory_key=bytes([number])).obfuscate(texts)
        sets = [np.array([cover.pool.place(v) for v in result.variants]) for result in released]
        for place, members in zip(run, sets, strict=True):
            others = [other for other in sets if other is not members]
            alike = sum((vectors[members] @ vectors[other].T).max(axis=1) for other in others)
            score = alike - len(others) * usual[members]
            hits.append(members[score.argmax()] == place)
    return float(np.mean(hits))


def main() -> None:
    """Print a line for each mechanism and kind of run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool")
    parser.add_argument("--encoder", default="auto")
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--strings", type=int, nargs="*", default=[400, 100, 50, 25])
    options = parser.parse_args()
    pool = load_pool(options.pool, options.encoder)
    rng = np.random.default_rng(5)
    usual = usual_nearness(pool, rng)
    seeds = rng.choice(len(pool), PERSONS, replace=False)
    near = list(pool.best(pool.vectors[seeds], SEARCHES))
    alone = mechanism(f"cover:k={options.k}", pool=pool)
    assert isinstance(alone, Cover)
    print(f"{alone.spec}, epsilon {alone.law.epsilon:.2f}: nearest {named(alone, near, usual):.3f}")
    for strings in options.strings:
        cover = CoverSubjects(pool, k=options.k, subjects=len(pool) // strings)
        within, anywhere = [], []
        for seed in seeds.tolist():
            members = np.flatnonzero(cover.subject_of == cover.subject_of[seed])
            if len(members) >= SEARCHES:
                order = np.argsort(-(pool.vectors[members] @ pool.vectors[seed]), kind="stable")
                within.append(members[order[:SEARCHES]])
                anywhere.append(rng.choice(members, SEARCHES, replace=False))
        crossed = np.mean([len({*cover.subject_of[run].tolist()}) for run in near])
        shares = [named(cover, runs, usual) for runs in (near, within, anywhere)]
        print(
            f"{cover.spec}, epsilon {cover.law.epsilon:.2f}: nearest {shares[0]:.3f} (on "
            f"{crossed:.1f} subjects), nearest of the subject {shares[1]:.3f}, any of it "
            f"{shares[2]:.3f} ({len(within)} runs)"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
