"""Show that two checkouts give the same outputs, byte by byte.

    python tools/compare_outputs.py record before --checkout ../before
    python tools/compare_outputs.py record after
    python tools/compare_outputs.py compare before after

``record`` runs the jobs of ``recorded/jobs.py`` with the package of a checkout and writes what each
gives into a folder of its own: command, exit code, stdout and stderr of each call (``01.txt``,
``02.txt``, ...), the files written (``files``) and the names of those in the home folder
(``home.txt``). ``--only`` takes a job, as ``search/engines``, or a group, as ``help``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import platformdirs
import pyarrow.parquet as pq
from recorded.inputs import write_inputs
from recorded.jobs import JOBS, Call, Job
from recorded.runner import TIMED_OUT, Runner

TOOLS = Path(__file__).resolve().parent
SECONDS_FOR_A_CALL = 400
LATE = "did not end in time"
LINES_SHOWN = 4
WIDTH = 100


class Mask(NamedTuple):
    """Something that may differ between two runs of the same code, and what is written instead."""

    name: str
    why: str
    pattern: str
    instead: str


KINDS_OF_WORK = "draw|baseline|search|leak|deny|neighbours|learn"
MASKS = (
    Mask(
        "time",
        "when it was: of ledger records, searches, experiments",
        r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?(\+00:00|Z)?)?",
        "<time>",
    ),
    Mask(
        "duration",
        "how long it took: of experiments and imports",
        r"(?<=seconds\": )[\d.]+|(?<=cells; )[\d,]+(?= s\b)|(?<=before; )[\d,]+(?= s\b)"
        r"|(?<=imported in )[\d.]+",
        "<seconds>",
    ),
    Mask(
        "duration of a kind of work",
        "the same for each kind of work of an experiment",
        rf"(\"(?:{KINDS_OF_WORK})\": )\d+\.\d+",
        r"\1<seconds>",
    ),
    Mask(
        "duration in a table",
        "the same in the tables of a report: CSV, LaTeX, HTML",
        rf"(?m)^((?:(?:<tbody>)?<tr><th scope=\"row\">)?(?:seconds|wall seconds|{KINDS_OF_WORK})"
        r"(?:,| & |</th><td[^>]*>))[\d.]+(?=$| |<|\r)",
        r"\1<seconds>",
    ),
    Mask(
        "keyed hash",
        "the ledger's hashes are keyed by random bytes of its own",
        r"(\"(?:text|link)\": )\"[0-9a-f]{32,}\"",
        r'\1"<keyed hash>"',
    ),
    Mask(
        "port",
        "servers take any free port of this machine",
        r"(?<=127\.0\.0\.1:)\d{4,5}",
        "<port>",
    ),
    Mask(
        "preview",
        "the service names a preview by random characters",
        r"(\"preview\": )\"[\w-]{16,}\"",
        r'\1"<preview>"',
    ),
)
"""All that is masked, besides the paths of the folders that a recording works in."""


@dataclass(frozen=True)
class Stage:
    """Where jobs run: the checkout, a temporary folder, and the user's installed resources."""

    checkout: Path
    root: Path
    cache: Path

    def environment(self, home: Path) -> dict[str, str]:
        """What every call sees: this package, a home of its own, one thread, a fixed width."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SOTTOVOCE_", "PYTHON", "COLUMNS", "LINES", "FORCE_COLOR"))
        }
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        return {
            **inherited,
            **threads,
            "PYTHONPATH": os.pathsep.join((str(self.checkout), str(TOOLS))),
            "PYTHONSAFEPATH": "1",  # No package of the folder that a call happens to run in.
            "PYTHONPYCACHEPREFIX": str(self.root / "bytecode"),
            "SOTTOVOCE_HOME": str(home),
            "COLUMNS": str(WIDTH),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }

    def prepare(self) -> None:
        """Write the inputs, and import the small space with the package itself."""
        write_inputs(self.root / "inputs")
        small = ["spaces", "import", str(self.root / "inputs" / "small.txt"), "--name", "small"]
        done = subprocess.run(
            [sys.executable, "-m", "sottovoce", *small],
            env=self.environment(self.root / "prepared"),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"the small word space cannot be imported: {done.stderr}")
        for name in ("spaces/glove-840b-34k", "strong", "wordnet"):
            if not (self.cache / name).exists():
                _say(f"{name} is not installed: jobs that need it record an error")

    def start_runner(self) -> Runner:
        """A runner of the checkout's own package, and of no other."""
        runner = Runner(self.environment(self.root / "prepared"))
        if not runner.package.is_relative_to(self.checkout):
            runner.close()
            raise SystemExit(f"this is not the checkout's package: {runner.package}")
        return runner

    def open_folder(self, job: Job) -> tuple[Path, Path]:
        """The working folder of a job and its home, new."""
        folder = self.root / "jobs" / job.name
        work, home = folder / "work", folder / "home"
        work.mkdir(parents=True)
        shutil.copytree(self.root / "inputs", work / "inputs")
        (work / "checkout").symlink_to(self.checkout)
        shutil.copytree(self.root / "prepared" / "spaces", home / "spaces")
        for space in (self.cache / "spaces").iterdir():
            (home / "spaces" / space.name).symlink_to(space)
        for name in ("strong", "wordnet"):
            if (self.cache / name).exists():
                (home / name).symlink_to(self.cache / name)
        return work, home

    def masked(self, text: str) -> str:
        """The text without what may differ; paths first, as they may hold what looks like more."""
        for path, name in ((self.root, "work"), (self.checkout, "checkout"), (self.cache, "cache")):
            text = text.replace(str(path), f"<{name}>")
        for mask in MASKS:
            text = re.sub(mask.pattern, mask.instead, text)
        return text


def record(folder: Path, checkout: Path, only: Sequence[str], workers: int) -> None:
    """Run the jobs, some at a time, and write what they give."""
    cache = os.environ.get("SOTTOVOCE_HOME") or platformdirs.user_cache_path("sottovoce")
    jobs = [job for job in JOBS if _selected(job.name, only)]
    if not jobs:
        raise SystemExit("there is no such job: see recorded/jobs.py")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="outputs-") as root:
        stage = Stage(checkout.resolve(), Path(root).resolve(), Path(cache).resolve())
        stage.prepare()
        runners: SimpleQueue[Runner] = SimpleQueue()
        for _ in range(workers):
            runners.put(stage.start_runner())
        with ThreadPoolExecutor(workers) as pool:
            running = [pool.submit(_record_job, job, stage, runners, folder) for job in jobs]
            for number, done in enumerate(as_completed(running), start=1):
                _say(f"[{number}/{len(jobs)}] {done.result()}")
        for _ in range(workers):
            runners.get().close()
    _say(f"{len(jobs)} jobs recorded in {folder}, {time.monotonic() - started:.0f} s")


def _record_job(job: Job, stage: Stage, runners: SimpleQueue[Runner], into: Path) -> str:
    """Run the calls of a job and write what they give; a line about it."""
    started, folder, runner = time.monotonic(), into / job.name, runners.get()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    work, home = stage.open_folder(job)
    for number, call in enumerate(job.calls, start=1):
        shown = _run(call, work, stage.environment(home), runner)
        if LATE in shown:
            _say(f"{job.name}, call {number}: {LATE}")
        (folder / f"{number:02}.txt").write_text(
            stage.masked(shown), encoding="utf-8", errors="surrogateescape", newline=""
        )
    runners.put(runner)
    for file in _files(work):
        if file.relative_to(work).parts[0] != "inputs":
            _copy(file, folder / "files" / file.relative_to(work), stage)
    names = sorted(str(file.relative_to(home)) for file in _files(home))
    (folder / "home.txt").write_text(stage.masked("".join(f"{name}\n" for name in names)))
    shutil.rmtree(work.parent)
    return f"{job.name}, {len(job.calls)} calls, {time.monotonic() - started:.0f} s"


def _run(call: Call, work: Path, environment: dict[str, str], runner: Runner) -> str:
    """Command, exit code and outputs of a call, as one text."""
    environment = {**environment, **call.environment}
    streams = {name: work.parent / name for name in ("stdin", "stdout", "stderr")}
    streams["stdin"].write_bytes(call.stdin)
    if call.is_module:
        with streams["stdout"].open("wb") as stdout, streams["stderr"].open("wb") as stderr:
            command = [sys.executable, "-m", *call.arguments]
            code = subprocess.call(command, cwd=work, env=environment, stdout=stdout, stderr=stderr)
    else:
        names = {name: str(path) for name, path in streams.items()}
        where = {"folder": str(work), "environment": environment, **names}
        code = runner.run(call.arguments, SECONDS_FOR_A_CALL, **where)
    if call.save is not None:
        shutil.copy(streams["stdout"], work / call.save)
    ended = LATE if code == TIMED_OUT else f"exit code {code}"
    shown = f"$ {call.command}\n{ended}\n"
    for name in ("stdout", "stderr"):
        output = streams[name].read_bytes().decode("utf-8", "surrogateescape")
        shown += f"----- {name}\n{output}"
    return shown


def _files(folder: Path) -> Iterator[Path]:
    """All plain files below a folder; links are not followed."""
    for place, _, names in os.walk(folder):
        yield from (
            Path(place, name) for name in sorted(names) if not Path(place, name).is_symlink()
        )


def _copy(file: Path, target: Path, stage: Stage) -> None:
    """Copy a file: text masked, Parquet as text (its metadata hold durations), others as is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    content = file.read_bytes()
    if content.startswith(b"PAR1"):
        content, target = _parquet_text(file).encode(), target.with_name(f"{target.name}.txt")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        target.write_bytes(content)
    else:
        target.write_text(stage.masked(text), encoding="utf-8", newline="")


def _parquet_text(file: Path) -> str:
    """Schema, metadata, codec and rows of a Parquet file."""
    stored, table = pq.read_metadata(file), pq.read_table(file)
    columns = stored.num_columns if stored.num_row_groups else 0
    codecs = {stored.row_group(0).column(number).compression for number in range(columns)}
    named = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    fields = table.schema.to_string(show_schema_metadata=False)
    lines = [fields, *(f"{key}: {value}" for key, value in sorted(named.items()))]
    lines += [f"{sorted(codecs)}, {stored.num_row_groups} row groups", *map(str, table.to_pylist())]
    return "\n".join(lines) + "\n"


def compare(first: Path, second: Path, only: Sequence[str]) -> bool:
    """Print for each job whether both folders hold the same; whether all do."""
    recorded = sorted(_recorded(first) | _recorded(second))
    names = [name for name in recorded if _selected(name, only)]
    if not names:
        raise SystemExit("there is nothing to compare: record both folders first")
    different = 0
    for name in names:
        differences = list(_differences(first / name, second / name))
        different += bool(differences)
        print(f"{'DIFFERENT' if differences else 'SAME':<10}{name}", *differences, sep="\n")
    print(f"{len(names)} jobs: {len(names) - different} same, {different} different")
    return not different


def _recorded(folder: Path) -> set[str]:
    return {str(file.parent.relative_to(folder)) for file in folder.glob("*/*/home.txt")}


def _differences(first: Path, second: Path) -> Iterator[str]:
    """For each file that differs, its name and the first lines that do."""
    names = {str(file.relative_to(folder)) for folder in (first, second) for file in _files(folder)}
    for name in sorted(names):
        missing = [folder for folder in (first, second) if not (folder / name).exists()]
        if missing:
            yield f"    {name}: not in {missing[0]}"
            continue
        one, other = (folder.joinpath(name).read_bytes() for folder in (first, second))
        if one != other:
            yield f"    {name}:"
            yield from _first_differing_lines(one, other)


def _first_differing_lines(one: bytes, other: bytes) -> Iterator[str]:
    lines = (content.decode("utf-8", "replace").split("\n") for content in (one, other))
    pairs = enumerate(zip_longest(*lines, fillvalue="<end>"), start=1)
    unequal = ((number, pair) for number, pair in pairs if pair[0] != pair[1])
    for (number, pair), _ in zip(unequal, range(LINES_SHOWN), strict=False):
        for sign, line in zip("-+", pair, strict=True):
            yield f"      {sign} {number}: {line[:200]}"


def _selected(name: str, only: Sequence[str]) -> bool:
    return not only or any(f"{name}/".startswith(f"{prefix}/") for prefix in only)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the jobs and write their outputs")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--checkout", type=Path, default=TOOLS.parent)
    recording.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    comparing = commands.add_parser("compare", help="compare two recordings")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    for command in (recording, comparing):
        command.add_argument("--only", action="append", default=[], metavar="JOB|GROUP")
    given = parser.parse_args()
    if given.command == "record":
        record(given.folder, given.checkout, given.only, given.workers)
    else:
        sys.exit(not compare(given.first, given.second, given.only))


if __name__ == "__main__":
    main()
