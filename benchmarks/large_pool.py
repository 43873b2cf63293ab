"""What a large pool costs: making it, opening it, the first query and the next, its subjects.

    python benchmarks/large_pool.py queries.tsv.gz --strings 1000000

The strings are made up: the first half of one query of the log and the second half of another.
Everything happens in a folder that is removed afterwards, each step in a process of its own. Memory
is the process's own, without pages of mapped files. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import read_strings
from sottovoce.mechanisms import usual_decoys
from sottovoce.paths import HOME_VARIABLE
from sottovoce.pool_making import make_pool
from sottovoce.pools import load_pool

NAME = "large"
QUERIES = ("how to get rid of a cough at night", "debt advice for students")
"""The pool lacks them, so that the nearest string has to be looked for."""
BETWEEN_LOOKS = 0.05
"""Seconds."""


def main() -> None:
    """Make the strings, then print what each step took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--strings", type=int, default=1_000_000)
    parser.add_argument("--encoder", default="light")
    parser.add_argument("--subjects", type=int, default=5000, help="0: the pool is not cut")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        print(json.dumps(STEPS[options.step](options)))
        return
    with tempfile.TemporaryDirectory() as home:
        made_up = Path(home) / "made-up.txt"
        strings = of_halves(list(read_strings(options.log)), options.strings)
        made_up.write_text("\n".join(strings), encoding="utf-8")
        for step in STEPS:
            if step == "subjects" and not options.subjects:
                continue
            typed = ["--encoder", options.encoder, "--subjects", str(options.subjects)]
            watched([sys.executable, __file__, str(made_up), "--step", step, *typed], home)
        pool_files = (Path(home) / "pools").rglob("*")
        print("on disk", sum(file.stat().st_size for file in pool_files) >> 20, "MiB")


def watched(command: Sequence[str], home: str) -> None:
    """Run a step, and print what it says and the most memory it had of its own."""
    most = 0
    with subprocess.Popen(
        command, env={**os.environ, HOME_VARIABLE: home}, stdout=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            most = max(most, own_memory(process.pid))
            time.sleep(BETWEEN_LOOKS)
        if process.returncode or process.stdout is None:
            sys.exit(f"a step failed ({process.returncode})")
        print(process.stdout.read().strip(), f"{most} MiB at most", flush=True)


def of_halves(queries: Sequence[str], count: int) -> list[str]:
    """So many different strings: the first half of one query, the second half of another."""
    words = [query.split() for query in queries]
    firsts = sorted({" ".join(row[: (len(row) + 1) // 2]) for row in words if len(row) > 1})
    seconds = sorted({" ".join(row[(len(row) + 1) // 2 :]) for row in words if len(row) > 1})
    if len(firsts) * len(seconds) < 2 * count:
        sys.exit(f"this log is too short for {count:,} strings")
    rng, strings = np.random.default_rng(0), dict[str, None]()
    while len(strings) < count:
        pairs = rng.integers((len(firsts), len(seconds)), size=(count, 2)).tolist()
        strings.update(dict.fromkeys(f"{firsts[one]} {seconds[two]}" for one, two in pairs))
    return list(strings)[:count]


def making(options: argparse.Namespace) -> dict[str, float]:
    """Read, clean, embed, write."""
    start = time.perf_counter()
    facts = make_pool(NAME, [options.log], options.encoder)
    return {"made, strings": facts.strings, "seconds": seconds_since(start)}


def searching(_: argparse.Namespace) -> dict[str, float]:
    """Open it, find what stands for a query, find it for another one, draw a set."""
    start = time.perf_counter()
    pool = load_pool(NAME)
    cover = mechanism("cover:k=20", pool=pool)
    opened = seconds_since(start)
    times = []
    for query in QUERIES:
        start = time.perf_counter()
        cover.representatives([query])
        times.append(seconds_since(start))
    memory = own_memory()
    start = time.perf_counter()
    usual = mechanism("cover:k=20", pool=pool, decoys=usual_decoys(pool))
    list(Obfuscator(usual).obfuscate(QUERIES[:1]))
    return {
        "opened": opened,
        "first query": times[0],
        "next query": times[1],
        "own MiB until then": memory,
        f"first set, decoys {usual_decoys(pool)}": seconds_since(start),
    }


def cutting(options: argparse.Namespace) -> dict[str, float]:
    """Cut it into subjects."""
    pool = load_pool(NAME)
    start = time.perf_counter()
    pool.subjects(options.subjects)
    return {"subjects": options.subjects, "seconds": seconds_since(start)}


STEPS: dict[str, Callable[[argparse.Namespace], dict[str, float]]] = {
    "make": making,
    "search": searching,
    "subjects": cutting,
}


def seconds_since(start: float) -> float:
    """Rounded, for people."""
    return round(time.perf_counter() - start, 2)


def own_memory(process: int | str = "self") -> int:
    """Mebibytes of a process's own, now; none of one that has ended."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("RssAnon", "0").split()[0]) >> 10


if __name__ == "__main__":
    main()
