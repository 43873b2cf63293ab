"""The commands as a person types them: results on stdout, the rest on stderr, honest exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from command_line import run_command

from sottovoce.spaces.store import SpaceWriter


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a small space under the default name."""
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(1)
    words = ["treatment", "for", "skin", "cancer", *(f"word{chr(97 + i)}" for i in range(20))]
    with SpaceWriter(
        folder / "spaces" / "glove-840b-34k", name="glove-840b-34k", dimension=5
    ) as writer:
        writer.append(words, rng.standard_normal((len(words), 5)))
        writer.commit()
    return folder


@pytest.fixture
def run(home):
    def call(*arguments, stdin=b"", home=home):
        return run_command(*arguments, stdin=stdin, home=home)

    return call


@pytest.fixture
def start(home):
    """The same in a process of its own, where that matters."""

    def call(*arguments, stdin=b""):
        environment = {**os.environ, "SOTTOVOCE_HOME": str(home), "NO_COLOR": "1"}
        command = [sys.executable, "-m", "sottovoce", *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, env=environment, timeout=120
        )

    return call


def lines(done):
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def test_version_and_help(run, start):
    assert lines(start("--version")) == lines(run("--version")) == ["sottovoce 0.1.0"]
    shown = "\n".join(lines(run("--help")))
    assert all(command in shown for command in ("obfuscate", "mechanisms", "spaces"))
    assert "sottovoce obfuscate" in "\n".join(lines(run("obfuscate", "--help")))


def test_one_variant_a_line(run):
    done = run("obfuscate", "treatment for skin cancer", "skin", "-n", "3", "-e", "2")
    assert len(lines(done)) == 6
    assert all(len(line.split()) == 4 for line in lines(done)[:3])


def test_json_lines_hold_the_documented_fields(run):
    done = run("obfuscate", "Skin zzz!", "-n", "2", "-m", "vickrey-cmp", "--set", "t=0.5",
               "--release", "once", "--seed", "4", "-o", "jsonl")  # fmt: skip
    (said,) = map(json.loads, lines(done))
    assert set(said) >= {
        "text", "variants", "mechanism", "epsilon", "release", "guarantee", "spent", "unknown",
        "seeded",
        "made_with", "texts",
    }  # fmt: skip
    assert said["text"] == "Skin zzz!"
    assert said["mechanism"] == "vickrey-cmp:epsilon=10,t=0.5"
    assert said["spent"] == 10.0
    assert said["unknown"] == ["zzz"]
    assert said["seeded"] is True
    assert b"experiments only" in done.stderr


def test_a_seed_repeats_and_its_absence_does_not(run):
    text = "treatment for skin cancer " * 8
    seeded = [run("obfuscate", text, "-e", "0.5", "--seed", "1").stdout for _ in range(2)]
    fresh = [run("obfuscate", text, "-e", "0.5").stdout for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert fresh[0] != fresh[1]


def test_standard_input_is_read_line_by_line_whatever_it_holds(run):
    stdin = "skin cancer\n\nrtl שלום\n".encode() + b"\xff\xfe broken\nnul \x00 skin\r\n"
    done = run("obfuscate", "-", "-n", "2", "-o", "jsonl", stdin=stdin)
    said = [json.loads(line) for line in lines(done)]
    assert len(said) == 5
    assert said[1]["variants"] == ["", ""]
    released = "\n".join(variant for each in said for variant in each["variants"])
    assert "broken" not in released
    assert "שלום" not in released
    assert "\x00" not in released


def test_a_line_is_answered_before_the_next_one_comes(home):
    environment = {**os.environ, "SOTTOVOCE_HOME": str(home)}
    command = [sys.executable, "-m", "sottovoce", "obfuscate", "-", "--seed", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        answers = []
        for _ in range(3):
            process.stdin.write(b"treatment for skin cancer\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert all(len(answer.split()) == 4 for answer in answers)


def test_a_stream_gives_the_same_as_texts_at_once(run):
    texts = ["treatment for skin cancer", "skin", "", "cancer for skin"]
    at_once = run("obfuscate", *texts, "--seed", "5", "-e", "1").stdout
    streamed = run("obfuscate", "-", "--seed", "5", "-e", "1", stdin="\n".join(texts).encode())
    assert streamed.stdout == at_once


def test_workers_give_the_same_as_one_process(start):
    stdin = b"treatment for skin cancer\nskin\n" * 200
    outputs = [
        start("obfuscate", "-", "--seed", "3", "--workers", count, stdin=stdin).stdout
        for count in "12"
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 400


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["obfuscate", "skin", "-m", "vikrey"], "did you mean 'vickrey-cmp'?"),
        (["obfuscate", "skin", "-e", "-3"], "positive"),
        (["obfuscate", "skin", "--set", "t"], "key=value"),
        (["obfuscate", "skin", "--set", "t=1"], "no such parameter: there are epsilon"),
        (["obfuscate", "skin", "-n", "0"], "at least one variant"),
        (["obfuscate", "skin", "-n", "99", "--release", "once"], "fewer variants"),
        (["obfuscate"], "give a text"),
        (["obfuscate", "-", "skin"], "cannot be mixed"),
        (["obfuscate", "skin", "--unknown", "ignore"], "uniform"),
        (["obfuscate", "skin", "--seed", "-1"], "whole number"),
        (["obfuscate", "skin", "--output-vocabulary", "nice"], "nice"),
        (["mechanisms", "cpm"], "did you mean 'cmp'?"),
        (["obfuscat"], "did you mean 'obfuscate'?"),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_to_do(run, arguments, says):
    done = run(*arguments, stdin=b"")
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "before",
    [
        [],
        ["spaces"],
        ["spaces", "list"],
        ["mechanisms", "cmp"],
        ["obfuscate", "-n"],
        ["obfuscate", "x", "--epsilon"],
        ["obfuscate", "x", "--release"],
        ["obfuscate", "x", "--unknown"],
        ["obfuscate", "x", "--output"],
    ],
)
def test_a_text_typed_in_the_wrong_place_is_not_repeated(run, before):
    done = run(*before, "cancer of the skin")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"cancer" not in done.stderr


def test_a_missing_space_exits_with_1_and_says_how_to_add_it(run, tmp_path):
    done = run("obfuscate", "skin", home=tmp_path)
    assert done.returncode == 1
    assert b"sottovoce spaces add default" in done.stderr


def test_refused_unknown_words_release_nothing(run):
    done = run("obfuscate", "-", "--unknown", "error", stdin=b"zzzsecret skin\n")
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"zzzsecret" not in done.stderr


def test_an_epsilon_that_changes_little_warns(run):
    assert b"came back unchanged" in run("obfuscate", "skin cancer", "-e", "100000").stderr
    quiet = run("obfuscate", "skin cancer", "-e", "0.01", "-n", "20", "--seed", "1")
    assert b"came back unchanged" not in quiet.stderr


def test_keeping_words_warns(run):
    done = run("obfuscate", "skin zzz", "--unknown", "keep")
    assert b"privacy warning" in done.stderr
    assert "zzz" in lines(done)[0]


def test_the_vocabulary_that_may_be_released_can_be_chosen(run, tmp_path):
    listed = tmp_path / "words.txt"
    listed.write_text("worda\nwordb\nnowhere\n")
    done = run("obfuscate", "skin cancer", "-n", "5", "--output-vocabulary", f"file:{listed}")
    assert set(" ".join(lines(done)).split()) <= {"worda", "wordb"}


def test_mechanisms_are_described(run, tmp_path):
    for home in (None, tmp_path):
        options = {} if home is None else {"home": home}
        said = json.loads(run("mechanisms", "--json", **options).stdout)
        notions = {each["name"]: each["guarantee"]["notion"] for each in said}
        assert notions == {
            **dict.fromkeys(["cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"], "metric"),
            **dict.fromkeys(["santext", "tem", "comet-cmp", "comet-mahalanobis"], "metric"),
            **dict.fromkeys(["wbb", "aea", "fea", "incognito", "versatile"], "none"),
            "custext": "group",
            "syntf": "local",
            **dict.fromkeys(["cover", "cover-subjects"], "local"),
        }
    one = run("mechanisms", "mahalanobis:compat=pypantera").stdout.decode()
    assert "no formal guarantee" in one
    boxes = " ".join(run("mechanisms", "wbb", home=tmp_path).stdout.decode().split())
    assert "theorem of epsilon-differential privacy does not hold: its proof" in boxes
    table = run("mechanisms").stdout.decode()
    assert "epsilon-dp" not in table.lower()


def test_a_reader_that_leaves_is_no_error(home):
    environment = {**os.environ, "SOTTOVOCE_HOME": str(home)}
    command = f"yes skin | head -3000 | {sys.executable} -m sottovoce obfuscate - | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, env=environment, timeout=120)
    assert done.stdout.count(b"\n") == 2
    assert b"Traceback" not in done.stderr


def test_importing_is_light():
    """Torch, scipy and the command line are not loaded by ``import sottovoce``."""
    code = "import sottovoce, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    for heavy in ("torch", "scipy", "typer", "rich"):
        assert heavy not in loaded.split()
