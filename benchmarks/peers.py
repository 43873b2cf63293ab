"""Measures sottovoce beside its peers and beside what the machine could do at best.

    python benchmarks/peers.py                    everything; three quarters of an hour
    python benchmarks/peers.py --quick            all mechanisms beside the bound; five minutes
    python benchmarks/peers.py --quick --compare  the same, next to the stored ratios
    python benchmarks/peers.py --only cmp,pypantera --space glove-840b-34k --threads 1

The peers are installed into environments of their own under the user's cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from contest import Pace, Result, run_heat
from ratios import STORED, Table, compare, table_of
from report import Report, core_rate, markdown, whole_rate
from systems import BASE, BOUND, HERE, OURS, PEERS, NotInstalledError, System
from turns import SAMPLING, WORKLOADS, Task

from sottovoce.paths import cache_folder

SPACES = ("glove-840b-34k", "large")
MECHANISMS = ("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis")
MORE_MECHANISMS = SAMPLING
"""Peers draw from a long text for minutes: these are measured where --only names them."""
EPSILON = 10.0
FULL, QUICK = Pace(seconds=2.0, rounds=5), Pace(seconds=0.3, rounds=3)
QUICK_WORKLOADS = ("batch", "once", "text", "again")
IMPORTS = 7


def say(line: str) -> None:
    """Tell a person how far it is."""
    print(line, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--space", choices=(*SPACES, "both"), default="both")
    parser.add_argument("--threads", type=thread_counts, default=(1, 2), metavar="1,2")
    parser.add_argument(
        "--quick", action="store_true", help="short turns, all mechanisms, no peers: five minutes"
    )
    parser.add_argument("--skip-peers", action="store_true", help="only sottovoce and the bound")
    parser.add_argument(
        "--compare",
        type=stored_table,
        nargs="?",
        const=STORED,
        metavar="FILE",
        help="say which ratios are worse than the stored ones (benchmarks/ratios.json); "
        "exit code 1 if any is",
    )
    parser.add_argument("--store", type=Path, metavar="FILE", help="write the table of ratios")
    parser.add_argument("--only", type=names, default=(), help=f"any of {', '.join(all_names())}")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all raw numbers")
    parser.add_argument("--markdown", type=Path, metavar="OUT", help="write the tables")
    return parser.parse_args(arguments)


def thread_counts(text: str) -> tuple[int, ...]:
    """``1,2`` as numbers."""
    counts = tuple(int(part) for part in text.split(","))
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("a number of threads is at least 1")
    return counts


def stored_table(text: str) -> Path:
    """A file that --store wrote."""
    try:
        Table.read(Path(text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise argparse.ArgumentTypeError(f"'{text}' is no table that --store wrote") from None
    return Path(text)


def names(text: str) -> tuple[str, ...]:
    """The mechanisms and systems asked for."""
    chosen = tuple(part.strip().lower() for part in text.split(","))
    for name in chosen:
        if name not in all_names():
            raise argparse.ArgumentTypeError(f"no '{name}': use any of {', '.join(all_names())}")
    return chosen


def all_names() -> tuple[str, ...]:
    """What --only understands: mechanisms and systems."""
    systems = (OURS.name, *(peer.name.lower() for peer in PEERS))
    return (*MECHANISMS, *MORE_MECHANISMS, *systems)


def choose_systems(options: argparse.Namespace, root: Path) -> tuple[list[System], dict[str, str]]:
    """The systems to compare, the bound among them, and why others are left out."""
    wanted = {name for name in options.only if name not in MECHANISMS + MORE_MECHANISMS}
    systems, skipped = [BOUND], {}
    if not wanted or OURS.name in wanted:
        systems.append(OURS)
        if fast():
            systems.append(BASE)
    for peer in PEERS:
        if options.skip_peers or options.quick or (wanted and peer.name.lower() not in wanted):
            continue
        say(f"{peer.name}: getting its environment ready")
        try:
            systems.append(peer.install(root))
        except NotInstalledError as reason:
            skipped[peer.name] = str(reason)
            say(f"  left out: {reason}")
    return systems, skipped


def fast() -> bool:
    """Whether the extra ``fast`` is installed."""
    return find_spec("numba") is not None


def export(space: str, root: Path, *, texts: bool) -> Path:
    """The folder with what the workers need of a space."""
    command = [sys.executable, str(HERE / "export_space.py"), space, str(root)]
    done = subprocess.run(
        command + ["--texts"] * texts, stdout=subprocess.PIPE, encoding="utf-8", check=False
    )
    if done.returncode:  # It has said why.
        raise SystemExit(1)
    return Path(done.stdout.strip())


def import_times() -> list[float]:
    """Seconds for ``import sottovoce``, each in a fresh process; the first one fills caches."""
    timed = "from time import perf_counter as t; a = t(); import sottovoce; print(t() - a)"
    runs = [
        subprocess.run([sys.executable, "-c", timed], stdout=subprocess.PIPE, check=True)
        for _ in range(IMPORTS + 1)
    ]
    return [float(run.stdout) for run in runs[1:]]


def machine() -> dict[str, str]:
    """What the figures depend on, without anything that identifies the machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        models = [platform.processor()]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "Python": platform.python_version(),
    }


def tell(results: list[Result]) -> None:
    """A line about each system of a heat."""
    for result in results:
        for workload, turns in result.turns.items():
            speed = median(map(whole_rate, turns))
            alone = median(map(core_rate, turns))
            more = f" (sample alone {alone:,.1f})" if result.system == OURS.name else ""
            say(f"  {workload:12} {result.system:12} {speed:10,.1f} words/s{more}")


def note_versions(report: Report, results: list[Result]) -> None:
    """Keep the versions that the workers reported."""
    for result in results:
        for name, version in result.start.get("about", {}).items():
            label = f"numpy of {result.system}" if name == "numpy" else name
            report.machine[label] = version


def write(report: Report, options: argparse.Namespace) -> None:
    """Write the files asked for; after every heat, so that an interrupted run leaves something."""
    if options.json:
        options.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n", "utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(report), "utf-8")
    if options.store:
        table_of(report).write(options.store)


def main(arguments: list[str] | None = None) -> int:
    """Measure and report."""
    options = parse(arguments)
    root = cache_folder() / "benchmarks"
    logs = root / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    mechanisms = [name for name in options.only if name in MECHANISMS + MORE_MECHANISMS]
    systems, skipped = choose_systems(options, root / "peers")
    spaces = SPACES if options.space == "both" else (options.space,)
    folders, facts = {}, dict[str, dict[str, Any]]()
    for space in spaces:
        say(f"space {space}: writing what the systems read")
        folders[space] = export(space, root / "texts", texts=len(systems) > 2)
        facts[space] = json.loads((folders[space] / "facts.json").read_text("utf-8"))
        del facts[space]["words"]
    pace = QUICK if options.quick else FULL
    workloads = QUICK_WORKLOADS if options.quick else WORKLOADS
    settings = {"epsilon": EPSILON, "seconds": pace.seconds, "rounds": pace.rounds, "fast": fast()}
    report = Report(machine(), settings, facts, import_times(), skipped)
    for space in spaces:
        for mechanism, threads in heats(options, mechanisms, space):
            say(f"{space}, {mechanism}, {threads} thread(s)")
            task = Task(space, mechanism, threads, EPSILON, str(folders[space]))
            results = run_heat(systems_for(mechanism, systems), task, pace, logs, say, workloads)
            tell(results)
            note_versions(report, results)
            report.results += results
            write(report, options)
    print(markdown(report))
    if options.compare:
        comparison = compare(Table.read(options.compare), report)
        print(comparison)
        return comparison.exit_code
    return 0


def heats(
    options: argparse.Namespace, mechanisms: list[str], space: str
) -> Iterator[tuple[str, int]]:
    """Mechanisms and numbers of threads to measure in a space."""
    for mechanism in mechanisms or MECHANISMS:
        for threads in options.threads:
            yield mechanism, threads
    if options.quick and not mechanisms and space == SPACES[0]:
        # They draw from tables: a second thread and another space show nothing new.
        yield from ((mechanism, min(options.threads)) for mechanism in MORE_MECHANISMS)


def systems_for(mechanism: str, systems: list[System]) -> list[System]:
    """Those that differ: the extra ``fast`` changes nothing in a draw from a table."""
    return [s for s in systems if s is not BASE or mechanism not in MORE_MECHANISMS]


if __name__ == "__main__":
    sys.exit(main())
