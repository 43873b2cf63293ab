"""A mechanism with a kind of resource that nobody has heard of goes through a whole experiment."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from experiment_files import write_files

from sottovoce.errors import UsageError
from sottovoce.experiments.cells.runner import CellRunner
from sottovoce.experiments.grid import Draw, plan
from sottovoce.experiments.results import Results
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms import WordMechanism
from sottovoce.mechanisms.base import resource
from sottovoce.mechanisms.build import RESOURCE_KINDS, ResourceKind, _registry, register_resource
from sottovoce.randomness import Draws
from sottovoce.types import IntArray

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")

LOADED: list[dict[str, Any]] = []
"""The settings of every table that was really read."""


class ShiftTableKind(ResourceKind):
    """Numbers in a file; mechanisms add them to the ids of words."""

    name: ClassVar[str] = "shift_table"
    settings: ClassVar[dict[str, Any]] = {"shift_table": None, "times": 1}
    required: ClassVar[dict[str, str]] = {"shift_table": "it shifts words by a table of numbers"}

    def load(self, settings, progress):
        LOADED.append(dict(settings))
        numbers = [int(line) for line in Path(settings["shift_table"]).read_text().split()]
        return tuple(settings["times"] * number for number in numbers)

    def stand_in(self, settings):
        if settings["times"] < 1:
            raise UsageError("times must be 1 or more")
        return (1,)

    def facts(self, resource):
        return {"name": "shifts", "sha256": hashlib.sha256(repr(resource).encode()).hexdigest()}


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Shift(WordMechanism):
    name: ClassVar[str] = "shift"
    summary: ClassVar[str] = "another word, always the same"
    paper: ClassVar[str] = "none"

    shift_table: tuple[int, ...] = resource()

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None)

    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        shifts = np.array(self.shift_table)
        return (ids + shifts[ids % len(shifts)]) % self.space.size


FILE = """
name = "shifted"
[grid]
collections = ["apples"]
epsilons = [1]
n = [1]
[texts]
space = "words"
shift_table = "shifts.txt"
[[mechanism]]
spec = "shift"
label = "once"
[[mechanism]]
spec = "shift"
label = "twice"
times = 2
[privacy]
similarity = ["jaccard"]
attacks = []
[deniability]
words = 4
draws = 5
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The experiment's file, while the mechanism and its kind of resource are registered."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(_registry, Shift.name, Shift)
    register_resource(ShiftTableKind)
    write_files(tmp_path)
    (tmp_path / "shifts.txt").write_text("3\n5\n")
    (tmp_path / "shifted.toml").write_text(FILE)
    LOADED.clear()
    yield tmp_path / "shifted.toml"
    del RESOURCE_KINDS[ShiftTableKind.name]


def test_its_settings_are_keys_of_the_file(file):
    once, twice = read_experiment(file).systems
    table = str(file.parent / "shifts.txt")
    assert once.texts.settings("shift_table") == {"shift_table": table, "times": 1}
    assert twice.texts.settings("shift_table") == {"shift_table": table, "times": 2}
    assert LOADED == [], "what is not cheap is stood in for"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('shift_table = "shifts.txt"', "", "mechanism 1, shift_table: it shifts words by a table"),
        ('shift_table = "shifts.txt"', "shift_table = 3", "texts.shift_table: it must be a text"),
        ("times = 2", 'times = "2"', "mechanism 2, times: it must be a whole number"),
        ("times = 2", "tmes = 2", "mechanism 2, tmes: there is no such key: did you mean 'times'?"),
        ("times = 2", "times = 0", "mechanism 2, times: times must be 1 or more"),
    ],
)
def test_wrong_settings_are_told_with_their_place(file, old, new, problem):
    file.write_text(FILE.replace(old, new))
    with pytest.raises(ExperimentError) as caught:
        read_experiment(file)
    assert any(text.startswith(problem) for text in caught.value.problems), caught.value.problems


def test_each_table_is_loaded_once_and_named_in_the_manifest(file):
    experiment = read_experiment(file)
    outcome = run_experiment(experiment, file.parent / "out", file=file)
    assert [settings["times"] for settings in LOADED] == [1, 2]
    results = Results(outcome.folder)
    facts = results.manifest["facts"]["shift_table"]
    assert [fact["settings"]["times"] for fact in facts] == [1, 2]
    assert len({fact["sha256"] for fact in facts}) == 2
    assert str(file.parent) not in (outcome.folder / "manifest.json").read_text()
    runner = CellRunner(outcome.folder)
    once, twice = (runner.run(job).table for job in plan(experiment)[0])
    assert once["variant"].to_pylist() == ["wordd"], "worda and 3"
    assert twice["variant"].to_pylist() == ["wordg"], "worda and 2 times 3"
    assert results.words.num_rows > 0


def test_content_decides_what_is_done_again(file):
    run_experiment(read_experiment(file), file.parent / "out", file=file)
    (file.parent / "shifts.txt").rename(file.parent / "moved.txt")
    file.write_text(FILE.replace("shifts.txt", "moved.txt"))
    again = run_experiment(read_experiment(file), file.parent / "out", file=file)
    assert again.done_before == again.cells, "the same numbers in another file"
    (file.parent / "moved.txt").write_text("4\n5\n")
    changed = run_experiment(read_experiment(file), file.parent / "out", file=file)
    assert changed.done_before == 1, "all cells but the distances of words to their neighbours"


def test_other_mechanisms_do_not_depend_on_it(file):
    def key(content):
        file.write_text(content.replace('spec = "shift"', 'spec = "cmp"', 1))
        (draw, _), _ = plan(read_experiment(file))
        assert isinstance(draw, Draw)
        return CellRunner(file.parent).key(draw)

    assert key(FILE) == key(FILE.replace('shift_table = "shifts.txt"', 'shift_table = "pool.txt"'))
