"""Epsilons of two spaces are equivalent where words come back equally often."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce import WordSpace, mechanism
from sottovoce.errors import UsageError
from sottovoce.privacy import deniability, epsilon_with_unchanged, equivalent_epsilon
from sottovoce.privacy.equivalent_epsilons import FINENESS, shared_words


@pytest.fixture(scope="module")
def stretched(small_space):
    """The same words, four times as far from each other, in another order, without some."""
    order = np.random.default_rng(3).permutation(2000)[:1990]
    words = [f"word{number}" for number in order]
    return WordSpace.from_arrays(words, 4 * np.asarray(small_space.vectors)[order], name="far")


@pytest.mark.parametrize("name", ["cmp", "santext"])
def test_four_times_the_distance_takes_a_quarter_of_the_epsilon(name, small_space, stretched):
    near = mechanism(name, space=small_space, epsilon=6)
    match = equivalent_epsilon(near, mechanism(name, space=stretched), words=60, rng=1)
    assert match.epsilon == pytest.approx(1.5, rel=0.05)
    assert match.unchanged == pytest.approx(match.wanted, abs=0.02)
    back = equivalent_epsilon(match.measured.mechanism, near, words=60, rng=2)
    assert back.epsilon == pytest.approx(6, rel=0.05)


def test_an_exact_law_is_met_exactly_and_needs_no_draws(small_space):
    match = epsilon_with_unchanged(mechanism("santext", space=small_space), 0.3, draws=1)
    assert match.standard_error == 0
    for factor, below in ((1 / FINENESS**2, True), (FINENESS**2, False)):
        tried = mechanism("santext", space=small_space, epsilon=match.epsilon * factor)
        assert (deniability(tried, match.measured.words).unchanged.mean() < 0.3) == below


def test_the_standard_error_is_that_of_the_mean_of_counted_shares(small_space):
    cmp = mechanism("cmp", space=small_space)
    words = np.arange(40)
    match = epsilon_with_unchanged(cmp, 0.5, words, draws=50, rng=3)
    repeated = [
        deniability(match.measured.mechanism, words, draws=50, rng=seed).unchanged.mean()
        for seed in range(60)
    ]
    assert match.standard_error == pytest.approx(np.std(repeated, ddof=1), rel=0.3)


def test_the_same_words_are_compared(small_space, stretched):
    ours, theirs = shared_words(small_space, stretched, 50)
    assert small_space.words(ours) == stretched.words(theirs)
    assert len(ours) == 50
    again = shared_words(stretched, small_space, 50)
    assert (again[0] == theirs).all()
    elsewhere = WordSpace.from_arrays(["a", "b"], np.eye(2), name="other")
    with pytest.raises(UsageError, match="share none"):
        shared_words(small_space, elsewhere, 5)


def test_a_seed_repeats_the_answer(small_space, stretched):
    mechanisms = mechanism("cmp:epsilon=5", space=small_space), mechanism("cmp", space=stretched)
    one, same = (equivalent_epsilon(*mechanisms, words=20, draws=50, rng=4) for _ in range(2))
    assert one.to_dict() == same.to_dict()
    assert one.to_dict()["space"] == "far"


def test_what_cannot_be_compared_is_refused(small_space):
    cmp = mechanism("cmp", space=small_space)
    with pytest.raises(UsageError, match="between 0 and 1"):
        epsilon_with_unchanged(cmp, 1.0)
    with pytest.raises(UsageError, match="reaches no epsilon"):
        epsilon_with_unchanged(mechanism("vickrey-cmp:t=1", space=small_space), 0.999, rng=1)
    with pytest.raises(UsageError, match="rewrites whole texts"):
        equivalent_epsilon(cmp, mechanism("fea", engine=_no_engine(), wordnet=None))


def _no_engine():
    from sottovoce.mechanisms.build import resource_kind

    kind = resource_kind("engine")
    return kind.stand_in(kind.complete({}))
