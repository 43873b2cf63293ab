"""Significance: randomisation tests against counting by hand, Holm, and what the null gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from experiment_folder import write_folder
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.experiments.report import significance
from sottovoce.experiments.report.significance import compare, holm, randomisation
from sottovoce.experiments.results import Results

PLACE = {"collection": "demo", "engine": "bm25", "reranker": "light"}


def counted(differences: list[float]) -> float:
    """The p value by going through every way the coins can fall."""
    observed = abs(math.fsum(differences))
    falls = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = (abs(math.fsum(s * d for s, d in zip(f, differences, strict=True))) for f in falls)
    return sum(each >= observed - 1e-9 for each in sums) / len(falls)


@given(st.lists(st.integers(-4, 4).map(lambda each: each / 8), min_size=1, max_size=8))
def test_few_queries_are_counted_exactly(differences: list[float]) -> None:
    assert randomisation(np.array([differences]))[0] == pytest.approx(counted(differences))


def test_equal_differences_have_the_closed_form() -> None:
    for queries in (1, 5, 12, 16):
        assert randomisation(np.full((1, queries), 0.1))[0] == pytest.approx(2 / 2**queries)
    assert randomisation(np.zeros((1, 7)))[0] == 1


def test_random_signs_come_near_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(3).standard_normal((20, 14)) + 0.4
    exact = randomisation(differences)
    monkeypatch.setattr(significance, "EXACT_QUERIES", 0)
    sampled = randomisation(differences)
    assert np.abs(sampled - exact).max() < 4 * math.sqrt(0.25 / significance.PERMUTATIONS)
    assert (sampled > 0).all()


def test_many_tests_get_more_random_signs_so_that_one_can_be_significant() -> None:
    differences = np.random.default_rng(0).standard_normal((400, 30))
    differences[0] = 1.0
    adjusted = holm(randomisation(differences))
    assert adjusted[0] < significance.ALPHA
    assert (adjusted[1:] > significance.ALPHA).all()


def test_holm_agrees_with_its_definition() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.4, 0.9])) == pytest.approx([0.8, 0.9])
    assert holm(np.array([])).shape == (0,)


def test_under_the_null_a_family_rarely_makes_a_claim() -> None:
    rng = np.random.default_rng(1)
    families, tests, queries = 400, 12, 10
    p = randomisation(rng.standard_normal((families * tests, queries))).reshape(families, tests)
    wrong = sum(bool((holm(each) <= significance.ALPHA).any()) for each in p) / families
    without = (p <= significance.ALPHA).any(axis=1).mean()
    reach = 3 * math.sqrt(0.05 * 0.95 / families)
    assert wrong <= 0.05 + reach
    assert wrong > 0.005
    assert without > 0.3  # Uncorrected, many families would.


def test_comparisons_pair_the_same_queries_of_the_same_epsilon(tmp_path) -> None:
    results = Results(write_folder(tmp_path, mechanisms=("cmp", "santext", "aea"), seeds=(0, 1)))
    found = compare(results, "nDCG@10", **PLACE)
    values = results.values("nDCG@10", **PLACE)
    (itself,) = results.values("nDCG@10", **PLACE, system="no privacy").values()
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
