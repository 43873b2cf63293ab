"""Nearest neighbours are exact: whatever the sizes, the metric, the batch or the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sottovoce.arrays import accumulated_error
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.spaces import int16_scan, nearest, scan
from sottovoce.spaces.int16_scan import Int16Scan, kernel
from sottovoce.spaces.nearest import METRICS, Nearest
from sottovoce.threads import set_threads


def oracle(vectors, queries, metric, k):
    """Slow and obvious: every score in float64, then a stable sort."""
    w, q = np.asarray(vectors, np.float64), np.asarray(queries, np.float64)
    if metric == "euclidean":
        cost = ((q[:, None, :] - w[None, :, :]) ** 2).sum(axis=2)
    else:
        cost = -(q[:, None, :] * w[None, :, :]).sum(axis=2)
    if metric == "cosine":
        lengths = np.sqrt((q * q).sum(axis=1))[:, None] * np.sqrt((w * w).sum(axis=1))[None, :]
        cost = np.divide(cost, lengths, out=np.zeros_like(cost), where=lengths > 0)
    ids = np.argsort(cost, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(cost, ids, axis=1)
    return ids, np.sqrt(values) if metric == "euclidean" else -values


def devices():
    """Every scan there is; those that cannot run here are skipped with the reason."""
    cuda = pytest.mark.gpu
    return ["blas", "int16", "torch:cpu", pytest.param("cuda", marks=cuda)]


def build(vectors, metric, device):
    if device == "int16" and kernel() is None:
        pytest.skip("no numba (extra fast), or no AVX2 in this processor")
    if device in ("torch:cpu", "cuda"):
        torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
        if device == "cuda" and not torch.cuda.is_available():
            pytest.skip("no CUDA device")
    return Nearest(vectors, metric, device=device)


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("size", "dimension", "count"), [(5, 2, 3), (700, 7, 90), (3000, 50, 40)])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_top_k_equals_the_oracle(metric, size, dimension, count, k, device):
    rng = np.random.default_rng(size + k)
    vectors = rng.standard_normal((size, dimension)).astype(np.float32)
    queries = 3 * rng.standard_normal((count, dimension)).astype(np.float32)
    ids, values = build(vectors, metric, device).top(queries, k)
    expected_ids, expected_values = oracle(vectors, queries, metric, k)
    assert np.array_equal(ids, expected_ids)
    np.testing.assert_allclose(values, expected_values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1, 1e2, 1e6])
def test_the_scale_of_the_noise_does_not_matter(metric, scale, device):
    """Outlier dimensions, words of very different length, queries near and far."""
    rng = np.random.default_rng(8)
    vectors = rng.standard_normal((2000, 40)) * np.where(np.arange(40) == 3, 9, 1)
    vectors *= rng.uniform(0.01, 2, (2000, 1))
    vectors[:7] = 0
    queries = vectors[rng.integers(0, 2000, 60)] + scale * rng.standard_normal((60, 40))
    vectors, queries = vectors.astype(np.float32), queries.astype(np.float32)
    for k in (1, 2, 20):
        ids, _ = build(vectors, metric, device).top(queries, k)
        assert np.array_equal(ids, oracle(vectors, queries, metric, k)[0])


coordinates = st.floats(-4, 4, width=32).map(lambda x: round(x * 4) / 4)


@pytest.mark.parametrize("device", ["blas", "int16"])
@pytest.mark.parametrize("metric", METRICS)
@given(data=st.data())
def test_ties_go_to_the_lowest_id(metric, device, data):
    """Coarse coordinates make ties and duplicate vectors; they are all exact in float64."""
    dimension = data.draw(st.integers(1, 3))
    vectors = data.draw(
        arrays.arrays(np.float32, (data.draw(st.integers(1, 12)), dimension), elements=coordinates)
    )
    queries = data.draw(
        arrays.arrays(np.float32, (data.draw(st.integers(0, 5)), dimension), elements=coordinates)
    )
    k = data.draw(st.integers(1, len(vectors)))
    assume(device == "blas" or vectors.any())
    ids, _ = build(vectors, metric, device).top(queries, k)
    assert np.array_equal(ids, oracle(vectors, queries, metric, k)[0])


def near_ties(rng, size, dimension):
    """Vectors whose scores differ by less than float32 can tell."""
    base = rng.standard_normal(dimension) * 5
    return (base + 1e-6 * rng.standard_normal((size, dimension))).astype(np.float32)


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("metric", METRICS)
def test_scores_closer_than_float32_are_still_decided_exactly(metric, device):
    rng = np.random.default_rng(3)
    vectors = near_ties(rng, 300, 30)
    queries = rng.standard_normal((50, 30)).astype(np.float32) * 5
    ids, _ = build(vectors, metric, device).top(queries, 3)
    assert np.array_equal(ids, oracle(vectors, queries, metric, 3)[0])
    plain = np.argsort(-(queries @ vectors.T), axis=1)[:, 0]
    if metric == "inner":
        assert not np.array_equal(plain, ids[:, 0]), "the case is too easy to prove anything"


@pytest.mark.parametrize("k", [1, 2, 20])
def test_batch_size_and_threads_change_nothing(k):
    rng = np.random.default_rng(5)
    search = Nearest(rng.standard_normal((4000, 40)))
    queries = 3 * rng.standard_normal((2500, 40))
    try:
        set_threads(1)
        whole = search.top(queries, k)
        set_threads(2)
        split = search.top(queries, k)
        parts = [search.top(queries[i : i + 33], k) for i in range(0, len(queries), 33)]
    finally:
        set_threads(None)
    for answer in (split, tuple(np.concatenate(part) for part in zip(*parts, strict=True))):
        assert np.array_equal(whole[0], answer[0])
        assert np.array_equal(whole[1], answer[1])


def test_masses_of_ties_stay_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(scan, "MANY_CANDIDATES", 5000)
    search = Nearest(np.ones((3000, 4)))
    ids, values = search.top(np.zeros((200, 4)), 3)
    assert (ids == np.arange(3)).all()
    assert (values == 2.0).all()


def test_a_zero_vector_has_cosine_zero_with_everything():
    ids, values = Nearest(np.array([[0.0, 0.0], [-1.0, 0.0]]), "cosine").top(
        np.array([[1.0, 0.0], [0.0, 0.0]]), 2
    )
    assert ids.tolist() == [[0, 1], [0, 1]]
    assert values.tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_the_error_bound_holds_for_real_products():
    rng = np.random.default_rng(9)
    x = rng.standard_normal((200, 301)).astype(np.float32) * 10
    y = rng.standard_normal((500, 301)).astype(np.float32)
    exact = x.astype(np.float64) @ y.astype(np.float64).T
    sizes = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64).T
    assert (np.abs(x @ y.T - exact) <= accumulated_error(301) * sizes).all()


@pytest.mark.parametrize(
    ("queries", "k", "says"),
    [
        (np.zeros((2, 3)), 1, "shape"),
        (np.zeros((2, 2)), 0, "k must be"),
        (np.zeros((2, 2)), 6, "k must be"),
        (np.array([[np.nan, 0.0]]), 1, "finite"),
        (np.array([[1e39, 0.0]]), 1, "finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_wrong_calls_are_refused(toy, queries, k, says):
    with pytest.raises(UsageError, match=says):
        Nearest(toy.vectors).top(queries, k)


def test_an_unknown_metric_is_refused():
    with pytest.raises(UsageError, match="euclidean, cosine, inner"):
        Nearest(np.ones((2, 2)), "manhattan")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("device", devices()[1:])
@pytest.mark.parametrize("k", [1, 2, 20])
def test_real_noise_on_the_real_space_is_decided_alike_everywhere(device, k, default_space):
    rng = np.random.default_rng(11)
    reference = build(default_space.vectors, "euclidean", "blas")
    other = build(default_space.vectors, "euclidean", device)
    for epsilon in (1, 10, 50):
        noise = rng.standard_normal((400, 300))
        noise *= rng.gamma(300, 1 / epsilon, (400, 1)) / np.linalg.norm(noise, axis=1)[:, None]
        points = default_space.vectors[rng.integers(0, default_space.size, 400)] + noise
        expected, distances = reference.top(points, k)
        found = other.top(points, k)
        assert np.array_equal(found[0], expected)
        assert np.array_equal(found[1], distances)


def test_nobody_can_tell_when_the_scan_changes(monkeypatch):
    """Large tables switch to 16-bit codes after some queries, where that is possible."""
    rng = np.random.default_rng(12)
    vectors, queries = rng.standard_normal((30_000, 40)), 3 * rng.standard_normal((900, 40))
    monkeypatch.setattr(nearest, "WARM_AFTER", 450 * vectors.size)
    warming = Nearest(vectors, device="cpu")
    expected = Nearest(vectors, device="blas").top(queries, 1)[0]
    parts = [warming.top(queries[i : i + 100], 1)[0] for i in range(0, 900, 100)]
    assert np.array_equal(np.concatenate(parts), expected)
    warmed = Nearest(vectors, device="cpu")
    warmed.warm_up()
    assert np.array_equal(warmed.top(queries, 1)[0], expected)
    if kernel() is not None:
        assert isinstance(warming.scan.then, Int16Scan)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("length", [1e-10, 1e10])
def test_codes_decide_alike_whatever_the_length_of_vectors(metric, length):
    """Words of very different lengths, one enormous, duplicates, zeros; queries of any size."""
    rng = np.random.default_rng(14)
    vectors = rng.standard_normal((700, 31)) * 10 ** rng.uniform(-3, 0, (700, 1))
    vectors[5], vectors[6], vectors[7] = 0, vectors[8], 40 * vectors[9]
    queries = 3 * rng.standard_normal((90, 31))
    queries[0], queries[1:4] = 0, vectors[6:9]
    vectors, queries = (np.float32(length) * rows.astype(np.float32) for rows in (vectors, queries))
    for k in (1, 2, 30):
        answer = build(vectors, metric, "int16").top(queries, k)
        expected = Nearest(vectors, metric, device="blas").top(queries, k)
        assert np.array_equal(answer[0], expected[0])
        assert np.array_equal(answer[1], expected[1])


@pytest.mark.parametrize("length", [0.0, 1e-25, 1e25])
def test_vectors_of_lengths_without_codes_are_refused(length):
    build(np.ones((3, 2)), "inner", "int16")
    with pytest.raises(SottovoceError, match="have no codes; use device 'blas'"):
        Nearest(np.full((3, 2), length), "inner", device="int16")


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e12, 1e30])
def test_queries_without_usable_codes_are_left_to_floats(size):
    rng = np.random.default_rng(15)
    vectors = rng.standard_normal((300, 8)).astype(np.float32)
    queries = (size * rng.standard_normal((20, 8))).astype(np.float32)
    ids, _ = build(vectors, "inner", "int16").top(queries, 2)
    assert np.array_equal(ids, oracle(vectors, queries, "inner", 2)[0])


def test_every_word_left_out_by_codes_is_too_far_away():
    """The bound itself: whatever comes within float32's doubt of the best is a candidate."""
    rng = np.random.default_rng(16)
    vectors = near_ties(rng, 400, 30)
    points = rng.standard_normal((60, 30)).astype(np.float32) * 5
    search = build(vectors, "euclidean", "int16")
    coded, plain = (s.candidates(points, 1) for s in (search.scan, search.scan.in_floats))
    best = oracle(vectors, points, "euclidean", 1)[0][:, 0]
    pairs = set(zip(coded.rows.tolist(), coded.columns.tolist(), strict=True))
    assert pairs >= set(enumerate(best.tolist()))
    assert len(coded) >= len(plain), "the case is too easy to prove anything"


def test_masses_of_ties_are_split_where_codes_have_no_room_for_them(monkeypatch):
    monkeypatch.setattr(int16_scan, "ROOM", 0)
    search = build(np.ones((3000, 4)), "euclidean", "int16")
    ids, values = search.top(np.zeros((200, 4)), 3)
    assert (ids == np.arange(3)).all()
    assert (values == 2.0).all()


def test_a_missing_part_names_its_extra(monkeypatch):
    monkeypatch.setattr(int16_scan, "kernel", lambda: None)
    with pytest.raises(SottovoceError, match=r"sottovoce\[fast\]"):
        Nearest(np.ones((3, 2)), device="int16")
