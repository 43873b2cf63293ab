"""The threat model names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "threats.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", PAGE)))


def test_many_tests_are_named():
    assert len(NAMED) > 25


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_exists(file, name):
    source = (ROOT / "tests" / file).read_text("utf-8")
    assert f"\ndef {name}(" in source if name else "\ndef test_" in source


def test_every_promise_has_a_test():
    table = PAGE.partition("## What is promised")[2].partition("##")[0]
    rows = [row for row in table.splitlines() if row.startswith("|")][2:]
    assert len(rows) > 15
    assert [row for row in rows if "`test_" not in row] == []
