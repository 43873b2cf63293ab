"""Tests of the comparison at equal risk, on made-up cells."""

# ruff: noqa: D103 - the names say it

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from spaces_tables import AXES, Curve, at_risk, compare


def write_cells(out: Path, setting: str, epsilons: tuple[float, ...], gain: float) -> None:
    """Cells of ten queries, two seeds: as many are named as epsilon says, nDCG grows with it."""
    for epsilon in epsilons:
        for seed in (1, 2):
            queries = [str(number) for number in range(10)]
            cell = {
                "ndcg": {q: epsilon / 20 + gain + 0.01 * int(q) for q in queries},
                "chance": dict.fromkeys(queries, gain),
                "named": {q: [1.0 if int(q) < epsilon else 5.0, 0] for q in queries},
            }
            (out / f"c--{setting}--{epsilon:g}--{seed}.json").write_text(json.dumps(cell))


def test_risks_are_interpolated_and_never_extended() -> None:
    risks, values = np.array([0.1, 0.3, 0.2, 0.5]), np.array([1.0, 2.0, 3.0, 4.0])
    assert at_risk(risks, values, 0.2) == pytest.approx(1.5)
    assert at_risk(risks, values, 0.4) == pytest.approx(3.5)  # .2 after .3 counts as .3.
    assert at_risk(risks, values, 0.5) == 4.0
    assert at_risk(risks, values, 0.05) is None
    assert at_risk(risks, values, 0.51) is None


def test_ties_are_counted_in_three_ways() -> None:
    first, behind = (1 + 2 / 2, 2), (2.0, 0)  # Ties with two others; one is ahead of it.
    shares = {axis: right(*first) for axis, (_, right) in AXES.items()}
    assert shares["named"] == 0.0
    assert shares["shared"] == pytest.approx(1 / 3)
    assert shares["tied"] == 1.0
    assert not any(right(*behind) for _, right in AXES.values())


def test_a_gain_at_equal_risk_is_found_and_chance_is_taken_off(tmp_path: Path) -> None:
    write_cells(tmp_path, "old", (2.0, 4.0, 8.0), gain=0.0)
    write_cells(tmp_path, "new", (1.0, 6.0), gain=0.1)
    old, new = Curve.read(tmp_path, "c", "old"), Curve.read(tmp_path, "c", "new")
    assert old is not None
    assert new is not None
    raw, net = compare(old, new, "named", 0.5, ""), compare(old, new, "named", 0.5, "chance")
    assert raw is not None
    assert net is not None
    assert raw.difference == pytest.approx(0.1)
    assert raw.p < 0.01
    assert net.difference == pytest.approx(0.0)
    assert compare(old, new, "named", 0.7, "") is None


def test_only_seeds_that_all_epsilons_have_are_read(tmp_path: Path) -> None:
    write_cells(tmp_path, "old", (2.0, 4.0), gain=0.0)
    (tmp_path / "c--old--4--2.json").unlink()
    curve = Curve.read(tmp_path, "c", "old")
    assert curve is not None
    assert curve.seeds == 1
