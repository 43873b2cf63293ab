"""The runner of mutants changes one thing at a time, and all that it says it changes."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

SOURCE = '''
@dataclass(frozen=True)
class Door:
    most: int = 3

    def may(self, count, names):
        """Whether so many pass."""
        if not names and count > self.most:
            raise ValueError("too many")
        self.note(count)
        return count + 1
'''


@pytest.fixture
def mutants(monkeypatch):
    place = Path(__file__).parents[1] / "tools" / "mutants.py"
    spec = importlib.util.spec_from_file_location("mutants", place)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", module)
    spec.loader.exec_module(module)
    return module


def test_each_mutant_differs_in_one_place(mutants, monkeypatch):
    monkeypatch.setattr(mutants, "_source", lambda file: SOURCE)
    made = mutants.mutants_of("door.py")
    assert [(one.line, one.what) for one in made] == [
        (8, "condition turned"),
        (8, "and, or exchanged"),
        (8, "not left out"),
        (8, "comparison turned"),
        (9, "raise left out"),
        (10, "call left out"),
        (11, "returns None"),
        (11, "arithmetic changed"),
        (11, "1 + 1"),
    ]
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for one in made:
        changed = ast.unparse(mutants.mutated(one)).splitlines()
        assert sum(a != b for a, b in zip(plain, changed, strict=True)) == 1


def test_a_planted_mutant_changes_what_runs(mutants, monkeypatch, tmp_path):
    place = tmp_path / "door.py"
    place.write_text(
        "from __future__ import annotations\n\ndef may(count):\n    return count > 3\n"
    )
    monkeypatch.setattr(mutants, "_place", lambda file: place)
    spec = importlib.util.spec_from_file_location("door", place)
    door = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(door)
    turned = next(one for one in mutants.mutants_of("door.py") if one.what == "comparison turned")
    assert not door.may(3)
    mutants.plant(turned)
    assert door.may(3)


def test_every_file_and_test_that_is_named_is_there(mutants):
    for file, tests in mutants.TARGETS.items():
        assert mutants.mutants_of(file)
        assert all((mutants.ROOT / "tests" / f"{name}.py").exists() for name in tests)


def test_a_sample_is_decided_by_its_seed(mutants):
    first, again, other = (mutants.sampled("ledger/", 20, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 20


def test_every_explanation_is_of_a_mutant_that_there_is(mutants):
    known = {mutants.key(one) for file in mutants.TARGETS for one in mutants.mutants_of(file)}
    assert set(mutants.explanations()) <= known


def test_a_child_that_hangs_is_ended(mutants):
    import time

    assert mutants.forked(lambda: 3, 20) == 3
    assert mutants.forked(lambda: time.sleep(60) or 0, 0.2) is None
