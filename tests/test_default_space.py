"""Figures of the published mechanisms on the real default space."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sottovoce import TextPipeline, mechanism

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sampled(default_space):
    """200 words spread evenly from the most to the least frequent."""
    return np.linspace(0, default_space.size - 1, 200).astype(np.int64)


def unchanged(chosen, ids, repeats):
    """N_w: how often a word comes back as itself."""
    return float((chosen.sample(ids, repeats, np.random.default_rng(1)) == ids).mean())


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(5, 0.012), (10, 0.247), (12.5, 0.517), (15, 0.754), (17.5, 0.888), (20, 0.948)],
)
def test_cmp_returns_words_as_often_as_it_should(default_space, sampled, epsilon, expected):
    chosen = mechanism("cmp", space=default_space, epsilon=epsilon)
    assert unchanged(chosen, sampled, 25) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        (10, 0.11),
        (15, 0.24),
        (20, 0.26),
        (30, 0.27),
        (50, 0.30),
        (100, 0.38),
        (300, 0.61),
        (1000, 0.83),
    ],
)
def test_vickrey_returns_words_as_often_as_it_should(default_space, sampled, epsilon, expected):
    chosen = mechanism("vickrey-cmp", space=default_space, epsilon=epsilon)
    assert unchanged(chosen, sampled, 25) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("epsilon", "expected"), [(1, 0.0026), (2, 0.165), (3, 0.877), (5, 0.997)])
@pytest.mark.parametrize("spec", ["santext", "tem"])
def test_exponential_mechanisms_switch_within_a_narrow_range(
    default_space, spec, epsilon, expected
):
    """Mean chance to come back; ``expected`` is SanText's exact mean over all 33,849 words."""
    ids = np.linspace(0, default_space.size - 1, 600).astype(np.int64)
    law = mechanism(spec, space=default_space, epsilon=epsilon).log_probabilities(ids)
    assert np.exp(law[np.arange(600), ids]).mean() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(1, 49.7), (5, 43.1), (10, 28.3), (20, 11.7), (50, 4.4)]
)
def test_words_among_which_wbb_effectively_chooses(default_space, sampled, epsilon, expected):
    laws = mechanism("wbb:k=4,n=50", space=default_space, epsilon=epsilon).laws(sampled)
    entropies = [-(np.exp(law) * law).sum() for _, law in laws]
    assert np.exp(np.mean(entropies)) == pytest.approx(expected, rel=0.05)


def test_wbb_as_its_code_draws_ignores_epsilon(default_space, sampled):
    for epsilon in (1, 50):
        chosen = mechanism("wbb:k=4,n=50,compat=repo", space=default_space, epsilon=epsilon)
        entropies = [-(np.exp(law) * law).sum() for _, law in chosen.laws(sampled)]
        assert np.exp(np.mean(entropies)) == pytest.approx(45.9, rel=0.02)


def test_custext_groups_hold_similar_words(default_space):
    chosen = mechanism("custext", space=default_space)
    ((group, _),) = chosen.laws(default_space.ids(["cancer"]))
    assert len(group) == 20
    assert {"cancer", "tumor", "chemotherapy", "leukemia"} <= set(default_space.words(group))


def test_many_independent_variants_give_a_word_away(default_space, sampled):
    """The figure of the documentation: the mode of twenty draws at epsilon 10."""
    chosen = mechanism("cmp", space=default_space, epsilon=10)
    drawn = chosen.sample(sampled, 20, np.random.default_rng(0))
    guesses = np.array([np.bincount(column).argmax() for column in drawn.T])
    assert (guesses == sampled).mean() == pytest.approx(0.85, abs=0.03)


def test_geometry_of_the_default_space(default_space, sampled):
    assert default_space.dimension == 300
    assert default_space.size == 33_849
    norms = np.linalg.norm(default_space.vectors, axis=1)
    assert np.median(norms) == pytest.approx(6.62, abs=0.02)
    _, distances = default_space.nearest_output.top(default_space.vectors[sampled], 2)
    assert np.median(distances[:, 1]) == pytest.approx(4.8, abs=0.3)
    one, other = default_space.vectors[sampled], default_space.vectors[np.roll(sampled, 67)]
    assert np.median(np.linalg.norm(one - other, axis=1)) == pytest.approx(9.0, abs=0.3)
    eigenvalues = np.linalg.eigvalsh(default_space.covariance)
    assert eigenvalues[[0, -1]] == pytest.approx([0.040, 17.6], rel=0.02)


def test_few_words_of_real_queries_stay_unknown(default_space, shared_data):
    """Plain splitting leaves 32 of 232 tokens unknown; the rest are words the space lacks."""
    file = shared_data / "topics" / "dl19" / "queries.jsonl"
    queries = [json.loads(line)["text"] for line in file.read_text().splitlines()]
    plain = [token for query in queries for token in query.lower().split()]
    assert sum(token not in default_space for token in plain) == 32
    prepared = [TextPipeline().prepare(query, default_space) for query in queries]
    assert sum(each.counts.uniform for each in prepared) == 29
