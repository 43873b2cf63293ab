"""Exact laws of the sampling mechanisms: test vectors, oracles, properties, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sottovoce import OutputVocabulary, WordSpace, mechanism, obfuscate
from sottovoce.errors import UsageError
from sottovoce.mechanisms import exponential, sampling

SPECS = [
    "santext",
    "santext:sensitive=0.5,p=0.3",
    "tem",
    "tem:gamma=1",
    "custext:k=3",
    "custext:k=2,measure=angle",
    "custext:k=3,compat=knn",
    "wbb:k=1,n=3",
    "wbb:k=2,n=2,measure=euclidean",
    "wbb:k=1,n=2,measure=product",
    "wbb:k=1,n=3,compat=repo",
    "wbb:k=0,n=3,compat=empty-box",
]


def chances(spec, space, ids=None, **parameters):
    ids = np.arange(space.size) if ids is None else np.asarray(ids)
    return np.exp(mechanism(spec, space=space, **parameters).log_probabilities(ids))


def losses(law):
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.log(law)[:, None] - np.log(law)
    return np.where(np.isnan(ratios), -np.inf, ratios).max(axis=2)


def distances(space):
    vectors = space.vectors.astype(float)
    return np.linalg.norm(vectors[:, None] - vectors, axis=2)


# Test vectors: five words in the plane


def test_santext_on_the_plane(toy):
    law = chances("santext", toy, epsilon=2)
    assert law[0] == pytest.approx([0.44872, 0.23840, 0.10909, 0.05710, 0.14670], abs=1e-5)
    divergence = losses(law)
    assert divergence[0, 1] == pytest.approx(0.70860, abs=1e-5)
    assert divergence[1, 0] == pytest.approx(0.55631, abs=1e-5)
    assert 2 * distances(toy)[0, 1] == pytest.approx(1.26491, abs=1e-5)
    with np.errstate(invalid="ignore"):
        tight = divergence / distances(toy)
    assert np.nanmax(tight) == pytest.approx(1.23880, abs=1e-5)
    assert np.nanargmax(tight) == 4 * 5 + 1  # f against b
    normalisers = -np.log(np.diag(law))
    assert normalisers == pytest.approx([0.80136, 0.87751, 0.74486, 0.51211, 0.58996], abs=1e-5)
    assert (np.cumsum(np.sort(law[0])[::-1]) >= 0.9).argmax() + 1 == 4


def test_tem_on_the_plane(toy):
    law = chances("tem", toy, epsilon=2, gamma=1)
    assert law[0] == pytest.approx([0.37952, 0.20163, 0.13962, 0.13962, 0.13962], abs=1e-5)
    assert mechanism("tem", space=toy, epsilon=2).radius == pytest.approx(8.29305, abs=1e-5)


def test_custext_on_the_plane(toy):
    law = chances("custext", toy, k=2, epsilon=1)
    keep, swap = 0.62246, 0.37754
    assert law == pytest.approx(
        np.array(
            [
                [keep, swap, 0, 0, 0],
                [swap, keep, 0, 0, 0],
                [0, 0, keep, swap, 0],
                [0, 0, swap, keep, 0],
                [0, 0, 0, 0, 1],
            ]
        ),
        abs=1e-5,
    )
    three = toy.with_output(OutputVocabulary("a b f", np.array([0, 1, 4])))
    law = chances("custext", three, [0, 1, 4], k=3, epsilon=1)[:, [0, 1, 4]]
    assert law[0] == pytest.approx([0.42370, 0.31932, 0.25699], abs=1e-5)
    assert law[1] == pytest.approx([0.32373, 0.42095, 0.25532], abs=1e-5)
    assert law[2] == pytest.approx([0.28124, 0.27136, 0.44740], abs=1e-5)


@pytest.mark.parametrize(
    ("measure", "epsilon", "compat", "expected"),
    [
        ("angle", 2, "none", {"f": 0.39776, "b": 0.36387, "c": 0.23836}),
        ("angle", 20, "none", {"f": 0.70603, "b": 0.28976, "c": 0.00422}),
        ("angle", 20, "repo", {"f": 0.46422, "b": 0.40604, "c": 0.12973}),
        ("euclidean", 2, "none", {"b": 0.43542, "f": 0.31101, "c": 0.25356}),
        ("product", 2, "none", {"f": 0.38749, "b": 0.37503, "c": 0.23747}),
    ],
)
def test_wbb_on_the_plane(toy, measure, epsilon, compat, expected):
    chosen = mechanism("wbb", space=toy, k=1, n=3, measure=measure, epsilon=epsilon, compat=compat)
    ((box, law),) = chosen.laws(np.array([0]))
    assert toy.words(box) == list(expected)  # nearest first
    assert np.exp(law) == pytest.approx(list(expected.values()), abs=1e-5)


def test_an_empty_safe_box_lets_a_word_stand_for_itself(toy):
    chosen = mechanism("wbb", space=toy, k=0, n=2, epsilon=2, compat="empty-box")
    ((box, law),) = chosen.laws(np.array([0]))
    safe = mechanism("wbb", space=toy, k=1, n=1)
    ((nearest, _),) = safe.laws(np.array([0]))
    assert box.tolist() == [0, nearest[0]]
    # Two distances, standardised, are -1 and 1: Eq. 4 and 6 by hand.
    near, far = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))
    assert np.exp(law) == pytest.approx(
        np.array([1, math.exp(far - near)]) / (1 + math.exp(far - near))
    )
    assert any("k = 0" in caveat for caveat in chosen.guarantee.caveats)


def test_wbb_utility_on_the_plane(toy):
    chosen = mechanism("wbb", space=toy, k=1, n=3)
    rows = chosen._distances.rows(np.array([0]))[:, [4, 1, 2]]
    assert chosen.utility(rows)[0] == pytest.approx([0.71067, 0.62161, 0.19861], abs=1e-5)
    assert chosen.utility(np.ones((1, 3))) == pytest.approx(0.5)


# Draws agree with the law


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_million_draws_follow_the_law(toy, spec, epsilon):
    chosen = mechanism(spec, space=toy, epsilon=epsilon)
    for word in (0, 3):
        drawn = chosen.sample(np.full(1000, word), 1000, np.random.default_rng(5))
        agrees(drawn.ravel(), chances(spec, toy, [word], epsilon=epsilon)[0])


def agrees(drawn, law):
    """Chi-square over the words expected often enough; the rest of them together."""
    seen = np.bincount(drawn, minlength=len(law))
    assert not seen[law == 0].any()
    expected = law * len(drawn)
    often = expected >= 20
    seen = np.append(seen[often], seen[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    kept = expected > 0
    if kept.sum() > 1:
        assert stats.chisquare(seen[kept], expected[kept]).pvalue > 1e-4


@pytest.mark.parametrize("spec", ["santext", "tem", "tem:gamma=2", "santext:sensitive=0.6"])
@pytest.mark.parametrize("epsilon", [0.3, 1.5, 4.0, 12.0])
def test_words_beyond_the_tables_are_drawn_exactly(small_space, monkeypatch, spec, epsilon):
    """With small tables most draws go through proposals, and the law stays the same."""
    monkeypatch.setattr(exponential, "NEAR", 25)
    monkeypatch.setattr(exponential, "SAMPLED", 200)
    chosen = mechanism(spec, space=small_space, epsilon=epsilon)
    sampling.forget(small_space)
    for word in (3, 1500):
        drawn = chosen.sample(np.full(1000, word), 300, np.random.default_rng(1))
        agrees(drawn.ravel(), chances(spec, small_space, [word], epsilon=epsilon)[0])
    assert np.isfinite(chosen.tables._reach).all()
    sampling.forget(small_space)


@pytest.mark.parametrize("spec", ["santext", "tem:gamma=2"])
def test_words_that_accept_no_proposal_are_drawn_exactly(small_space, monkeypatch, spec):
    """Full rows as the last resort: here without any proposal before."""
    monkeypatch.setattr(exponential, "NEAR", 25)
    monkeypatch.setattr(exponential, "SAMPLED", 200)
    monkeypatch.setattr(exponential, "ATTEMPTS", 0)
    chosen = mechanism(spec, space=small_space, epsilon=1.0)
    sampling.forget(small_space)
    drawn = chosen.sample(np.full(200, 7), 40, np.random.default_rng(1))
    agrees(drawn.ravel(), chances(spec, small_space, [7], epsilon=1.0)[0])
    sampling.forget(small_space)


def test_tem_is_the_gumbel_algorithm_of_its_paper(toy):
    """The published algorithm, noise and all, as an oracle for the closed form."""
    epsilon, gamma, repeats = 2.0, 1.2, 400_000
    rng = np.random.default_rng(3)
    far = distances(toy)
    for word in range(toy.size):
        near, outside = far[word] <= gamma, np.flatnonzero(far[word] > gamma)
        scores = -far[word][near]
        if len(outside):
            scores = np.append(scores, -gamma + 2 / epsilon * np.log(len(outside)))
        noisy = scores + rng.gumbel(scale=2 / epsilon, size=(repeats, len(scores)))
        candidates = np.append(np.flatnonzero(near), -1)
        drawn = candidates[noisy.argmax(axis=1)]
        beyond = drawn == -1
        drawn[beyond] = rng.choice(outside, beyond.sum()) if len(outside) else 0
        agrees(drawn, chances("tem", toy, [word], epsilon=epsilon, gamma=gamma)[0])


# Properties over random spaces


@st.composite
def spaces(draw):
    size, dimension = draw(st.integers(5, 24)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.normal(size=(size, dimension)) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    if draw(st.booleans()):
        vectors[1] = vectors[0]  # two words in one place
    return WordSpace.from_arrays([f"w{i}" for i in range(size)], vectors)


epsilons = st.sampled_from([0.01, 0.7, 3.0, 30.0, 1000.0])


@pytest.mark.parametrize("spec", SPECS)
@given(space=spaces(), epsilon=epsilons)
def test_rows_are_laws_over_the_output_vocabulary(spec, space, epsilon):
    half = np.arange(0, space.size, 2)
    for narrowed in (space, space.with_output(OutputVocabulary("half", half))):
        try:
            law = chances(spec, narrowed, epsilon=epsilon)
        except UsageError:
            assert spec.startswith("wbb")  # not enough words
            continue
        assert law.sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert not np.delete(law, narrowed.output.ids, axis=1).any()


@pytest.mark.parametrize("spec", ["santext", "tem", "tem:gamma=1"])
@given(space=spaces(), epsilon=epsilons)
def test_no_two_words_are_further_apart_than_the_metric_says(spec, space, epsilon):
    chosen = mechanism(spec, space=space, epsilon=epsilon)
    law = chosen.log_probabilities(np.arange(space.size))
    assert np.isfinite(law).all()  # every word can give every word, without underflow
    ratios = (law[:, None] - law).max(axis=2)
    far = distances(space)
    assert (ratios <= epsilon * far + 1e-6).all()
    if spec != "santext":
        assert (ratios <= epsilon * chosen.radius + 1e-6).all()


@given(space=spaces(), epsilon=epsilons, k=st.integers(2, 6))
def test_inside_a_group_epsilon_holds_and_groups_are_a_partition(space, epsilon, k):
    law = chances("custext", space, k=k, epsilon=epsilon)
    support = np.isfinite(
        mechanism("custext", space=space, k=k, epsilon=epsilon).log_probabilities(
            np.arange(space.size)
        )
    )
    same = (support[:, None] == support).all(axis=2)
    assert (support.any(axis=0)).all()
    assert (same == (support[:, None] & support).any(axis=2)).all()  # the same group, or apart
    assert set(support.sum(axis=1)) <= {k, space.size % k, space.size}
    assert (losses(law)[same] <= epsilon + 1e-9).all()


@given(space=spaces(), epsilon=epsilons, k=st.integers(1, 3), n=st.integers(1, 4))
def test_wbb_never_releases_the_safe_box(space, epsilon, k, n):
    if k + n > space.size:
        return
    chosen = mechanism("wbb", space=space, k=k, n=n, epsilon=epsilon, measure="euclidean")
    far = distances(space)
    for word, (box, _) in enumerate(chosen.laws(np.arange(space.size))):
        assert word not in box
        assert len(set(box)) == n
        nearer = np.sort(np.delete(far[word], word))[: k - 1]
        assert (far[word][box] >= nearer.max(initial=0) - 1e-6).all()


@pytest.mark.parametrize(
    "spec", ["santext", "tem", "wbb:k=1,n=3,measure=euclidean", "custext:k=3,compat=knn"]
)
@given(space=spaces(), seed=st.integers(0, 1000))
def test_the_order_of_the_vocabulary_does_not_matter(spec, space, seed):
    if np.unique(distances(space).round(6)).size < space.size * (space.size - 1) // 2:
        return  # ties are broken by order
    order = np.random.default_rng(seed).permutation(space.size)
    shuffled = WordSpace.from_arrays(
        space.words(order), space.vectors[order], name="the same words in another order"
    )
    law = chances(spec, space, epsilon=2.0)
    assert chances(spec, shuffled, epsilon=2.0) == pytest.approx(
        law[np.ix_(order, order)], abs=1e-6
    )


def test_limits_of_epsilon(toy):
    for spec in ("santext", "tem"):
        assert chances(spec, toy, epsilon=1e-6) == pytest.approx(0.2, abs=1e-5)
    assert chances("santext", toy, epsilon=1000) == pytest.approx(np.eye(5), abs=1e-9)
    # Whatever epsilon, TEM leaves a word with probability beta where it has no neighbours.
    far = WordSpace.from_arrays(["x", "y", "z"], [[0.0], [100.0], [200.0]])
    assert np.diag(chances("tem", far, epsilon=1000, beta=0.01)) == pytest.approx(0.99)
    assert chances("custext", toy, k=5, epsilon=1e-6) == pytest.approx(0.2, abs=1e-5)
    assert chances("wbb", toy, k=1, n=4, epsilon=1e-6)[0] == pytest.approx(
        [0, 0.25, 0.25, 0.25, 0.25], abs=1e-5
    )
    nearest = chances("wbb", toy, k=1, n=4, epsilon=1000)[0]
    assert nearest[4] == pytest.approx(1, abs=1e-6)  # f, by angle


@pytest.mark.parametrize("epsilon", [1, 50, 1000])
def test_nothing_underflows(default_space, epsilon):
    for spec in ("santext", "tem"):
        law = mechanism(spec, space=default_space, epsilon=epsilon).log_probabilities(
            np.array([0, 20_000])
        )
        assert np.isfinite(law).all()
        assert np.exp(law).sum(axis=1) == pytest.approx(1, abs=1e-12)


# SanText+ and CusText+


def test_santext_plus_protects_the_rare_words(toy):
    law = chances("santext", toy, epsilon=2, sensitive=0.4, p=0.3)  # e and f are sensitive
    assert np.diag(law)[:3] == pytest.approx(0.7)
    assert law[3:, :3] == pytest.approx(0)
    alone = chances(
        "santext", toy.with_output(OutputVocabulary("e f", np.array([3, 4]))), epsilon=2
    )
    assert law[:3, 3:] == pytest.approx(0.3 * alone[:3, 3:])
    assert law[3:, 3:] == pytest.approx(alone[3:, 3:])
    stated = mechanism("santext", space=toy, sensitive=0.4, p=0.3).guarantee
    assert stated.notion == "none"
    assert "only the rarest 40% of the words have metric privacy" in stated.caveats[0]
    assert "as it is with probability 0.7" in stated.caveats[0]


def test_custext_plus_leaves_function_words_in_clear(default_space):
    chosen = mechanism("custext:keep_stop_words=true", space=default_space, epsilon=1)
    (variant,) = obfuscate("the cancer of the skin", chosen, rng=1)
    assert variant.split()[0::3] == ["the", "the"]
    assert chosen.protects == "content"


# Wrong use, and what is said about it


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("wbb:k=3,n=3", "k \\+ n = 6 words do not exist: the output vocabulary has 5"),
        ("wbb:k=0,n=3", "k is 1 or more"),
        ("wbb:k=1,n=0", "n is 1 or more"),
        ("custext:k=1", "would release every word as it is"),
        ("santext:sensitive=0", "above 0 and up to 1"),
        ("santext:p=0", "above 0 and up to 1"),
        ("tem:beta=0", "between 0 and 1"),
        ("tem:gamma=-1", "0 or more"),
        ("tem:gamma=wide", "must be a number"),
    ],
)
def test_wrong_parameters_are_refused(toy, spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, space=toy)


def test_a_word_alone_in_its_group_is_said(toy):
    caveats = mechanism("custext:k=2", space=toy).guarantee.caveats
    assert any("alone in its group" in caveat for caveat in caveats)
    assert not any("alone" in c for c in mechanism("custext:k=3", space=toy).guarantee.caveats)


def test_guarantees_say_what_holds(toy):
    def stated(spec):
        return mechanism(spec, space=toy).guarantee

    assert stated("santext").metric == stated("tem").metric == "euclidean"
    assert stated("custext:k=2").notion == "group"
    for spec in ("custext:k=2,compat=knn", "wbb:k=1,n=3", "wbb:k=1,n=3,compat=repo"):
        assert stated(spec).notion == "none"
    assert (
        "theorem of epsilon-differential privacy does not hold" in stated("wbb:k=1,n=3").caveats[0]
    )
    facts = mechanism("tem:epsilon=7", space=toy).facts()
    assert facts["nats between any two words, at most"] == pytest.approx(
        2 * np.log(0.999 * 4 / 0.001)
    )


# Tables


def test_tables_are_shared_and_bounded(small_space, monkeypatch):
    one = mechanism("santext", space=small_space, epsilon=2)
    assert one.tables is mechanism("santext:epsilon=2", space=small_space).tables
    assert one.tables is not mechanism("santext:epsilon=3", space=small_space).tables
    monkeypatch.setattr(sampling, "BYTES", 100_000)
    drawn = [
        one.sample(np.arange(a, a + 50), 2, np.random.default_rng(a)) for a in range(0, 500, 50)
    ]
    assert one.tables._starts[-1] * sampling.BYTES_PER_CANDIDATE < 100_000 + 50 * 2000 * 12
    monkeypatch.undo()
    again = [
        one.sample(np.arange(a, a + 50), 2, np.random.default_rng(a)) for a in range(0, 500, 50)
    ]
    assert np.array_equal(drawn, again)
    for epsilon in range(3, 9):
        mechanism("santext", space=small_space, epsilon=epsilon).sample(
            np.arange(3), 1, np.random.default_rng(0)
        )
    assert len(sampling._kept[small_space]) == sampling.MECHANISMS_PER_SPACE


def test_what_was_met_before_changes_no_draw(small_space):
    ids = np.arange(300)
    fresh = mechanism("santext", space=small_space, epsilon=1.5)
    sampling.forget(small_space)
    first = fresh.sample(ids, 3, np.random.default_rng(1))
    sampling.forget(small_space)
    for word in (5, 250, 7):
        fresh.sample(np.array([word]), 1, np.random.default_rng(9))
    assert np.array_equal(first, fresh.sample(ids, 3, np.random.default_rng(1)))


@pytest.mark.parametrize("count", [2049, 2052, 2100])
def test_vocabularies_hardly_larger_than_a_table(count):
    vectors = np.random.default_rng(1).normal(size=(count, 3))
    space = WordSpace.from_arrays([f"w{i}" for i in range(count)], vectors)
    chosen = mechanism("santext", space=space, epsilon=1.0)
    drawn = chosen.sample(np.full(500, 3), 40, np.random.default_rng(2))
    agrees(drawn.ravel(), chances("santext", space, [3], epsilon=1.0)[0])


def test_many_words_in_one_place_are_drawn_exactly():
    """Half of the words share a vector, as unknown words do in some files."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(6000, 5))
    vectors[3000:] = vectors[3000]
    space = WordSpace.from_arrays([f"w{i}" for i in range(6000)], vectors)
    chosen = mechanism("santext", space=space, epsilon=1.5)
    for word in (0, 17, 500, 2999, 4000):
        drawn = chosen.sample(np.full(1000, word), 30, np.random.default_rng(word)).ravel()
        together = np.exp(chosen.log_probabilities(np.array([word])))[0, 3000:].sum()
        share = (drawn >= 3000).mean()
        assert share == pytest.approx(together, abs=5 * np.sqrt(together / len(drawn)) + 1e-4)


def test_santext_plus_keeps_words_as_often_as_it_should_on_full_rows_too(small_space, monkeypatch):
    monkeypatch.setattr(exponential, "ATTEMPTS", 0)
    chosen = mechanism("santext:sensitive=0.5,p=0.9", space=small_space, epsilon=1.0)
    drawn = chosen.sample(np.full(100, 7), 30, np.random.default_rng(1))
    assert (drawn == 7).mean() == pytest.approx(0.1, abs=0.03)
