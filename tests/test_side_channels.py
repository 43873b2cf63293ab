"""What traffic tells, and what a command leaves behind."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command_line import run_command

from sottovoce import Obfuscator
from sottovoce.mechanisms.cmp import CMP
from sottovoce.search import PrivateSearch, load_reranker

pytest.importorskip("sklearn", reason="pip install scikit-learn")


@pytest.fixture(scope="module")
def channels():
    """The benchmark, whose engine and classifier are used here."""
    place = Path(__file__).parents[1] / "benchmarks" / "side_channels.py"
    spec = importlib.util.spec_from_file_location("side_channels", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["side_channels"] = module
    spec.loader.exec_module(module)
    return module


def test_the_classifier_tells_what_differs_and_nothing_else(channels):
    rng = np.random.default_rng(3)
    ones, twos = rng.standard_normal((120, 4)), rng.standard_normal((120, 4))
    assert channels.separation(ones, twos, trees=20) == pytest.approx(0.5, abs=0.15)
    assert channels.separation(ones, twos + np.array([0, 2, 0, 0]), trees=20) > 0.85


@dataclass(frozen=True, repr=False, eq=False)
class SlowForSome(CMP):
    """Takes long to draw for the first words of the space, as an encoder does for unknown ones."""

    name = "slow-for-some"

    def draw(self, ids, draws):
        if (ids < 1000).any():
            time.sleep(0.03)
        return super().draw(ids, draws)


class DrawsUnderway(PrivateSearch):
    """A defect: each variant is drawn when the one before it was sent."""

    def search(self, query, top=10, *, on_step=None):
        for _ in range(3):
            super().search(query, top)


def gaps(channels, space, kind, n):
    """The AUC of times between slow words and quick ones."""
    with channels.eavesdropping() as ear:
        engine = channels.engine_at(ear.port, pause=0.0)
        obfuscator = Obfuscator(SlowForSome(space, 5.0), n=n)
        search = kind(obfuscator, engine, load_reranker("none"))
        slow, quick = (
            channels.observed(search, ear, [f"word{at}" for at in range(first, first + 25)])[1]
            for first in (0, 1500)
        )
    return channels.separation(slow, quick, trees=20)


def test_how_long_drawing_takes_does_not_show_between_requests(channels, small_space):
    """All is drawn before anything is sent; where it were not, the classifier would see it."""
    assert gaps(channels, small_space, DrawsUnderway, 1) > 0.95
    assert gaps(channels, small_space, PrivateSearch, 3) < 0.85


def test_the_number_of_requests_depends_on_nothing(channels, small_space):
    with channels.eavesdropping() as ear:
        engine = channels.engine_at(ear.port, pause=0.0)
        obfuscator = Obfuscator(CMP(small_space, 5.0), n=4, release="once")
        search = PrivateSearch(obfuscator, engine, load_reranker("none"))
        queries = ["word7", "word1999 word3", "unheard", "a very long query of words " * 5]
        sizes, _ = channels.observed(search, ear, queries)
    assert sizes[:, 0].tolist() == [4, 4, 4, 4]


# What is left behind


def test_a_crash_writes_no_memory_to_a_file(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
        run_command("mechanisms", home=tmp_path)
        assert resource.getrlimit(resource.RLIMIT_CORE) == (0, limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


def test_what_is_read_from_standard_input_is_in_no_command_line(tmp_path):
    """A shell keeps what is typed on its command line; what is piped in, it does not."""
    command = [sys.executable, "-m", "sottovoce", "search", "-", "--engine", "http:missing.toml"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SOTTOVOCE_HOME": str(tmp_path)},
    ) as process:
        _, told = process.communicate(b"zebulonitis\n", timeout=60)
    assert process.returncode
    assert b"zebulonitis" not in told
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
