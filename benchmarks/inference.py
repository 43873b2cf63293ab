"""How long a query inference attack takes, and how much memory a large log needs.

    python benchmarks/inference.py LOG FILE ...   # times and risks, by file and encoder
    python benchmarks/inference.py                # memory: a made-up log of 750,000 queries

Memory is measured in a process of its own: what it holds itself (anonymous pages), and the peak
together with the pages of the mapped file that the system happens to keep.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.collections import demo_log
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.encoders.strong import StrongEncoder
from sottovoce.paths import HOME_VARIABLE
from sottovoce.privacy import QueryLog, Released, infer, read_log, read_releases
from sottovoce.types import Float32Array

QUERIES, ATTACKED, VARIANTS, WIDTH = 750_000, 43, 50, 384
INSIDE = "--inside"


class Widened:
    """The light encoder with zeros behind its vectors: as wide as the strong one, and fast."""

    name, dimension = "light, widened", WIDTH

    def __init__(self) -> None:
        self.light: Encoder = load_encoder("light")
        self.fingerprint = f"{self.light.fingerprint} {WIDTH}"

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """The light encoder's rows, widened."""
        return np.pad(self.light.encode(texts), ((0, 0), (0, WIDTH - self.light.dimension)))


class Peak(Thread):
    """Watches the anonymous memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.mib, self.over = 0.0, Event()

    def run(self) -> None:
        """Look every few milliseconds."""
        while not self.over.wait(0.005):
            self.mib = max(self.mib, status("RssAnon"))


def status(name: str) -> float:
    """A figure of /proc/self/status, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def on_files(log_file: str, files: Sequence[str]) -> None:
    """Attack files of releases with every encoder that is installed."""
    log = QueryLog(read_log(log_file))
    print(f"{len(log):,} distinct queries in the log\n")
    print("| encoder | file | seconds | P@1 | R@10 | RR |\n|---|---|---|---|---|---|")
    for name in ["light", "strong"] if StrongEncoder.installed() else ["light"]:
        encoder = load_encoder(name)
        start = time.perf_counter()
        log.vectors(encoder)
        print(f"| {name} | (the log's vectors) | {time.perf_counter() - start:.1f} | | | |")
        for file in files:
            releases = read_releases(file)
            start = time.perf_counter()
            found = infer(releases, log, encoder, add_originals=True)
            cells = [f"{time.perf_counter() - start:.1f}"]
            cells += [
                f"{risk.value:.3f} ({risk.low:.2f} to {risk.high:.2f})"
                for risk in (found.lazy, found.active, found.motivated)
            ]
            print(f"| {name} | {Path(file).name} | {' | '.join(cells)} |", flush=True)


def made_up() -> tuple[QueryLog, list[Released]]:
    """Queries of three to six words of the demo log, some of them released with others' words."""
    rng = Generator(PCG64(0))
    words = sorted({word for query in demo_log() for word in query.split()})
    picked = rng.integers(len(words), size=(QUERIES, 5)).tolist()
    lengths = rng.integers(2, 6, size=QUERIES).tolist()
    queries = [
        " ".join([str(number), *(words[word] for word in row[:length])])
        for number, (row, length) in enumerate(zip(picked, lengths, strict=True))
    ]
    releases = [
        Released(str(at), queries[at], tuple(queries[at : at + VARIANTS]))
        for at in range(0, ATTACKED * VARIANTS, VARIANTS)
    ]
    return QueryLog(queries), releases


def large_log() -> None:
    """One attack on a large log, first with its vectors to compute, then with them on disk."""
    log, releases = made_up()
    encoder = Widened()
    encoder.encode(["warm"])
    print(f"{len(log):,} queries x {WIDTH}; before the attack {status('RssAnon'):,.0f} MiB")
    for turn in ("vectors computed", "vectors on disk"):
        peak = Peak()
        peak.start()
        start = time.perf_counter()
        infer(releases, log, encoder)
        taken = time.perf_counter() - start
        peak.over.set()
        peak.join()
        print(
            f"{turn}: {taken:.1f} s, anonymous memory at most {peak.mib:,.0f} MiB; with mapped "
            f"pages at most {status('VmHWM'):,.0f} MiB so far",
            flush=True,
        )


def main() -> None:
    """Times on files, or memory."""
    if sys.argv[1:] == [INSIDE]:
        large_log()
    elif sys.argv[1:]:
        on_files(sys.argv[1], sys.argv[2:])
    else:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, HOME_VARIABLE: folder}
            subprocess.run([sys.executable, __file__, INSIDE], env=environment, check=True)


if __name__ == "__main__":
    main()
