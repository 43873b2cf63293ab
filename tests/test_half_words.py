"""Words as halves: the bounds hold, and the order is the one that the kernels expect."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")

from sottovoce.spaces.gpu.half_words import (  # noqa: E402
    FINER,
    LANES,
    PIECES,
    TILE,
    HalfWords,
    accumulation,
    steps_for,
)
from sottovoce.spaces.store import with_half_norms  # noqa: E402


def vectors_of(kind, size, dimension, rng):
    vectors = rng.standard_normal((size, dimension)) * rng.uniform(0.1, 3, (size, 1))
    if kind == "huge":
        vectors[::100] *= 1e5
    if kind == "tiny":
        vectors *= 1e-9
    if kind == "zeros":
        vectors[:] = 0
    if kind == "outliers":
        vectors[:, 1] *= 300
        vectors[: size // 3] = 0
    return vectors.astype(np.float32)


def coded_query(point, words):
    """A query as the kernel codes it: halves, |x'|, |x' - q|, weight of the half norms, scale."""
    largest = np.abs(point).max()
    power = 10 - (np.frexp(largest)[1] - 1) if largest else 0
    if words.folded:
        power = min(power, 15 - words.weight_power)
    scaled = point.astype(np.float64) * 2.0**power
    halves = scaled.astype(np.float16)
    columns = np.zeros(words.width)
    columns[: len(point)] = halves
    weight = 2.0 ** (power + words.weight_power)
    if words.folded:
        pieces = weight * 2.0 ** (-FINER * np.arange(PIECES))
        assert (pieces.astype(np.float16) == pieces).all()
        columns[len(point) : len(point) + PIECES] = pieces
    error = np.linalg.norm(scaled - halves.astype(np.float64))
    return columns, np.linalg.norm(scaled), error, weight * words.folded, 2.0**power


@pytest.mark.parametrize("kind", ["plain", "huge", "tiny", "zeros", "outliers"])
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_no_score_is_further_off_than_its_group_says(kind, folded, scale):
    rng = np.random.default_rng(5)
    vectors = vectors_of(kind, 700, 23, rng)
    rows = with_half_norms(vectors) if folded else vectors
    words = HalfWords(torch.from_numpy(rows), folded, steps=2)
    places = words.places(torch.arange(700)).numpy()
    table = words.table.double().numpy()[places]
    rounding, length, half_norm = words.bounds.double().numpy()[:, np.arange(700) // words.group]
    exact = vectors.astype(np.float64)
    lengths = np.sqrt((exact**2).sum(axis=1))
    for _ in range(20):
        point = vectors[rng.integers(700)] + scale * np.median(lengths) * rng.standard_normal(23)
        point = point.astype(np.float32)
        columns, size, error, weight, query_scale = coded_query(point, words)
        true = exact @ point.astype(np.float64) - folded * lengths**2 / 2
        true *= query_scale * 2.0**words.word_power
        bound = size * rounding + error * length + weight * half_norm
        assert (np.abs(table @ columns - true) <= bound).all()
        # The same in float32, as it is added up on a device.
        added = torch.from_numpy(table).float() @ torch.from_numpy(columns).float()
        bound = bound + words.accumulation * (1 + 2.0**-9) * size * length
        assert (np.abs(added.double().numpy() - true) <= bound).all()


def test_the_bounds_are_of_use():
    """Of words like GloVe's, a bound is a thousandth of the scores: few groups come near."""
    rng = np.random.default_rng(1)
    vectors = (0.4 * rng.standard_normal((2000, 300))).astype(np.float32)
    words = HalfWords(torch.from_numpy(with_half_norms(vectors)), True)
    _, size, error, weight, scale = coded_query((1.7 * rng.standard_normal(300)), words)
    rounding, length, half_norm = words.bounds.double().numpy()
    accumulated = error + words.accumulation * size
    bound = (size * rounding + accumulated * length + weight * half_norm).max()
    assert bound / scale / 2.0**words.word_power < 0.15


@pytest.mark.parametrize(("size", "steps"), [(1, 1), (31, 1), (700, 1), (700, 2), (5000, 4)])
def test_every_word_has_a_place_and_a_lane_holds_one_group(size, steps):
    rng = np.random.default_rng(size)
    vectors = rng.standard_normal((size, 5)).astype(np.float32)
    words = HalfWords(torch.from_numpy(vectors), False, steps=steps)
    places = words.places(torch.arange(words.groups * words.group)).numpy()
    assert len(np.unique(places)) == len(places)
    assert places.max() < words.tiles * TILE == len(words.table)
    tile, column = places // TILE, places % TILE
    group = tile // steps * LANES + column // 2 % LANES
    assert np.array_equal(group, np.arange(len(places)) // words.group)
    scale = 2.0**words.word_power
    assert np.allclose(words.table[places[:size], :5].numpy() / scale, vectors, atol=2e-3)
    # The last group is filled up with its last word, so that no peak of it is invented.
    rest = words.table[places[size:], :5]
    assert torch.equal(rest, words.table[places[size - 1], :5].expand_as(rest))


def test_more_words_have_larger_groups():
    assert [steps_for(size) for size in (34_000, 341_000, 2_200_000)] == [1, 2, 4]
    assert accumulation(304) < 1e-4
