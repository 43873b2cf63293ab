"""kill -9 anywhere, then --resume: no row lost, none doubled, the same output as if undisturbed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sottovoce.sanitizing.work import work_folder
from sottovoce.spaces.store import SpaceWriter

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

WORDS = [f"word{chr(97 + i)}" for i in range(20)]
NAME = "glove-840b-34k"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with SpaceWriter(folder / "spaces" / NAME, name=NAME, dimension=5) as writer:
        writer.append(WORDS, np.random.default_rng(1).standard_normal((20, 5)))
        writer.commit()
    return folder


def write_rows(file: Path, rows: int) -> None:
    draw = random.Random(1)
    data = [
        {"id": i, "text": " ".join(draw.choices([*WORDS, "zzz"], k=6)), "rest": f"x{i}"}
        for i in range(rows)
    ]
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(data), file, row_group_size=150)
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(each) + "\n" for each in data))
    else:
        lines = [f'{each["id"]},"{each["text"]}",{each["rest"]}\n' for each in data]
        file.write_text("id,text,rest\n" + "".join(lines))


def read_rows(file: Path) -> list[tuple[str, str, str]]:
    if file.suffix == ".parquet":
        data = pq.read_table(file).to_pylist()
    elif file.suffix == ".jsonl":
        data = [json.loads(line) for line in file.read_text().splitlines()]
    else:
        lines = [line.replace('"', "").split(",") for line in file.read_text().splitlines()]
        data = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return [(str(each["id"]), each["text"], each["rest"]) for each in data]


# One process for each step at which it is killed: before and after every call that changes
# something on disk. A run is killed there, then gone on with by another one.
EVERY_STEP = """
import os, signal, sys
from pathlib import Path
import sottovoce.sanitizing.arrow as arrow
import sottovoce.sanitizing.sources as sources
import sottovoce.sanitizing.work as work
from sottovoce import files
from sottovoce import UsageError, mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer, open_source, sanitize_file
from sottovoce.threads import set_threads

set_threads(1)
arrow.ROWS_AT_A_TIME = sources.ROWS_AT_A_TIME = 60
source, folder = Path(sys.argv[1]), Path(sys.argv[2])
seed = int(sys.argv[3]) if sys.argv[3] else None
steps = 0

def step():
    global steps
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

def around(function):
    def call(*arguments, **options):
        step()
        result = function(*arguments, **options)
        step()
        return result
    return call

def torn(write):
    def call(file, data):
        half = len(data) // 2
        os.write(file.fileno(), data[:half])
        step()
        os.write(file.fileno(), data[half:])
        step()
        os.fsync(file.fileno())
    return call

def run(out, **options):
    obfuscator = Obfuscator(mechanism("cmp:epsilon=3"), rng=seed)
    sanitizer = Sanitizer(obfuscator, ("text",), None)
    data = open_source(source, ("text",))
    sanitize_file(sanitizer, data, out, report=out.with_suffix(".report"), **options)

run(folder / ("whole" + source.suffix))
last = 0
while True:
    out = folder / str(last) / ("out" + source.suffix)
    out.parent.mkdir()
    child = os.fork()
    if not child:
        for name in ("open", "mkdir", "fsync", "replace", "unlink", "rmdir", "chmod"):
            setattr(os, name, around(getattr(os, name)))
        files.write_through = work.write_through = torn(files.write_through)
        run(out)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    begun = (work.work_folder(out) / "plan.json").exists()
    if begun or not out.exists():
        run(out, resume=True)
    else:  # It was finished: at most an empty folder is left.
        try:
            run(out, resume=True)
        except UsageError as error:
            assert "finished earlier" in str(error)
    last += 1
print(last)
"""


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("in.csv", "7"),
        pytest.param("in.jsonl", "", marks=pytest.mark.slow),
        pytest.param("in.parquet", "7", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_any_step_is_made_whole(tmp_path, home, name, seed):
    source, folder = tmp_path / name, tmp_path / "work"
    write_rows(source, 130)
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", EVERY_STEP, str(source), str(folder), seed],
        capture_output=True,
        text=True,
        env={**os.environ, "SOTTOVOCE_HOME": str(home)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    points = int(done.stdout)
    assert points > 40, "the child was killed at too few points to tell anything"
    whole = folder / f"whole{source.suffix}"
    before = read_rows(source)
    report = json.loads(whole.with_suffix(".report").read_text())
    for point in range(points):
        out = folder / str(point) / f"out{source.suffix}"
        assert sorted(os.listdir(out.parent)) == [out.name, "out.report"]
        if seed:
            assert out.read_bytes() == whole.read_bytes()
            assert json.loads(out.with_suffix(".report").read_text()) == report
        after = read_rows(out)
        assert [(one, three) for one, _, three in after] == [(a, c) for a, _, c in before]
        assert all(len(text.split()) == 6 for _, text, _ in after)
        assert sum(a == b for a, b in zip(after, before, strict=True)) < 20


TWENTY = 20


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(tmp_path, home):
    source, out, whole = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "whole.csv"
    write_rows(source, 40_000)
    environment = {**os.environ, "SOTTOVOCE_HOME": str(home)}
    report = tmp_path / "report.json"

    def start(file, *more):
        command = ["sanitize", str(source), str(file), "--column", "text", "--seed", "3", *more]
        return subprocess.Popen(
            [sys.executable, "-m", "sottovoce", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )

    process = start(whole, "--report", str(tmp_path / "whole.json"))
    assert process.communicate(timeout=120)[1] is not None
    assert process.returncode == 0
    journal = work_folder(out) / "journal"
    moments = random.Random()
    kills, sizes = 0, []
    while kills < TWENTY and not out.exists():
        before = journal.stat().st_size if journal.exists() else -1
        # Some of them with workers, which must not go on alone.
        workers = "2" if kills % 5 == 4 else "1"
        process = start(out, "--resume", "--workers", workers, "--report", str(report))
        if moments.random() < 0.8:
            wait_for_more(process, journal, before)
        time.sleep(moments.random() * 0.05)
        process.kill()
        process.communicate(timeout=60)
        kills += 1
        sizes.append(journal.stat().st_size if journal.exists() else -1)
    assert kills == TWENTY, "the work was done before all kills: give it more rows"
    assert len(set(sizes)) > 5, "most kills came before any work"
    process = start(out, "--resume", "--report", str(report))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert out.read_bytes() == whole.read_bytes()
    assert json.loads(report.read_text()) == json.loads((tmp_path / "whole.json").read_text())
    assert not work_folder(out).exists()


def wait_for_more(process: subprocess.Popen[bytes], journal: Path, before: int) -> None:
    """Until the process has written one block more, or is done."""
    while process.poll() is None:
        if journal.exists() and journal.stat().st_size > before:
            return
        time.sleep(0.002)


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path, home):
    source = tmp_path / "in.csv"
    write_rows(source, 60_000)
    journal = work_folder(tmp_path / "out.csv") / "journal"
    process = subprocess.Popen(
        [sys.executable, "-m", "sottovoce", "sanitize", str(source), str(tmp_path / "out.csv"),
         "--column", "text", "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SOTTOVOCE_HOME": str(home)},
        start_new_session=True,
    )  # fmt: skip
    wait_for_more(process, journal, 0)
    assert len(members(process.pid)) > 2
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while members(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not members(process.pid)


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found
