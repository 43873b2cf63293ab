"""``sottovoce experiment run`` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from typing import NamedTuple

import pytest
from experiment_files import write_files

from sottovoce.cli import main
from sottovoce.devices import device, gpu_present

pytest.importorskip("pyarrow")
pytest.importorskip("ir_measures")

SMALL = """
name = "small"
[grid]
collections = ["apples"]
engines = ["bm25"]
mechanisms = ["cmp", "santext"]
epsilons = [1, 5]
n = [2]
[texts]
space = "words"
[privacy]
similarity = ["jaccard"]
attacks = ["mode"]
[deniability]
words = 3
draws = 10
"""
CELLS = 4 + 5 + 2 * 4 + 5
"""Draws, searches and the baseline, leaks of two kinds, words and their neighbours."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    write_files(folder)
    (folder / "small.toml").write_text(SMALL)
    return folder


class Answer(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(files, monkeypatch, capsys):
    """Type the command, in this process."""
    monkeypatch.chdir(files)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name, value in (("SOTTOVOCE_HOME", files / "home"), ("NO_COLOR", 1), ("COLUMNS", 80)):
        monkeypatch.setenv(name, str(value))

    def call(*arguments):
        typed = ["sottovoce", "experiment", "run", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", typed)
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def done(files):
    """A finished run, as its command answered in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sottovoce", "experiment", "run", "small.toml", "--out", "done"],
        capture_output=True,
        text=True,
        cwd=files,
        env={**os.environ, "SOTTOVOCE_HOME": str(files / "home"), "NO_COLOR": "1"},
        timeout=300,
    )


def test_help_has_examples(run):
    shown = run("--help").stdout
    assert "sottovoce experiment run demo.toml --out demo --dry-run" in shown


def test_a_dry_run_shows_the_plan_and_writes_nothing(run, files):
    answer = run("small.toml", "--out", "new", "--dry-run")
    assert answer.returncode == 0, answer.stderr
    assert f"small: {CELLS} cells" in answer.stdout
    rows = [line.split() for line in answer.stdout.splitlines()]
    assert ["apples", "cmp", "2", "2", "4", "4", "4"] in rows
    assert ["in", "all", "4", "5", "8", "5", "0", "8", "9"] in rows
    assert "Nothing was run" in answer.stdout
    assert not (files / "new").exists()


def test_a_dry_run_for_programs_needs_no_folder(run):
    said = json.loads(run("small.toml", "--dry-run", "--json").stdout)
    assert (said["cells"], said["done"], said["variants"], said["queries"]) == (CELLS, 0, 8, 9)
    assert {line["mechanism"] for line in said["lines"]} == {"cmp", "santext", ""}


def test_all_problems_of_a_file_are_told_and_nothing_is_written(run, files):
    wrong = SMALL.replace('"apples"', '"pears"').replace('"santext"', '"satnext"')
    (files / "wrong.toml").write_text(wrong)
    answer = run("wrong.toml", "--out", "wrong")
    assert answer.returncode == 2
    assert "2 problems, nothing was run" in answer.stderr
    assert "there is no collection 'pears'" in answer.stderr
    assert "did you mean 'santext'?" in answer.stderr
    assert not (files / "wrong").exists()


def test_results_need_a_place(run):
    answer = run("small.toml")
    assert answer.returncode == 2
    assert "--out" in answer.stderr


def test_a_folder_of_another_experiment_is_left_alone(run, files):
    (files / "other").mkdir()
    (files / "other" / "experiment.toml").write_text('name = "other"\n')
    for options in ([], ["--dry-run"]):
        answer = run("small.toml", "--out", "other", *options)
        assert answer.returncode == 2
        assert "another experiment, 'other'" in answer.stderr
    assert [file.name for file in (files / "other").iterdir()] == ["experiment.toml"]


def test_a_run_says_where_the_table_is_and_what_comes_next(done, files):
    assert done.returncode == 0, done.stderr
    assert f"{CELLS} cells" in done.stdout
    assert "done/results.parquet" in done.stdout
    assert "sottovoce experiment report done" in done.stdout
    assert "protects nobody" in done.stdout
    names = {file.name for file in (files / "done").iterdir()}
    assert {"experiment.toml", "manifest.json", "results.parquet", "results.csv"} <= names
    assert f"Device  {device()}\n" in done.stdout
    said = json.loads((files / "done" / "manifest.json").read_text())
    assert said["facts"]["device"] == [device()]


@pytest.mark.skipif(gpu_present(), reason="there is a CUDA device")
def test_a_gpu_that_is_not_there_is_refused_before_anything_is_run(run, files):
    answer = run("small.toml", "--out", "elsewhere", "--device", "cuda")
    assert answer.returncode == 2
    assert "use device 'cpu'" in answer.stderr
    assert not (files / "elsewhere").exists()


def test_a_finished_run_is_not_done_again(done, run):
    said = json.loads(run("small.toml", "--out", "done", "--json").stdout)
    assert (said["cells"], said["done_before"]) == (CELLS, CELLS)
    assert said["seeded"] is True
    assert said["device"] == device()
    assert said["tables"]["queries"] == "results.parquet"
    counted = json.loads(run("small.toml", "--out", "done", "--dry-run", "--json").stdout)
    assert counted["done"] == CELLS


def test_one_more_epsilon_is_all_that_is_left_to_do(done, run, files):
    (files / "more.toml").write_text(SMALL.replace("[1, 5]", "[1, 5, 7]"))
    counted = json.loads(run("more.toml", "--out", "done", "--dry-run", "--json").stdout)
    assert counted["cells"] - counted["done"] == 2 * 5


def test_a_scheduler_alone_is_no_cluster(run):
    answer = run("small.toml", "--out", "cluster", "--scheduler", "tcp://127.0.0.1:1")
    assert answer.returncode == 2
    assert "--on dask" in answer.stderr
