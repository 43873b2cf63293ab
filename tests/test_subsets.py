"""The k-subset law against its definition: every set of small pools, vectors, chi-square."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from sottovoce.errors import UsageError
from sottovoce.mechanisms.subsets import SubsetLaw

LEVEL = 1e-4
"""Chance of a false alarm; seeds are fixed, so it never flickers."""
few = settings(max_examples=20)


def all_sets(law):
    return np.array(list(combinations(range(law.size), law.k)))


def by_definition(law, hidden):
    """P(S | hidden) of every set, from the drawing itself: ordered draws, all different."""
    shares = np.full(law.size, 1.0) if law._weights is None else law._weights

    def decoys(count):
        """The probability of each set of decoys, by adding up all orders in which it can come."""
        others = [place for place in range(law.size) if place != hidden]
        chances = {
            drawn: sum(math.prod(shares[list(order)]) for order in permutations(drawn))
            for drawn in combinations(others, count)
        }
        total = sum(chances.values())
        return {frozenset(drawn): chance / total for drawn, chance in chances.items()}

    with_hidden, without = decoys(law.k - 1), decoys(law.k)
    return [
        law.p * with_hidden[members - {hidden}]
        if hidden in members
        else (1 - law.p) * without[members]
        for members in map(frozenset, all_sets(law).tolist())
    ]


@st.composite
def laws(draw):
    size = draw(st.integers(3, 6))
    k = draw(st.integers(1, min(3, size - 1)))
    weights = draw(
        st.none() | st.lists(st.floats(0.05, 20), min_size=size, max_size=size).map(np.array)
    )
    p = draw(st.floats(0.5, 0.99))
    assume(k / size <= p)
    try:
        return SubsetLaw(size, k, p, weights)
    except UsageError:
        assume(False)


# The formula


@pytest.mark.parametrize(
    ("size", "k", "p", "epsilon"),
    [(5, 2, 0.9, math.log(13.5)), (120_601, 20, 0.9, 10.9016), (1_000_000, 50, 0.8, 11.2897)],
)
def test_epsilon_of_the_vectors(size, k, p, epsilon):
    assert SubsetLaw(size, k, p).epsilon == pytest.approx(epsilon, abs=5e-5)
    assert SubsetLaw(size, k, p, np.full(size, 3.0)).epsilon == pytest.approx(epsilon, abs=5e-5)


def test_probabilities_and_posterior_of_the_smallest_vector():
    law = SubsetLaw(5, 2, 0.9)
    (chances,) = np.exp(law.log_law(np.array([[1, 3]]), np.arange(5)))
    assert chances == pytest.approx([1 / 60, 0.225, 1 / 60, 0.225, 1 / 60])
    assert law.posterior(np.array([3, 1])) == pytest.approx([1 / 30, 0.45, 1 / 30, 0.45, 1 / 30])


@few
@given(laws())
def test_the_law_is_what_the_drawing_says(law):
    table = np.exp(law.log_law(all_sets(law), np.arange(law.size)))
    assert table.sum(axis=0) == pytest.approx(np.ones(law.size))
    for hidden in range(law.size):
        assert table[:, hidden] == pytest.approx(np.array(by_definition(law, hidden)), rel=1e-9)


@given(laws())
def test_epsilon_is_the_largest_log_ratio_of_all_sets_and_pairs(law):
    table = law.log_law(all_sets(law), np.arange(law.size))
    widest = (table.max(axis=1) - table.min(axis=1)).max()
    assert law.epsilon == pytest.approx(widest, abs=1e-9)


@given(laws(), st.data())
def test_the_posterior_is_bayes_rule(law, data):
    prior = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=law.size, max_size=law.size)))
    members = np.array(data.draw(st.sampled_from(all_sets(law).tolist())))
    by_hand = prior * np.exp(law.log_law(members[None], np.arange(law.size)))[0]
    assert law.posterior(members, prior) == pytest.approx(by_hand / by_hand.sum())


@given(laws())
def test_under_the_matched_prior_all_members_are_alike(law):
    for members in all_sets(law):
        posterior = law.posterior(members)
        assert posterior[members] == pytest.approx(np.full(law.k, posterior[members[0]]), rel=1e-9)


@given(laws(), st.data())
def test_other_priors_move_members_by_what_they_believe_and_nothing_else(law, data):
    """The odds of two members are those of the prior over those of the matched one."""
    assume(law.k > 1)
    prior = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=law.size, max_size=law.size)))
    for members in all_sets(law):
        one, two = members[:2]
        posterior, matched = law.posterior(members, prior), law.matched_prior
        odds = (prior[one] / matched[one]) / (prior[two] / matched[two])
        assert posterior[one] / posterior[two] == pytest.approx(odds, rel=1e-8)


def test_popular_strings_and_rare_ones_are_hidden_alike():
    """With decoys by popularity; uniform ones give a popular string away, or a rare one."""
    popularity = 1 / np.arange(1, 2001)
    members = np.array([3, 30, 200, 400, 600, 800, 1000, 1200, 1500, 1900])
    alike = SubsetLaw(2000, 10, 0.9, popularity).posterior(members)[members]
    assert alike == pytest.approx(np.full(10, alike[0]))
    assert alike[0] < 0.1
    uneven = SubsetLaw(2000, 10, 0.9).posterior(members, popularity)[members]
    assert uneven.max() > 0.7
    assert uneven.max() / uneven.min() > 400


# Draws


@pytest.mark.parametrize("weights", [None, [5.0, 1, 1, 2, 3, 4, 1]])
def test_draws_of_a_small_pool_follow_the_law(weights):
    law = SubsetLaw(7, 3, 0.8, None if weights is None else np.array(weights))
    rng = np.random.default_rng(1)
    numbers = {tuple(members): number for number, members in enumerate(all_sets(law).tolist())}
    for hidden in (0, 3):
        drawn = [numbers[tuple(law.draw(hidden, rng).tolist())] for _ in range(8000)]
        counts = np.bincount(drawn, minlength=len(numbers))
        chances = np.exp(law.log_law(all_sets(law), np.array([hidden])))[:, 0]
        assert stats.chisquare(counts, 8000 * chances).pvalue > LEVEL


@pytest.mark.parametrize("popular", [False, True])
def test_how_often_each_string_is_a_decoy(popular):
    weights = np.random.default_rng(5).pareto(2, 400) + 0.1 if popular else None
    law, rng, draws = SubsetLaw(400, 20, 0.9, weights), np.random.default_rng(2), 10_000
    counts = np.bincount(np.concatenate([law.draw(7, rng) for _ in range(draws)]), minlength=400)
    assert stats.binomtest(int(counts[7]), draws, 0.9).pvalue > LEVEL
    share = law.decoy_chances(7) * (19 * 0.9 + 20 * 0.1)
    scores = (np.delete(counts - draws * share, 7)) / np.sqrt(
        np.delete(draws * share * (1 - share), 7)
    )
    assert abs(scores).max() < 4.8  # Of 399 normal ones, beyond that once in 1600 runs.
    assert (scores**2).mean() == pytest.approx(1, abs=0.3)


@given(laws(), st.integers(0, 2**32))
def test_a_set_is_k_different_strings_in_ascending_order(law, seed):
    members = law.draw(seed % law.size, np.random.default_rng(seed))
    assert len(members) == law.k
    assert (np.diff(members) > 0).all()
    assert 0 <= members[0] <= members[-1] < law.size


@few
@given(laws())
def test_the_law_of_one_decoy(law):
    assume(law.k > 1)
    for hidden in range(law.size):
        chances = np.zeros(law.size)
        for members, chance in zip(all_sets(law), by_definition(law, hidden), strict=True):
            decoys = members[members != hidden]
            chances[decoys] += chance / len(decoys)
        assert law.decoy_chances(hidden) == pytest.approx(chances, abs=1e-12)


# What is refused


@pytest.mark.parametrize(
    ("size", "k", "p", "says"),
    [
        (5, 5, 0.9, "the pool has 5: take a smaller k"),
        (5, 0, 0.9, "k of at least 1"),
        (10, 4, 0.39, "p must be between 0.4"),
        (10, 4, 1.01, "p must be between 0.4"),
        (10, 4, math.nan, "p must be between 0.4"),
    ],
)
def test_impossible_parameters_are_refused(size, k, p, says):
    with pytest.raises(UsageError, match=says):
        SubsetLaw(size, k, p)


@pytest.mark.parametrize("weights", [[1, 2], [1, 2, 0, 1, 1, 1], [1, 2, math.inf, 1, 1, 1]])
def test_impossible_popularity_is_refused(weights):
    with pytest.raises(UsageError, match="positive number for each of the 6 strings"):
        SubsetLaw(6, 2, 0.9, np.array(weights, dtype=float))


def test_the_two_ends_of_p():
    assert SubsetLaw(10, 4, 0.4).epsilon == pytest.approx(0)
    certain = SubsetLaw(10, 4, 1.0)
    assert certain.epsilon == math.inf
    table = np.exp(certain.log_law(all_sets(certain), np.arange(10)))
    assert table.sum(axis=0) == pytest.approx(np.ones(10))
    assert certain.posterior(np.arange(4))[4:].max() == 0


def test_no_string_is_a_decoy_in_most_sets():
    law = SubsetLaw(100, 5, 0.9, np.array([1000.0] + [1.0] * 99))
    assert law.popularity[0] == pytest.approx(0.1)
    assert law.popularity.sum() == pytest.approx(1)


@pytest.mark.parametrize("members", [[0, 0], [0, 1, 2], [-1, 2], [3, 10]])
def test_what_is_no_set_is_refused(members):
    with pytest.raises(UsageError, match="places"):
        SubsetLaw(10, 2, 0.9).posterior(np.array(members))
