"""kill -9 anywhere, then --resume: no row lost, none doubled, the same output as if undisturbed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from killing import commands, finish, start

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
import os, sys
from pathlib import Path
from killing import kill_at_every_step, torn_write, watch
import sottovoce.sanitizing.arrow as arrow
import sottovoce.sanitizing.sources as sources
import sottovoce.sanitizing.work as work
from sottovoce import files
from sottovoce import UsageError, mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer, open_source, sanitize_file
from sottovoce.threads import set_threads

set_threads(1)
arrow.ROWS_AT_A_TIME = sources.ROWS_AT_A_TIME = 12
source, folder = Path(sys.argv[1]), Path(sys.argv[2])
seed = int(sys.argv[3]) if sys.argv[3] else None

def run(out, **options):
    obfuscator = Obfuscator(mechanism("cmp:epsilon=3"), rng=seed)
    sanitizer = Sanitizer(obfuscator, ("text",), None)
    data = open_source(source, ("text",))
    sanitize_file(sanitizer, data, out, report=out.with_suffix(".report"), **options)

def begin(place):
    watch(os, "open", "mkdir", "fsync", "replace", "unlink", "rmdir", "chmod")
    files.write_through = work.write_through = torn_write
    run(place / ("out" + source.suffix))

def go_on(place):
    out = place / ("out" + source.suffix)
    begun = (work.work_folder(out) / "plan.json").exists()
    if begun or not out.exists():
        run(out, resume=True)
    else:  # It was finished: at most an empty folder is left.
        try:
            run(out, resume=True)
        except UsageError as error:
            assert "finished earlier" in str(error)

run(folder / ("whole" + source.suffix))
print(kill_at_every_step(folder, begin, after=go_on))
"""


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("in.csv", "7"),
        pytest.param("in.jsonl", "", marks=pytest.mark.slow),
        pytest.param("in.parquet", "7", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_any_step_is_made_whole(memory_disk, home, name, seed):
    source, folder = memory_disk / name, memory_disk / "work"
    write_rows(source, 26)
    folder.mkdir()
    points = int(finish(start(EVERY_STEP, source, folder, seed, SOTTOVOCE_HOME=str(home))))
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
        assert sum(a == b for a, b in zip(after, before, strict=True)) < 5


TWENTY = 20
SMALL_BLOCKS = "import sottovoce.sanitizing.sources as s; s.ROWS_AT_A_TIME = 100"


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(memory_disk, home):
    source, out, whole = (memory_disk / name for name in ("in.csv", "out.csv", "whole.csv"))
    write_rows(source, 8000)
    report, whole_report = memory_disk / "report.json", memory_disk / "whole.json"
    environment = {"SOTTOVOCE_HOME": str(home)}

    def command(file, side):
        chosen = ("--column", "text", "--seed", "3", "--report", side)
        return [str(part) for part in ("sanitize", source, file, *chosen)]

    # The first and the last run are processes of their own.
    undisturbed = [sys.executable, "-m", "sottovoce", *command(whole, whole_report)]
    subprocess.run(undisturbed, check=True, capture_output=True, env=os.environ | environment)
    journal = work_folder(out) / "journal"
    moments = random.Random()
    kills, sizes = 0, []
    with commands(SMALL_BLOCKS, **environment) as start_command:
        while kills < TWENTY and not out.exists():
            before = journal.stat().st_size if journal.exists() else -1
            # Some of them with workers, which must not go on alone.
            workers = 2 if kills % 10 == 4 else 1
            process = start_command(*command(out, report), "--resume", "--workers", workers)
            if moments.random() < 0.8:
                wait_for_more(process.running, journal, before)
            time.sleep(moments.random() * 0.01)
            process.kill()
            kills += 1
            sizes.append(journal.stat().st_size if journal.exists() else -1)
    assert kills == TWENTY, "the work was done before all kills: give it more rows"
    assert len(set(sizes)) > 5, "most kills came before any work"
    resumed = [sys.executable, "-m", "sottovoce", *command(out, report), "--resume"]
    subprocess.run(resumed, check=True, capture_output=True, env=os.environ | environment)
    assert out.read_bytes() == whole.read_bytes()
    assert json.loads(report.read_text()) == json.loads(whole_report.read_text())
    assert not work_folder(out).exists()


def wait_for_more(running: Callable[[], bool], journal: Path, before: int) -> None:
    """Until the process has written one block more, or is done."""
    while running():
        if journal.exists() and journal.stat().st_size > before:
            return
        time.sleep(0.001)


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path, home):
    source = tmp_path / "in.csv"
    write_rows(source, 20_000)
    journal = work_folder(tmp_path / "out.csv") / "journal"
    process = subprocess.Popen(
        [sys.executable, "-m", "sottovoce", "sanitize", str(source), str(tmp_path / "out.csv"),
         "--column", "text", "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SOTTOVOCE_HOME": str(home)},
        start_new_session=True,
    )  # fmt: skip
    wait_for_more(lambda: process.poll() is None, journal, 0)
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
