"""``sottovoce sanitize`` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from command_line import as_text, run_command

from sottovoce.spaces.store import SpaceWriter

ROWS = b"id,text,label\n1,Worda wordb!,x\n2,anna wordc,y\n"
NAME = "glove-840b-34k"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    words = [f"word{chr(97 + i)}" for i in range(20)]
    with SpaceWriter(folder / "spaces" / NAME, name=NAME, dimension=5) as writer:
        writer.append(words, np.random.default_rng(1).standard_normal((20, 5)))
        writer.commit()
    return folder


@pytest.fixture
def run(home, tmp_path):
    (tmp_path / "in.csv").write_bytes(ROWS)

    def call(*arguments):
        return as_text(run_command("sanitize", *arguments, home=home, folder=tmp_path))

    return call


def test_a_file_in_a_file_out_and_a_report(run, tmp_path):
    (tmp_path / "names.txt").write_text("anna\n\nBob\n")
    done = run("in.csv", "out.csv", "--column", "text", "-e", "0.1", "--deny", "file:names.txt",
               "--keep", "wordc", "--seed", "1", "--report", "report.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,text,label"
    assert lines[1].startswith("1,Word")
    assert lines[1].endswith("!,x")
    assert lines[2].endswith(" wordc,y")
    assert "anna" not in lines[2]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["rows"] == 2
    assert report["words"]["denied"] == 1
    assert report["in_clear"]["keep_list"] == 1
    assert "metric privacy with epsilon 0.1" in done.stdout
    assert "for experiments only" in done.stdout
    for said in (done.stdout, done.stderr, json.dumps(report)):
        assert "anna" not in said
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "names.txt", "out.csv", "report.json"]


def test_linkable_words_warn_and_a_key_file_makes_them_comparable(run, tmp_path):
    (tmp_path / "key").write_bytes(os.urandom(32))
    (tmp_path / "in.csv").write_text("text\n" + "worda wordb\n" * 3)
    options = ("--column", "text", "-e", "1", "--linkable", "--json")
    first = run("in.csv", "a.csv", *options, "--key-file", "key")
    assert first.returncode == 0, first.stderr
    assert "privacy warning: linkable" in first.stderr
    assert json.loads(first.stdout)["linkable"] is True
    assert run("in.csv", "b.csv", *options, "--key-file", "key").returncode == 0
    content = (tmp_path / "a.csv").read_text()
    assert content == (tmp_path / "b.csv").read_text()
    assert len(set(content.splitlines()[1:])) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["in.csv", "out.csv"], 2, "--column"),
        (["in.csv", "out.csv", "--column", "notes"], 2, "no column"),
        (["none.csv", "out.csv", "--column", "text"], 2, "no such input"),
        (["in.csv", "in.csv", "--column", "text"], 2, "overwrite the input"),
        (["in.csv", "out.csv", "--column", "text", "--key-file", "melanoma"], 2, "--linkable"),
        (["in.csv", "out.csv", "--column", "text", "--deny", "file:melanoma"], 2, "one word a"),
        (["in.csv", "out.csv", "--column", "text", "--deny", "skin melanoma"], 2, "one by one"),
        (["in.csv", "out.csv", "--column", "text", "--unknown", "error"], 1, "row 2"),
        (["in.csv", "out.csv", "--column", "text", "--format", "melanoma"], 2, "parquet"),
        (["in.csv", "out.csv", "--column", "text", "--seed", "-1"], 2, "whole number"),
    ],
)
def test_wrong_use_has_its_exit_code_and_leaves_nothing(run, tmp_path, arguments, code, says):
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "melanoma" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == ["in.csv"]
    assert (tmp_path / "in.csv").read_bytes() == ROWS


def test_most_words_coming_back_warns(run):
    done = run("in.csv", "out.csv", "--column", "text", "-e", "100000")
    assert "came back unchanged" in done.stderr


def test_csv_and_json_need_no_pyarrow(tmp_path, home):
    (tmp_path / "in.csv").write_bytes(ROWS)
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "sys.argv = ['sottovoce', 'sanitize', *sys.argv[1:], '--column', 'text']\n"
        "from sottovoce.cli import main; main()"
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "SOTTOVOCE_HOME": str(home)}, timeout=120,
        )  # fmt: skip

    assert run("in.csv", "out.csv").returncode == 0
    (tmp_path / "in.parquet").write_bytes(b"PAR1")
    refused = run("in.parquet", "out.parquet")
    assert refused.returncode == 1
    assert "pip install 'sottovoce[data]'" in refused.stderr
