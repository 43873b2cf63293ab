"""Clopper-Pearson intervals against known values and their own promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sottovoce.errors import UsageError
from sottovoce.privacy.intervals import at_least, at_most, interval


@pytest.mark.parametrize(
    ("successes", "low", "high"),
    [(0, 0, 0.003682), (5, 0.001625, 0.011629), (30, 0.02033, 0.042551)],
)
def test_known_intervals(successes, low, high):
    assert np.allclose(interval(successes, 1000), (low, high), atol=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_at_the_bounds_what_was_seen_is_just_so_unlikely(counts):
    seen, draws = counts
    low, high = at_least(seen, draws, 0.01), at_most(seen, draws, 0.01)
    assert 0 <= low <= seen / draws <= high <= 1
    if seen > 0:
        assert np.isclose(binom.sf(seen - 1, draws, low), 0.01)
    if seen < draws:
        assert np.isclose(binom.cdf(seen, draws, high), 0.01)


def test_arrays_go_element_by_element():
    low, high = interval([0, 5], [10, 20])
    assert low.shape == high.shape == (2,)
    assert low[1] == interval(5, 20)[0]


@pytest.mark.parametrize(("seen", "draws"), [(0, 0), (3, 2), (-1, 5), (np.nan, 5)])
def test_impossible_counts_are_refused(seen, draws):
    with pytest.raises(UsageError, match="no more successes than draws"):
        interval(seen, draws)
