"""kill -9 at any moment, and run again: the tables of an undisturbed run, to the byte."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killing import finish
from killing import start as start_code

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")

TABLES = [f"{name}.{end}" for name in ("results", "words", "tasks") for end in ("parquet", "csv")]

# One process for each step at which it is killed: before and after every call that changes
# something on disk. A run is killed there, then gone on with by another one.
EVERY_STEP = """
import os, sys
from functools import partial
from pathlib import Path
from frail_runner import FrailRunner, frail_plan
from killing import kill_at_every_step, torn_write, watch
from sottovoce.experiments.executors import in_this_process
from sottovoce.experiments.run import staged, work_through
from sottovoce.experiments.store import Store
from sottovoce import files

def run(folder):
    store, runner = Store(folder), FrailRunner(folder)
    cells = staged(runner, frail_plan("a", epsilons=(1.0,), seeds=(0,)))
    with store.alone():
        work_through(store, cells, partial(in_this_process, runner))
        store.assemble([cell for stage in cells for cell in stage])

def begin(folder):
    watch(os, "open", "mkdir", "fsync", "replace", "unlink", "chmod")
    files.write_through = torn_write
    run(folder)

folder = Path(sys.argv[1])
run(folder / "whole")
print(kill_at_every_step(folder, begin, after=run))
"""


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_run_killed_at_any_step_is_made_whole(memory_disk):
    points = int(finish(start_code(EVERY_STEP, memory_disk)))
    assert points > 60, "the child was killed at too few points to tell anything"
    whole = memory_disk / "whole"
    for point in range(points):
        assert tables(memory_disk / str(point)) == tables(whole)
        assert files(memory_disk / str(point)) == files(whole)


DEMO = """
name = "demo"
[grid]
collections = ["demo"]
engines = ["bm25"]
rerankers = ["light"]
mechanisms = ["cmp"]
epsilons = [5, 12.5]
releases = ["independent", "once"]
n = [3]
[texts]
space = "glove-840b-34k"
[privacy]
similarity = ["jaccard"]
log = "demo"
attacks = ["mode"]
"""
CELLS = 21

RUN = """
import signal
import sys
from pathlib import Path
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.reading import read_experiment

if __name__ == "__main__":
    # Tests that a shell runs in the background would hand on that Ctrl-C is to be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = Path(sys.argv[1])
    run_experiment(read_experiment(file), sys.argv[2], file=file, workers=int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def start(tmp_path_factory, default_space):
    place = tmp_path_factory.mktemp("experiment")
    (place / "demo.toml").write_text(DEMO)
    (place / "run.py").write_text(RUN)

    def call(folder, workers=1):
        return subprocess.Popen(
            [sys.executable, "run.py", "demo.toml", folder, str(workers)],
            cwd=place,
            env={**os.environ, "XDG_DATA_HOME": str(place / "data")},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return call


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, start):
    folder = tmp_path_factory.mktemp("undisturbed") / "whole"
    finish(start(folder))
    return folder


def cells(folder):
    return [file for part in ("variants", "cells") for file in (folder / part).glob("*.parquet")]


def wait_for(number, folder, process):
    """Until so many cells are done, and up to 50 ms longer."""
    while len(cells(folder)) < number:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    time.sleep(random.Random().random() * 0.05)


def alive(session):
    """The living processes of a session."""
    return [number for number, fields in processes() if int(fields[3]) == session]


def workers_of(parent):
    """Its children that do cells; another one watches over shared resources."""
    found = [number for number, fields in processes() if int(fields[1]) == parent]
    return [each for each in found if b"resource_tracker" not in command(each)]


def command(number):
    return Path(f"/proc/{number}/cmdline").read_bytes()


def processes():
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found.append((int(entry.name), fields))
    return found


def ended(session):
    """Whether all processes of a session end soon."""
    until = time.monotonic() + 60
    while alive(session) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(session)


def killed_twice(parent, start, workers):
    """A folder whose experiment was killed twice before it was done.

    On a busy machine this process may look too late, when all is done: then there is another try.
    """
    for attempt in range(5):
        folder = parent / f"killed {attempt}"
        for more in (2, 3):
            process = start(folder, workers)
            wait_for(len(cells(folder)) + more, folder, process)
            process.kill()
            process.communicate()
            assert ended(process.pid), "workers must end with a killed parent"
            if len(cells(folder)) > CELLS - 3:
                break
        else:
            return folder
    pytest.fail("the experiment was done before it was killed, five times: make it larger")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_two_kills_in_the_middle_change_nothing(tmp_path, start, undisturbed, workers):
    folder = killed_twice(tmp_path, start, workers)
    kept = {file: file.stat().st_mtime_ns for file in cells(folder)}
    finish(start(folder, workers))
    assert tables(folder) == tables(undisturbed)
    assert files(folder) == files(undisturbed)
    assert all(file.stat().st_mtime_ns == stamp for file, stamp in kept.items())


@pytest.mark.slow
def test_a_killed_worker_is_told_and_the_run_goes_on_later(tmp_path, start, undisturbed):
    folder = tmp_path / "killed"
    process = start(folder, 2)
    wait_for(4, folder, process)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "a worker process died in the" in said
    assert f"of {CELLS} cells are done and kept" in said
    finish(start(folder))
    assert tables(folder) == tables(undisturbed)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_keeps_what_is_done(tmp_path, start):
    process = start(tmp_path, 2)
    wait_for(1, tmp_path, process)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert printed.count("KeyboardInterrupt") == 1, "workers say nothing"
    assert ended(process.pid)
    assert len(cells(tmp_path)) >= 1


@pytest.mark.slow
def test_ctrl_c_while_workers_start_is_told_once(tmp_path, start):
    process = start(tmp_path, 2)
    while len(workers_of(process.pid)) < 2:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    time.sleep(0.2)  # They import now.
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert printed.count("KeyboardInterrupt") == 1, "workers say nothing"
    assert ended(process.pid)


def test_ctrl_c_right_after_a_worker_started_ends_it(tmp_path, monkeypatch):
    from sottovoce.experiments.executors import in_processes

    process = multiprocessing.get_context("spawn").Process
    start_process = process.start

    def start_and_interrupt(self):
        start_process(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(process, "start", start_and_interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), in_processes(os.listdir, tmp_path, 1):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children()
