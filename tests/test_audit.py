"""What the audit computes is right: exact log-ratios, cells of the plane, bounds from draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from quadrature import circle
from quadrature import plane_law as by_rays

from sottovoce import mechanism
from sottovoce.guarantees import Guarantee
from sottovoce.privacy.auditing import Finding, Witness, audit
from sottovoce.privacy.auditing.all_pairs import all_pairs, log_normalizers
from sottovoce.privacy.auditing.exact import close_words, judge, pair_losses
from sottovoce.privacy.auditing.findings import STRUCTURE, Audit, Claim, claims
from sottovoce.privacy.auditing.noise_checks import ANGLES, ERROR, plane_law, worst_of
from sottovoce.privacy.auditing.sampled_bounds import STRETCH, on_line, on_plane, sampled
from sottovoce.spaces.space import OutputVocabulary, WordSpace


def quiet(_):
    pass


def rng(seed=1):
    return Generator(PCG64(seed))


def losses(chosen, made=None):
    made = claims(chosen) if made is None else made
    return pair_losses(chosen, made, 50, rng(), quiet)


def by_hand(chosen):
    """D of every ordered pair, from full rows."""
    law = chosen.log_probabilities(np.arange(chosen.space.size))
    with np.errstate(invalid="ignore"):
        ratios = law[:, None] - law[None]
    return np.where(np.isnan(ratios), -np.inf, ratios).max(axis=2)


# Exact


def test_santext_of_the_five_words(toy):
    chosen = mechanism("santext", space=toy, epsilon=2.0)
    found = losses(chosen)
    pairs = {
        (toy.word(w), toy.word(o)): value
        for w, o, value in zip(found.words, found.others, found.losses, strict=True)
    }
    assert pairs["a", "b"] == pytest.approx(0.70860, abs=1e-5)
    assert pairs["b", "a"] == pytest.approx(0.55631, abs=1e-5)
    (claim,) = claims(chosen)
    assert claim.bounds(chosen, np.array([0]), np.array([1]))[0] == pytest.approx(1.26491, abs=1e-5)
    np.testing.assert_allclose(
        log_normalizers(chosen, np.arange(5), quiet),
        [0.80136, 0.87751, 0.74486, 0.51211, 0.58996],
        atol=1e-5,
    )
    (by_rows,) = judge(chosen, [claim], found)
    by_formula = all_pairs(chosen, claim, quiet)
    for finding in (by_rows, by_formula):
        assert finding.verdict == "CONSISTENT"
        assert finding.figures["tight_epsilon"] == pytest.approx(1.23880, abs=1e-5)
        assert finding.figures["pairs"] == 20


@pytest.mark.parametrize("spec", ["santext:epsilon=3", "tem:epsilon=3", "tem:epsilon=3,gamma=2"])
def test_the_formula_agrees_with_full_rows(small_space, spec):
    part = WordSpace.from_arrays(small_space.words(range(270)), small_space.vectors[:270])
    chosen = mechanism(spec, space=part)
    found = all_pairs(chosen, claims(chosen)[0], quiet)
    exact = by_hand(chosen)
    vectors = part.vectors.astype(np.float64)
    far = np.sqrt(((vectors[:, None] - vectors) ** 2).sum(axis=2))
    np.fill_diagonal(far, np.inf)
    assert found.figures["largest_log_ratio"] == pytest.approx(exact.max(), abs=1e-9)
    assert found.figures["tight_epsilon"] == pytest.approx((exact / far).max(), abs=1e-9)
    assert found.figures["worst_excess"] == pytest.approx((exact - 3 * far).max(), abs=1e-9)
    assert found.verdict == "CONSISTENT"


def test_a_claim_too_small_is_refuted_by_the_formula_and_the_witness_is_true(small_space):
    chosen = mechanism("santext", space=small_space, epsilon=3.0)
    found = all_pairs(chosen, Claim("stated", Guarantee("metric", 1.0, "euclidean")), quiet)
    assert found.verdict == "REFUTED"
    seen = found.witness
    ids = small_space.ids([seen.first, seen.second, seen.output.strip("'")])
    law = chosen.log_probabilities(ids[:2])[:, ids[2]]
    assert law[0] - law[1] == pytest.approx(seen.log_ratio)
    assert seen.log_ratio > seen.bound
    assert seen.bound == pytest.approx(
        np.linalg.norm(small_space.vectors[ids[0]] - small_space.vectors[ids[1]]), rel=1e-6
    )
    assert np.exp(law) == pytest.approx(seen.probabilities)
    assert 0 < found.figures["violating_share"] <= 1


def test_words_that_may_not_be_released_are_inputs_all_the_same(small_space):
    part = WordSpace.from_arrays(small_space.words(range(300)), small_space.vectors[:300])
    narrow = part.with_output(OutputVocabulary("some", np.arange(0, 300, 3)))
    chosen = mechanism("santext", space=narrow, epsilon=3.0)
    found = all_pairs(chosen, claims(chosen)[0], quiet)
    assert found.verdict == "CONSISTENT"
    assert found.figures["largest_log_ratio"] >= by_hand(chosen).max() - 1e-9
    tight = Claim("stated", Guarantee("metric", 0.5, "euclidean"))
    seen = all_pairs(chosen, tight, quiet).witness
    assert seen.log_ratio > seen.bound
    assert small_space.id(seen.output.strip("'")) % 3 == 0


@pytest.mark.slow
def test_all_pairs_of_ten_thousand_real_words(default_space):
    words = range(10_000)
    part = WordSpace.from_arrays(default_space.words(words), default_space.vectors[: len(words)])
    chosen = mechanism("santext", space=part, epsilon=2.0)
    found = all_pairs(chosen, claims(chosen)[0], quiet)
    assert found.verdict == "CONSISTENT"
    assert found.figures["tight_epsilon"] == pytest.approx(1.340, abs=0.001)
    assert found.figures["largest_log_ratio"] == pytest.approx(13.27, abs=0.01)


def test_differing_supports_are_infinitely_far_apart(toy):
    chosen = mechanism("wbb:k=1,n=3", space=toy)
    found = losses(chosen)
    for word, other, value, output in zip(
        found.words, found.others, found.losses, found.outputs, strict=True
    ):
        law = np.exp(chosen.log_probabilities(np.array([word, other])))
        assert law[0, output] > 0
        if np.isinf(value):
            assert law[1, output] == 0
        else:
            ratios = law[0][law[0] > 0] / law[1][law[0] > 0]
            assert value == pytest.approx(np.log(ratios.max()))
    (finding,) = judge(chosen, claims(chosen), found)
    assert finding.verdict == "REFUTED"
    assert np.isinf(finding.witness.log_ratio)
    assert finding.witness.to_dict()["log_ratio"] is None
    # Word a's candidates are f, b, c; the most that e's law leaves uncovered is a delta.
    law = np.exp(chosen.log_probabilities(np.arange(5)))
    delta = np.maximum(law[:, None] - np.exp(10) * law[None], 0).sum(axis=2).max()
    assert finding.figures["delta"] == pytest.approx(delta)


def test_words_that_share_a_place_are_neighbours_but_never_their_own():
    space = WordSpace.from_arrays(list("abcd"), [[0.0], [0.0], [0.0], [1.0]])
    near = close_words(space, np.arange(4), 2)
    assert all(word not in row for word, row in enumerate(near))


# Noise


EXPECTED = {
    "cmp": ((0.093, 0.100), (0.939, 0.316)),
    "mahalanobis": ((0.943, 0.300), (0.632, 0.632)),
    "mahalanobis:compat=pypantera": ((3.010, 0.224), (2.913, 0.318)),
}


@pytest.mark.parametrize("spec", EXPECTED)
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_the_nine_numbers_of_the_plane(toy, spec, epsilon):
    flat = on_plane(mechanism(spec, space=toy, epsilon=epsilon))
    law = plane_law(flat.space.vectors, flat.log_density)
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-12)
    offset = epsilon * (flat.space.vectors[:, None].astype(np.float64) - flat.space.vectors)
    plain = np.sqrt((offset**2).sum(axis=2))
    shaped = np.sqrt((offset**2 / np.diag(STRETCH)).sum(axis=2))
    for bounds, expected in zip((plain, shaped), EXPECTED[spec], strict=True):
        assert worst_of(law, bounds)[:2] == pytest.approx(expected, abs=0.005)


def test_integrating_densities_agrees_with_integrating_rays(toy):
    flat = on_plane(mechanism("mahalanobis:compat=pypantera", space=toy, epsilon=1.0))
    rays = circle() @ np.sqrt(STRETCH)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    np.testing.assert_allclose(
        plane_law(flat.space.vectors, flat.log_density),
        by_rays(flat.space.vectors, rays, 1.0),
        atol=5e-5,
    )


@pytest.mark.parametrize("spec", ["mahalanobis:compat=pypantera"])
def test_quadrature_is_ten_times_finer_than_it_is_trusted_to_be(toy, spec):
    flat = on_plane(mechanism(spec, space=toy, epsilon=1.0))
    used = plane_law(flat.space.vectors, flat.log_density)
    finer = plane_law(flat.space.vectors, flat.log_density, 4 * ANGLES)
    assert np.abs(np.log(used / finer)).max() < ERROR / 10


def test_any_density_can_be_integrated():
    """A Gaussian, which has no exponential rays: the two halves of the plane are equal."""
    vectors = np.array([[0.0, 0.0], [2.0, 0.0]])
    law = plane_law(vectors, lambda x: -(x * x).sum(axis=-1) / 2)
    assert law[0, 1] == pytest.approx(0.158655, abs=1e-5)  # P[N(0, 1) > 1]
    assert law[0, 1] == pytest.approx(law[1, 0], abs=1e-12)


def test_draws_bound_a_log_ratio_from_below_and_come_close(toy):
    line = on_line(mechanism("cmp", space=toy, epsilon=7.0))
    (claim,) = claims(line)
    [found] = sampled(line, [(claim, [(5, 6)])], 100_000, rng(), check="line", where="here")
    assert found.verdict == "NOT REFUTED"
    assert 0.9 < found.figures["lower_bound"] <= 1
    assert found.figures["resolution"] == pytest.approx(-np.log(-np.log(1e-3 / 64) / 1e5), abs=0.01)
    small = Claim("stated", Guarantee("metric", 3.5, "euclidean"))
    [found] = sampled(line, [(small, [(5, 6)])], 100_000, rng(), check="line", where="here")
    assert found.verdict == "REFUTED"
    assert found.witness.bound == pytest.approx(0.5)
    assert found.witness.log_ratio <= 1


def test_too_few_draws_are_said_to_be_too_few(toy):
    far = WordSpace.from_arrays(["x", "y"], [[0.0], [100.0]])
    chosen = mechanism("cmp", space=far, epsilon=10.0)
    [found] = sampled(chosen, [(claims(chosen)[0], [(0, 1)])], 1000, rng(), check="c", where="here")
    assert found.verdict == "NOT REFUTED"
    assert "not refutable" in found.sentence
    assert found.figures["draws"] == 0


def test_only_pairs_that_draws_can_tell_apart_are_drawn():
    near_and_far = WordSpace.from_arrays(["x", "y", "z"], [[0.0], [0.1], [100.0]])
    chosen = mechanism("cmp", space=near_and_far, epsilon=10.0)
    compared = [(claims(chosen)[0], [(0, 1), (0, 2)])]
    [found] = sampled(chosen, compared, 1000, rng(), check="c", where="here")
    assert (found.figures["pairs"], found.figures["draws"]) == (2, 1000)
    assert found.figures["bound"] == pytest.approx(1.0)


# Verdicts


def finding(claim, verdict):
    return Finding("some check", claim, verdict, "said.")


@pytest.mark.parametrize(
    ("found", "published", "whole"),
    [
        ([("stated", "CONSISTENT"), (STRUCTURE, "NOT REFUTED")], None, "CONSISTENT"),
        ([("stated", "NOT REFUTED"), (STRUCTURE, "CONSISTENT")], None, "NOT REFUTED"),
        ([("stated", "CONSISTENT"), (STRUCTURE, "REFUTED")], None, "REFUTED"),
        ([("stated", "CONSISTENT"), ("published", "REFUTED")], "REFUTED", "REFUTED"),
        ([("stated", "CONSISTENT")], "NOT REFUTED", "NOT REFUTED"),
    ],
)
def test_the_whole_is_as_good_as_its_worst_part(found, published, whole):
    said = {"stated": Guarantee("local", 1.0)}
    if published:
        said["published"] = Guarantee("local", 0.5)
    findings = tuple(finding(*each) for each in found)
    result = Audit("m", None, said, findings, seeded=False)
    assert result.verdict == whole
    assert {c.label: c.verdict for c in result.claims}.get("published") == published


def test_no_claim_is_no_verdict_on_privacy(toy):
    result = audit(mechanism("santext:sensitive=0.5,epsilon=2", space=toy), rng=1, quick=True)
    assert result.verdict == "NO CLAIM"
    assert [claim.verdict for claim in result.claims] == ["NO CLAIM"]


def test_a_witness_says_what_anybody_can_check():
    said = Witness("a", "b", "'c'", (0.5, 0.1), 1.609, 1.0).sentence
    assert "inputs 'a' and 'b', output 'c'" in said
    assert "1.609 nats" in said
    assert "infinitely many nats" in Witness("a", "b", "'c'", (0.5, 0.0), np.inf, 1.0).sentence


@pytest.mark.parametrize("options", [{"draws": 10}, {"words": 1}, {"rng": -1}])
def test_an_audit_too_small_is_refused(toy, options):
    with pytest.raises(ValueError, match=r"at least|whole number"):
        audit(mechanism("cmp", space=toy), **options)
