"""The noise on sentence vectors: its law, its grid, its promise, its memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sottovoce.encoders import load_encoder
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.mechanisms.comet import ANY_LENGTH
from sottovoce.obfuscation.vectors import FARTHEST, GRID, VectorNoise, noisy_vector, on_grid
from sottovoce.randomness import Draws

QUERY = "treatment for skin cancer"


class Numbers:
    """Texts that are numbers, as vectors of one dimension."""

    name, dimension, exact_batches, fingerprint = "numbers", 1, True, "numbers"

    def __init__(self, unit_length=True):
        self.unit_length = unit_length

    def encode(self, texts):
        return np.array([[float(text)] for text in texts], dtype=np.float32)

    def knows(self, texts):
        return np.ones(len(texts), dtype=bool)


@pytest.fixture(scope="module")
def light():
    return VectorNoise(load_encoder("light"), 50.0)


def moved(mechanism, vector, count, seed):
    draws = Draws([(np.random.default_rng(seed), count)])
    return mechanism.move(np.repeat(vector[None], count, axis=0), draws).astype(np.float64)


def test_the_radius_is_gamma_the_direction_uniform_and_both_are_independent(light):
    vector = light.encode([QUERY])[0]
    noise = moved(light, vector, 4000, 1) - vector
    radius, d = np.linalg.norm(noise, axis=1), light.encoder.dimension
    assert stats.kstest(radius, stats.gamma(d, scale=1 / light.epsilon).cdf).pvalue > 0.01
    for axis in (np.eye(d)[0], vector / np.linalg.norm(vector), np.ones(d) / np.sqrt(d)):
        cosine = noise @ axis / radius
        # (1 + cosine) / 2 of a uniform direction is Beta.
        law = stats.beta((d - 1) / 2, (d - 1) / 2)
        assert stats.kstest((1 + cosine) / 2, law.cdf).pvalue > 0.01
        assert abs(stats.spearmanr(cosine, radius).statistic) < 4 / np.sqrt(len(radius))


def test_on_the_grid_every_outcome_has_the_odds_that_are_promised():
    """In one dimension the noise is Laplace's, and cells of the grid have a closed form."""
    mechanism = VectorNoise(Numbers(), 900.0)
    first, second = 0.25, 0.25 + 3.3 * GRID
    steps = np.arange(-60, 64)
    cells = np.rint(0.25 / GRID) * GRID + steps * GRID
    law = {
        at: np.diff(
            stats.laplace(at, 1 / 900.0).cdf(np.append(cells - GRID / 2, cells[-1] + GRID / 2))
        )
        for at in (first, second)
    }
    ratios = np.log(law[first] / law[second])
    assert np.abs(ratios).max() <= 900.0 * (second - first) + 1e-9
    assert np.abs(ratios).max() > 0.99 * 900.0 * (second - first)  # and no smaller bound holds
    out = moved(mechanism, np.array([first], dtype=np.float32), 40_000, 2)[:, 0]
    counts = np.array([(out == cell).sum() for cell in cells.astype(np.float32)])
    expected = 40_000 * law[first]
    many = expected > 20
    statistic = ((counts - expected)[many] ** 2 / expected[many]).sum()
    assert stats.chi2(many.sum() - 1).sf(statistic) > 0.01


def test_what_is_sent_lies_on_a_public_grid_exact_in_32_bits(light):
    points = np.random.default_rng(3).normal(0, 3, (50, 256))
    rounded = on_grid(points)
    assert rounded.dtype == np.float32
    steps = rounded.astype(np.float64) / GRID
    assert (steps == np.rint(steps)).all()
    assert np.abs(rounded - points).max() <= GRID / 2
    far = on_grid(np.array([1e9, -1e9]))
    assert far.tolist() == [FARTHEST * GRID, -FARTHEST * GRID]
    sent = noisy_vector(QUERY, light).vector
    assert (sent == on_grid(sent.astype(np.float64))).all()


def test_no_release_tells_two_texts_apart_by_more_than_is_promised(light):
    texts = ["melanoma", "skin cancer", "gardening in spring", "divorce lawyer"]
    vectors = light.encode(texts).astype(np.float64)
    for first in vectors:
        points = moved(light, first.astype(np.float32), 200, 5)
        for second in vectors:
            apart = np.linalg.norm(first - second)
            densities = [light.noise_law.log_density(points - v) for v in (first, second)]
            assert np.abs(densities[0] - densities[1]).max() <= light.guarantee.loss(apart) + 1e-9
            assert apart <= 2.0001
    assert light.guarantee.epsilon == 50
    assert light.guarantee.metric == "euclidean(light)"
    assert light.facts()["most nats between any two texts"] == 100
    assert any("at most 100 nats" in caveat for caveat in light.guarantee.caveats)


def test_vectors_of_any_length_have_no_bound_between_any_two_texts():
    mechanism = VectorNoise(Numbers(unit_length=False), 5.0)
    assert ANY_LENGTH in mechanism.guarantee.caveats
    assert "most nats between any two texts" not in mechanism.facts()
    noisy_vector("700", mechanism)
    with pytest.raises(SottovoceError, match="longer than 1"):
        noisy_vector("700", VectorNoise(Numbers(), 5.0))


def test_the_same_text_gets_the_same_vector_and_no_other_shares_its_noise(light):
    key = b"k" * 32
    first = noisy_vector(QUERY, light, memory_key=key)
    again = noisy_vector(f"  {QUERY.upper()} ", light, memory_key=key)
    assert (first.vector == again.vector).all()
    assert first.word_hashes == again.word_hashes
    noise = first.vector - first.true
    others = [
        noisy_vector("treatment for skin cancers", light, memory_key=key),
        noisy_vector(QUERY, light, memory_key=b"l" * 32),
        noisy_vector(QUERY, VectorNoise(light.encoder, 51.0), memory_key=key),
        noisy_vector(QUERY, light),
        noisy_vector(QUERY, light),
    ]
    for number, other in enumerate(others):
        unlike = other.vector - other.true
        cosine = noise @ unlike / np.linalg.norm(noise) / np.linalg.norm(unlike)
        assert abs(cosine) < 0.35, number
    assert others[3].word_hashes == ()
    with pytest.raises(UsageError, match="a seed or a memory_key"):
        noisy_vector(QUERY, light, rng=1, memory_key=key)


def test_a_seed_repeats_and_is_stamped(light):
    first, again = (noisy_vector(QUERY, light, rng=4) for _ in range(2))
    assert (first.vector == again.vector).all()
    assert first.seeded
    assert "experiments only" in first.guarantee.caveats[-1]
    assert not noisy_vector(QUERY, light).seeded


def test_what_fails_says_nothing_of_the_text():
    class Broken(Numbers):
        def encode(self, texts):
            raise ValueError(f"cannot encode {texts[0]}")

    with pytest.raises(SottovoceError) as caught:
        noisy_vector(QUERY, VectorNoise(Broken(), 5.0))
    assert "ValueError" in str(caught.value)
    assert "cancer" not in f"{caught.value!r}{caught.value.__cause__!r}"
    noisy = noisy_vector("0.5", VectorNoise(Numbers(), 5.0))
    assert "0.5" not in repr(noisy)
    with pytest.raises(UsageError, match="positive"):
        VectorNoise(Numbers(), 0.0)


def test_a_blank_text_is_pure_noise(light):
    assert noisy_vector(" ", light).noise_to_signal is None
    assert noisy_vector(QUERY, light).noise_to_signal == pytest.approx(256 / 50, rel=0.3)
