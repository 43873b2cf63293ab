"""Intervals, tests and corrections against known values, scipy, and their own promises."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy import stats

from sottovoce import statistics
from sottovoce.errors import UsageError
from sottovoce.privacy.membership_audit.outcomes import auc
from sottovoce.statistics import (
    ALPHA,
    at_least,
    at_most,
    auc_interval,
    bootstrap_mean,
    bootstrap_means,
    clopper_pearson,
    holm,
    mean_over_seeds,
    paired_effect,
    randomization_test,
    t_interval,
)

# Shares, by Clopper and Pearson.


@pytest.mark.parametrize(
    ("successes", "low", "high"),
    [(0, 0, 0.003682), (5, 0.001625, 0.011629), (30, 0.02033, 0.042551)],
)
def test_known_intervals(successes, low, high):
    assert np.allclose(clopper_pearson(successes, 1000), (low, high), atol=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_at_the_bounds_what_was_seen_is_just_so_unlikely(counts):
    seen, draws = counts
    low, high = at_least(seen, draws, 0.01), at_most(seen, draws, 0.01)
    assert 0 <= low <= seen / draws <= high <= 1
    if seen > 0:
        assert np.isclose(stats.binom.sf(seen - 1, draws, low), 0.01)
    if seen < draws:
        assert np.isclose(stats.binom.cdf(seen, draws, high), 0.01)


def test_arrays_go_element_by_element():
    low, high = clopper_pearson([0, 5], [10, 20])
    assert low.shape == high.shape == (2,)
    assert low[1] == clopper_pearson(5, 20)[0]


@pytest.mark.parametrize(("seen", "draws"), [(0, 0), (3, 2), (-1, 5), (np.nan, 5)])
def test_impossible_counts_are_refused(seen, draws):
    with pytest.raises(UsageError, match="no more successes than draws"):
        clopper_pearson(seen, draws)


# Means, by Student.


def test_the_interval_of_one_sample_is_students():
    values = np.array([0.0, 0.5, 0.25, 1.0])
    interval = t_interval(values, (-9, 9), 0.9)
    assert interval == pytest.approx(
        stats.t.interval(0.9, 3, loc=values.mean(), scale=stats.sem(values))
    )
    assert t_interval(values, (0.2, 0.5), 0.9) == (0.2, 0.5)
    assert t_interval(values[:1], (0, 1)) is None


def test_with_one_seed_the_interval_is_students():
    values = np.array([0.0, 1, 1, 0, 1, 1, 1, 0])
    value, interval = mean_over_seeds([np.arange(8)], [values], (-9, 9))
    wanted = stats.t.interval(0.95, 7, loc=values.mean(), scale=stats.sem(values))
    assert value == values.mean()
    assert interval == pytest.approx(wanted)


def test_testing_the_same_items_again_tells_nothing_more_about_other_items():
    items, values = np.arange(8), np.array([0.0, 1, 1, 0, 1, 1, 1, 0])
    once = mean_over_seeds([items], [values], (-9, 9))[1]
    again = mean_over_seeds([items] * 3, [values] * 3, (-9, 9))[1]
    assert again == pytest.approx(once)


def test_where_items_are_alike_the_interval_is_students_over_seeds():
    means = np.array([0.2, 0.5, 0.6])
    items = [np.arange(40)] * 3
    value, interval = mean_over_seeds(items, [np.full(40, mean) for mean in means], (-9, 9))
    assert interval == pytest.approx(stats.t.interval(0.95, 2, loc=value, scale=stats.sem(means)))


def test_where_nothing_varies_the_rule_of_three_speaks():
    assert mean_over_seeds([np.arange(60)], [np.ones(60)], (0, 1)) == (1.0, (0.95, 1.0))


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """Items differ in how hard they are, seeds in how good the model is."""
    rng = Generator(PCG64(1))
    hits = 0
    for _ in range(400):
        hard = rng.normal(0, 0.1, size=200)
        items, values = [], []
        for luck in rng.normal(0, 0.02, size=3):
            chosen = rng.permutation(200)[:50]
            items.append(chosen)
            right = rng.random(50) < 0.6 + luck + hard[chosen]
            values.append(right.astype(float))
        low, high = mean_over_seeds(items, values, (0, 1))[1]
        hits += low <= 0.6 <= high
    assert hits > 0.93 * 400


# Means, by resampling.


def test_one_mean_is_resampled_in_blocks_as_it_is_one_by_one(monkeypatch):
    values = np.random.default_rng(0).random(97)
    rng = Generator(PCG64(3))
    means = [values[rng.integers(97, size=97)].mean() for _ in range(500)]
    low, high = np.quantile(means, [0.05, 0.95])
    assert bootstrap_mean(values, 0.9, 500, 3) == (low, high)
    monkeypatch.setattr(statistics, "NUMBERS_AT_A_TIME", 700)
    assert bootstrap_mean(values, 0.9, 500, 3) == (low, high)


def test_without_values_there_is_no_interval():
    assert all(map(math.isnan, bootstrap_mean(np.array([]))))
    with pytest.raises(UsageError, match="the level lies between 0 and 1"):
        bootstrap_mean(np.ones(3), level=1)
    with pytest.raises(UsageError, match="at least 1 sample"):
        bootstrap_mean(np.ones(3), samples=0)


def test_bootstrap_covers_the_mean_and_leaves_no_width_of_zero() -> None:
    rng = np.random.default_rng(0)
    samples = rng.random((400, 60)) ** 2
    low, high = bootstrap_means(samples)
    covered = ((low <= 1 / 3) & (high >= 1 / 3)).mean()
    assert 0.9 < covered < 0.99
    low, high = bootstrap_means(np.zeros((1, 30)))
    assert (low[0], high[0]) == (0, pytest.approx(0.1))
    gaps = samples.copy()
    gaps[:, :30] = np.nan
    narrow = bootstrap_means(samples)
    wide = bootstrap_means(gaps)
    assert (wide[1] - wide[0]).mean() > 1.2 * (narrow[1] - narrow[0]).mean()


# Areas under ROC curves.


def test_an_area_s_interval_ends_where_it_is_a_z_score_away():
    """Hanley and McNeil's variance, written out with their Q1 and Q2."""
    for area, m, n in ((0.8, 30, 40), (0.5, 25, 25), (1.0, 20, 20), (0.0, 20, 20), (0.06, 100, 9)):
        for end in auc_interval(area, m, n):
            if end == area:
                assert area in (0, 1)
                continue
            q1, q2 = end / (2 - end), 2 * end**2 / (1 + end)
            own = end * (1 - end) + (m - 1) * (q1 - end**2) + (n - 1) * (q2 - end**2)
            assert abs(area - end) == pytest.approx(1.959964 * math.sqrt(own / (m * n)), rel=1e-4)


def test_a_perfect_area_of_few_users_is_not_certain():
    low, high = auc_interval(1.0, 20, 20)
    assert 0.85 < low < 0.95
    assert high == 1


def test_the_interval_of_the_area_holds_the_true_one_as_often_as_it_says():
    rng = np.random.default_rng(5)
    for shift in (0.0, 1.0):
        truth = 0.5 * (1 + math.erf(shift / 2))
        held = 0
        for _ in range(400):
            low, high = auc_interval(
                auc(rng.standard_normal(30) + shift, rng.standard_normal(30)), 30, 30
            )
            held += low <= truth <= high
        assert held >= 368  # 92 %: a true 95 % fails this once in 300 runs


# Paired tests.


def counted(differences: list[float]) -> float:
    """The p value by going through every way the coins can fall."""
    observed = abs(math.fsum(differences))
    falls = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = (abs(math.fsum(s * d for s, d in zip(f, differences, strict=True))) for f in falls)
    return sum(each >= observed - 1e-9 for each in sums) / len(falls)


@given(st.lists(st.integers(-4, 4).map(lambda each: each / 8), min_size=1, max_size=8))
def test_few_pairs_are_counted_exactly(differences: list[float]) -> None:
    assert randomization_test(np.array([differences]))[0] == pytest.approx(counted(differences))


def test_equal_differences_have_the_closed_form() -> None:
    for queries in (1, 5, 12, 16):
        assert randomization_test(np.full((1, queries), 0.1))[0] == pytest.approx(2 / 2**queries)
    assert randomization_test(np.zeros((1, 7)))[0] == 1


def test_random_signs_come_near_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(3).standard_normal((20, 14)) + 0.4
    exact = randomization_test(differences)
    monkeypatch.setattr(statistics, "EXACT_PAIRS", 0)
    sampled = randomization_test(differences)
    assert np.abs(sampled - exact).max() < 4 * math.sqrt(0.25 / statistics.PERMUTATIONS)
    assert (sampled > 0).all()


def test_many_tests_get_more_random_signs_so_that_one_can_be_significant() -> None:
    differences = np.random.default_rng(0).standard_normal((400, 30))
    differences[0] = 1.0
    adjusted = holm(randomization_test(differences))
    assert adjusted[0] < ALPHA
    assert (adjusted[1:] > ALPHA).all()


def test_holm_agrees_with_its_definition() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.4, 0.9])) == pytest.approx([0.8, 0.9])
    assert holm(np.array([])).shape == (0,)


def test_under_the_null_a_family_rarely_makes_a_claim() -> None:
    rng = np.random.default_rng(1)
    families, tests, queries = 400, 12, 10
    p = randomization_test(rng.standard_normal((families * tests, queries))).reshape(
        families, tests
    )
    wrong = sum(bool((holm(each) <= ALPHA).any()) for each in p) / families
    without = (p <= ALPHA).any(axis=1).mean()
    reach = 3 * math.sqrt(0.05 * 0.95 / families)
    assert wrong <= 0.05 + reach
    assert wrong > 0.005
    assert without > 0.3  # Uncorrected, many families would.


def test_an_effect_is_the_mean_in_standard_deviations():
    assert paired_effect(np.array([1.0, 2.0, 3.0])) == pytest.approx(2)
    assert paired_effect(np.full(5, -0.1)) == -math.inf
    assert paired_effect(np.zeros(5)) == 0
    assert math.isnan(paired_effect(np.ones(1)))
