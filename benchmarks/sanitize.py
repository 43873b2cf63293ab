"""Measures ``sottovoce sanitize`` on a file of tweets beside the float32 matrix product.

    python benchmarks/sanitize.py                        100,000 tweets of 15 words; minutes
    python benchmarks/sanitize.py --tweets 5000          a first look

An exact nearest word by brute force costs 2 V d floating point operations for each word, so the
rate of a large matrix product bounds the words a second. It is taken before and after each run,
with as many threads as the run may use. Memory is that of all its processes together, sampled; what
they share is counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time, sleep

import numpy as np
from threadpoolctl import threadpool_limits

import sottovoce
from sottovoce.threads import available_cores

WORDS, EPSILON = 15, 10
SIDE, BOUND_SECONDS = 3072, 3.0
GOAL_MIB = 1536
SAMPLE_EVERY = 0.1


@dataclass(frozen=True)
class Bound:
    """Words a second, and a CPU second, that matrix products alone would allow."""

    rate: float
    cpu_rate: float


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    workers: int
    seconds: float
    cpu_seconds: float
    peak_mib: float
    words: int
    bounds: tuple[Bound, Bound]


def write_tweets(file: Path, tweets: int, space: sottovoce.WordSpace) -> None:
    """Rows of words drawn from the space alike, as CSV."""
    words = space.words(range(space.size))
    plain = [word for word in words if word.isalpha()]
    draw = random.Random(1)
    with file.open("w", encoding="utf-8") as out:
        out.write("id,text,label\n")
        for number in range(tweets):
            out.write(f"{number},{' '.join(draw.choices(plain, k=WORDS))},{number % 3}\n")


def measure_bound(space: sottovoce.WordSpace) -> Bound:
    """Multiply for a while, on every core."""
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((SIDE, SIDE), dtype=np.float32) for _ in range(2))
    product = np.empty_like(left)
    done = 0
    with threadpool_limits(available_cores(), "blas"):
        np.matmul(left, right, out=product)
        begin, cpu = perf_counter(), process_time()
        while perf_counter() - begin < BOUND_SECONDS:
            np.matmul(left, right, out=product)
            done += 1
        seconds, cpu_seconds = perf_counter() - begin, process_time() - cpu
    words = done * SIDE**3 / (space.size * space.dimension)
    return Bound(words / seconds, words / cpu_seconds)


def run(source: Path, workers: int, space_name: str) -> tuple[float, float, float, int]:
    """Seconds, CPU seconds, peak memory in MiB, and words of one run."""
    out = source.with_name(f"out-{workers}.csv")
    command = [sys.executable, "-m", "sottovoce", "sanitize", str(source), str(out)]
    command += ["--column", "text", "-m", "cmp", "-e", str(EPSILON), "--space", space_name]
    command += ["--workers", str(workers), "--overwrite", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, peak = perf_counter(), 0.0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, start_new_session=True)
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            sleep(SAMPLE_EVERY)
        seconds = perf_counter() - begin
        if process.returncode:
            raise SystemExit(1)
        said.seek(0)
        report = json.load(said)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, peak, report["words"]["all"]


def memory_of(session: int) -> float:
    """MiB of all processes of a session, what they share counted once."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) != session:
                continue
            lines = (entry / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def table(runs: list[Run]) -> str:
    """Markdown."""
    lines = [
        "| workers | words/s | bound | share | words/CPU s | bound | share | peak MiB |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for each in runs:
        rate, cpu_rate = each.words / each.seconds, each.words / each.cpu_seconds
        bound = mean(bound.rate for bound in each.bounds)
        cpu_bound = mean(bound.cpu_rate for bound in each.bounds)
        lines.append(
            f"| {each.workers} | {rate:,.0f} | {bound:,.0f} | {rate / bound:.0%} "
            f"| {cpu_rate:,.0f} | {cpu_bound:,.0f} | {cpu_rate / cpu_bound:.0%} "
            f"| {each.peak_mib:,.0f} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tweets", type=int, default=100_000)
    parser.add_argument("--space", default="default")
    parser.add_argument("--workers", default="1,2", help="numbers of workers, as 1,2")
    options = parser.parse_args()
    space = sottovoce.load_space(options.space)
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "tweets.csv"
        write_tweets(source, options.tweets, space)
        for workers in map(int, options.workers.split(",")):
            first = measure_bound(space)
            seconds, cpu, peak, words = run(source, workers, options.space)
            runs.append(Run(workers, seconds, cpu, peak, words, (first, measure_bound(space))))
            print(f"{workers} worker(s): {seconds:.1f} s", file=sys.stderr, flush=True)
    print(
        f"{options.tweets:,} tweets of {WORDS} words, cmp, epsilon {EPSILON}, space {space.name} "
        f"({space.size:,} x {space.dimension}), {available_cores()} cores; from the start of the "
        "command to its end.\n"
    )
    print(table(runs))
    over = [each.peak_mib for each in runs if each.peak_mib > GOAL_MIB]
    print(f"\nPeak memory {'above' if over else 'below'} the goal of {GOAL_MIB:,} MiB.")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
