"""``sottovoce audit`` as a person types it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import as_text, run_command

from sottovoce.spaces.store import SpaceWriter


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(1)
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    with SpaceWriter(
        home / "spaces" / "glove-840b-34k", name="glove-840b-34k", dimension=5
    ) as writer:
        writer.append(words, rng.standard_normal((len(words), 5)))
        writer.commit()
    return lambda *arguments: as_text(run_command("audit", *arguments, home=home, columns=99))


def test_a_refuted_claim_is_a_result_with_a_witness(run):
    done = run("wbb", "--quick", "--seed", "1")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "stated: NO CLAIM" in said
    assert "published: REFUTED" in said
    assert "Witness: inputs 'word" in said
    assert "In short: REFUTED" in said
    assert run("wbb", "--quick", "--seed", "1", "--fail").returncode == 1


def test_json_and_figure_of_a_sound_mechanism(run, tmp_path):
    figure = tmp_path / "ratios.png"
    done = run("santext", "-e", "2", "--json", "--seed", "1", "--fail", "--figure", str(figure))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "CONSISTENT"
    assert said["claims"][0]["guarantee"]["epsilon"] == 2
    assert said["seeded"] is True
    exact = said["findings"][0]
    assert exact["check"] == "exact, all pairs"
    assert exact["figures"]["pairs"] == 200 * 199
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_not_refuted_is_never_called_proved(run):
    # Seeded: fresh draws refute a sound mechanism now and then, one time in a thousand at most.
    done = run("cmp", "--quick", "-e", "3", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert "In short: NOT REFUTED" in done.stdout
    assert "no proof" in done.stdout
    assert "verified" not in done.stdout.lower()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cpm"], "did you mean 'cmp'?"),
        (["cmp", "-e", "0"], "positive"),
        (["cmp", "--draws", "5"], "at least"),
        (["cmp", "--words", "1"], "at least"),
        (["cmp", "--figure", "ratios.gif"], ".png"),
        (["cmp", "--set", "nonsense"], "key=value"),
        (["fea"], "--corpus"),
        ([], "SPEC"),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_to_do(run, arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
