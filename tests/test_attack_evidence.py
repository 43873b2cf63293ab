"""Evidence by exact laws and boxes: the same as Bayes by hand; and which kind there is for whom."""

from __future__ import annotations

import numpy as np
import pytest
from fixed_mechanism import Fixed
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.special import logsumexp

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms import kind, names
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks import exact_laws, pair_sums
from sottovoce.privacy.attacks.evidence import unknown_column
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.exact_laws import Boxes, ExactLaw
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.types import Float64Array, IntArray

WORDS = [name for name in names() if kind(name).by_word]
LAWS = [
    "santext:epsilon=1.5",
    "santext:epsilon=2,sensitive=0.5",
    "santext:epsilon=2,sensitive=0.5,p=1",
    "santext:epsilon=90",
    "tem:epsilon=1.5",
    "tem:epsilon=2,gamma=1",
]
BOXES = [
    "custext:epsilon=3,k=6",
    "custext:compat=knn,k=5",
    "wbb:k=2,n=9,epsilon=5",
    "wbb:k=1,n=7,compat=repo",
]


def space_of(size: int, dimension: int, seed: int, released: float = 1.0) -> WordSpace:
    """Made-up words; some of them are never released."""
    rng = Generator(PCG64(seed))
    vectors = 2 * rng.standard_normal((size, dimension)) + 1
    vectors[1] = vectors[0]  # Two words may share a place.
    space = WordSpace.from_arrays([f"word{i}" for i in range(size)], vectors)
    if released == 1.0:
        return space
    ids = np.sort(rng.choice(size, round(released * size), replace=False))
    return space.with_output(OutputVocabulary("part", ids))


def by_hand(mech: WordMechanism, places: list[IntArray]) -> Float64Array:
    """Sums of log-probabilities, word by word and draw by draw."""
    law = mech.log_probabilities(np.arange(mech.space.size))
    assert law is not None
    return np.array(
        [[sum(law[word, y] for y in ids) for word in range(len(law))] for ids in places]
    )


def assert_same_rows(rows: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to a constant of each row, and impossible words the same."""
    assert rows.dtype == np.float32
    assert rows.shape == expected.shape
    np.testing.assert_array_equal(np.isneginf(rows), np.isneginf(expected))
    for row, exact in zip(rows, expected, strict=True):
        possible = np.isfinite(exact)
        shift = row[possible] - exact[possible]
        np.testing.assert_allclose(shift - shift[:1], 0, atol=2e-3)


spaces = st.builds(
    space_of,
    size=st.integers(20, 60),
    dimension=st.integers(3, 5),
    seed=st.integers(0, 1000),
    released=st.sampled_from([1.0, 0.6]),
)


@settings(max_examples=25, deadline=None)
@given(spaces, st.sampled_from(LAWS), st.integers(1, 6), st.integers(0, 1000))
def test_exact_laws_give_bayes_by_hand(space, spec, n, seed):
    mech = mechanism(spec, space=space)
    rng = Generator(PCG64(seed))
    truth = rng.integers(space.size, size=5)
    places = [*mech.sample(truth, n, rng).T, np.empty(0, dtype=np.int64)]
    evidence = evidence_for(mech, "independent")
    assert isinstance(evidence, ExactLaw)
    rows, expected = evidence.log_likelihood(places), by_hand(mech, places)
    assert_same_rows(rows, expected)
    assert not rows[-1].any()
    # And so is the posterior, whatever the prior.
    prior = rng.dirichlet(np.ones(space.size))
    posterior = rows[:-1] + np.log(prior)
    posterior -= logsumexp(posterior, axis=1, keepdims=True)
    exact = prior * np.exp(expected[:-1] - expected[:-1].max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        np.exp(posterior), exact / exact.sum(axis=1, keepdims=True), atol=2e-3
    )


@settings(max_examples=25, deadline=None)
@given(spaces, st.sampled_from(BOXES), st.integers(1, 6), st.integers(0, 1000))
def test_boxes_give_what_brute_force_gives(space, spec, n, seed):
    mech = mechanism(spec, space=space)
    rng = Generator(PCG64(seed))
    places = list(mech.sample(rng.integers(space.size, size=6), n, rng).T)
    # Words drawn for different words: often no box holds all of them.
    places += [space.output.ids[rng.integers(len(space.output), size=4)], places[0][:0]]
    evidence = evidence_for(mech, "independent")
    assert isinstance(evidence, Boxes)
    rows = evidence.log_likelihood(places)
    assert_same_rows(rows, by_hand(mech, places))
    assert not rows[-1].any()


@pytest.mark.parametrize("spec", [*LAWS, *BOXES])
def test_the_true_word_is_always_possible(spec):
    mech = mechanism(spec, space=space_of(60, 4, 5, 0.6))
    truth = np.arange(60)
    rows = evidence_for(mech, "independent").log_likelihood(
        list(mech.sample(truth, 8, Generator(PCG64(1))).T)
    )
    assert np.isfinite(rows[truth, truth]).all()


@pytest.mark.parametrize("spec", ["santext:epsilon=1.5", "custext:epsilon=3,k=6", "tem"])
def test_places_do_not_depend_on_each_other(spec):
    mech = mechanism(spec, space=space_of(50, 4, 2))
    places = list(mech.sample(np.arange(12), 5, Generator(PCG64(2))).T)
    evidence = evidence_for(mech, "independent")
    together = evidence.log_likelihood(places)
    for size in (1, 5):
        parts = [evidence.log_likelihood(places[at : at + size]) for at in range(0, 12, size)]
        np.testing.assert_allclose(np.concatenate(parts), together, atol=1e-4)
    assert evidence.log_likelihood([]).shape == (0, 50)


@pytest.mark.parametrize("released", [1.0, 0.6])
def test_blocks_of_words_do_not_matter(monkeypatch, released):
    mech = mechanism("santext:epsilon=1.5", space=space_of(60, 4, 3, released))
    places = list(mech.sample(np.arange(10), 4, Generator(PCG64(4))).T)
    whole = ExactLaw(mech).log_likelihood(places)
    monkeypatch.setattr(pair_sums, "WORDS_AT_A_TIME", 7)
    monkeypatch.setattr(exact_laws, "WORDS_AT_A_TIME", 11)
    np.testing.assert_allclose(ExactLaw(mech).log_likelihood(places), whole, atol=1e-4)


def test_progress_counts_up_to_the_end():
    mech = mechanism("santext", space=space_of(60, 4, 3))
    made, read = [], []
    evidence = evidence_for(mech, "independent", progress=lambda *counts: made.append(counts))
    evidence.log_likelihood([np.array([3])], progress=lambda *counts: read.append(counts))
    assert made[-1] == read[-1] == (60, 60)


def test_a_constant_release_tells_nothing():
    mech = Fixed(space_of(30, 3, 1), word=7)
    evidence = evidence_for(mech, "independent")
    assert evidence.kind == "exact law"
    rows = evidence.log_likelihood([np.full(n, 7) for n in (1, 5)])
    np.testing.assert_array_equal(rows, np.zeros((2, 30)))


def test_a_release_of_the_truth_tells_it():
    mech = Fixed(space_of(30, 3, 1))
    rows = evidence_for(mech, "independent").log_likelihood([np.full(3, i) for i in range(30)])
    np.testing.assert_array_equal(np.isfinite(rows), np.eye(30, dtype=bool))


def test_a_release_of_the_truth_tells_it_without_a_law(small_space):
    evidence = evidence_for(Fixed(small_space, announced=False), "independent", rng=3)
    assert evidence.kind == "simulated law"
    words = np.arange(0, 2000, 50)
    rows = evidence.log_likelihood([np.full(3, i) for i in words])
    np.testing.assert_array_equal(rows.argmax(axis=1), words)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 30), st.floats(0.1, 50))
def test_an_unknown_word_is_the_mean_of_all_released_ones(seed, released, scale):
    rng = Generator(PCG64(seed))
    rows = (scale * rng.standard_normal((4, 30))).astype(np.float32)
    rows[rng.random(rows.shape) < 0.3] = -np.inf
    rows[0] = -np.inf
    rows[1] = 0
    output = np.sort(rng.choice(30, released, replace=False))
    column = unknown_column(rows, output)
    assert column.dtype == np.float32
    with np.errstate(divide="ignore"):
        expected = np.log(np.mean(np.exp(rows[:, output].astype(np.float64)), axis=1))
    np.testing.assert_allclose(column, expected, rtol=1e-5, atol=1e-5)
    assert column[1] == 0


@pytest.mark.parametrize("name", WORDS)
def test_the_kind_follows_from_what_a_mechanism_can_do(small_space, name):
    mech = mechanism(name, space=small_space)
    evidence = evidence_for(mech, "independent", rng=1)
    expected = "simulated law"
    if mech.has_law:
        expected = "boxes" if mech.box_size else "exact law"
    assert evidence.kind == expected
    if mech.supports_once:
        evidence = evidence_for(mech, "once", rng=1)
        assert evidence.kind == "one noisy point"
        evidence.check_variants(20, 20)
        with pytest.raises(UsageError, match="all variants"):
            evidence.check_variants(19, 20)
    else:
        evidence.check_variants(1, 20)
        with pytest.raises(UsageError, match="independent"):
            evidence_for(mech, "once")


def test_there_is_none_for_texts_as_a_whole(wordnet):
    aea = mechanism("aea", wordnet=wordnet)
    with pytest.raises(UsageError, match="log of queries"):
        evidence_for(aea, "independent")


def test_a_release_has_a_name(small_space):
    with pytest.raises(UsageError, match="'independent' or 'once'"):
        evidence_for(mechanism("cmp", space=small_space), "remembered")


@pytest.mark.parametrize(
    ("spec", "release"),
    [("santext", "independent"), ("wbb", "independent"), ("cmp", "independent"), ("cmp", "once")],
)
def test_ids_outside_the_space_are_refused(small_space, spec, release):
    evidence = evidence_for(mechanism(spec, space=small_space), release, rng=1)
    for wrong in (-1, 2000):
        with pytest.raises(UsageError, match="not in the space"):
            evidence.log_likelihood([np.array([3, 5]), np.array([4, wrong])])
