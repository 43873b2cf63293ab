"""Processor seconds of the measures of noise mechanisms: deniability, calibrate and audit.

    python benchmarks/measures.py                  each command once, as in docs/benchmarks.md
    python benchmarks/measures.py --times 4        the least of four runs
    python benchmarks/measures.py --only audit     those that hold the word

Whole commands on the default space, user and system time, with one thread of BLAS: what else runs
on the machine changes them least.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator

NOT_PASSED_ON = ("PYTHONDONTWRITEBYTECODE",)
"""Compiling all packages again is no part of a measure."""
NOISE = ("cmp", "vickrey-cmp", "mahalanobis", "vickrey-mahalanobis")


def commands() -> Iterator[str]:
    """What is measured, as it is typed."""
    for mechanism in NOISE:
        yield f"deniability {mechanism}:epsilon=10 --words 32 --draws 1000 --seed 1"
    for mechanism in NOISE[:3]:
        yield f"calibrate {mechanism} --max-unchanged 0.1 --words 16 --draws 150 --seed 1"
    for mechanism in NOISE:
        yield f"audit {mechanism} --seed 1"


def processor_seconds(command: str) -> float:
    """User and system time of the command in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    child = subprocess.Popen(
        [sys.executable, "-m", "sottovoce", *command.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**environment, "OPENBLAS_NUM_THREADS": "1"},
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"sottovoce {command} failed")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a row for each command as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1, help="runs of each, of which the least")
    parser.add_argument("--only", default="", metavar="WORD", help="commands that hold this word")
    options = parser.parse_args()
    print("| command | processor seconds |\n|---|--:|")
    for command in commands():
        if options.only in command:
            least = min(processor_seconds(command) for _ in range(max(1, options.times)))
            print(f"| `sottovoce {command}` | {least:.1f} |", flush=True)


if __name__ == "__main__":
    main()
