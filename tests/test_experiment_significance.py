"""Significance: which settings are compared, and on which queries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from experiment_folder import write_folder

from sottovoce.experiments.report.significance import compare
from sottovoce.experiments.results import Place, Results

PLACE = Place("demo", "bm25", "light")


def counted(differences: list[float]) -> float:
    """The p value by going through every way the coins can fall."""
    observed = abs(math.fsum(differences))
    falls = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = (abs(math.fsum(s * d for s, d in zip(f, differences, strict=True))) for f in falls)
    return sum(each >= observed - 1e-9 for each in sums) / len(falls)


def test_comparisons_pair_the_same_queries_of_the_same_epsilon(tmp_path) -> None:
    results = Results(write_folder(tmp_path, mechanisms=("cmp", "santext", "aea"), seeds=(0, 1)))
    found = compare(results, "nDCG@10", PLACE)
    values = results.values("nDCG@10", PLACE)
    (itself,) = results.values("nDCG@10", PLACE, "no privacy").values()
    assert set(found.against_none) == set(values)
    assert len(found.between) == 4  # cmp and santext, at four epsilons; aea has no epsilon.
    for setting, test in found.against_none.items():
        gaps = [value - itself[query] for query, value in values[setting].items()]
        assert test.difference == pytest.approx(np.mean(gaps))
        assert test.effect == pytest.approx(np.mean(gaps) / np.std(gaps, ddof=1))
        assert test.queries == 12
    for (one, other), test in found.between.items():
        assert one.epsilon == other.epsilon
        gaps = [values[one][query] - values[other][query] for query in values[one]]
        assert test.p == pytest.approx(counted(gaps))
        assert test.adjusted >= test.p
    worst = min(values, key=lambda each: each.epsilon or 99)
    assert found.against_none[worst].significant
