"""On a GPU: the same ids as on the CPU, and noise of the right law from a cryptographic stream."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
pytest.importorskip("triton", reason="triton is not installed (extra gpu)")

from gpu_cases import (  # noqa: E402
    KINDS,
    SLOW,
    assert_sure_where_it_should_be,
    completed,
    expected_noise,
    keystream,
    points_near,
    vectors_of,
)

from sottovoce.mechanisms.cmp import CMP  # noqa: E402
from sottovoce.mechanisms.gpu_release import GpuNoise  # noqa: E402
from sottovoce.mechanisms.mahalanobis import Mahalanobis  # noqa: E402
from sottovoce.mechanisms.vickrey import VickreyCMP, VickreyMahalanobis  # noqa: E402
from sottovoce.randomness import Draws, secure_generator  # noqa: E402
from sottovoce.spaces.gpu import fused_scan  # noqa: E402
from sottovoce.spaces.gpu.fused_scan import FusedScan  # noqa: E402
from sottovoce.spaces.nearest import METRICS, Nearest  # noqa: E402
from sottovoce.spaces.space import WordSpace  # noqa: E402
from sottovoce.spaces.store import with_half_norms  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 20, 64])
def test_the_search_answers_like_the_cpu(kind, k):
    vectors = vectors_of(kind, 9000, 60)
    points = [points_near(vectors, 150, scale, kind=kind) for scale in (1e-3, 0.7, 30.0)]
    points = np.concatenate(points)
    ids, values = Nearest(vectors, device="cuda").top(points, k)
    expected_ids, expected_values = Nearest(vectors, device="blas").top(points, k)
    assert np.array_equal(ids, expected_ids)
    assert np.array_equal(values, expected_values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_what_the_device_decides_is_what_the_cpu_decides(kind, k):
    vectors = vectors_of(kind, 8000 if kind in SLOW else 40_000, 100, seed=2)
    points = [points_near(vectors, 300, scale, kind=kind) for scale in (1e-3, 0.7, 30.0)]
    points = np.concatenate(points)
    search = Nearest(vectors, device="cuda")
    near = search.fused.nearest(torch.from_numpy(points).cuda(), k)
    ids, distances, sure = completed(search, near, points, k)
    assert_sure_where_it_should_be(kind, sure)
    expected_ids, expected_distances = Nearest(vectors, device="blas").top(points, k)
    assert np.array_equal(ids, expected_ids)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-11)
    if kind == "plain":
        assert sure.mean() > 0.99, "the kernels leave nearly everything to the CPU"


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_words_in_hard_vocabularies(kind):
    """200,000 for most, 3,000 where the CPU is slow: what the device leaves to it included."""
    vectors = vectors_of(kind, 5000, 50, seed=3)
    count = 1500 if kind in SLOW else 100_000
    points = [points_near(vectors, count, scale, kind=kind) for scale in (0.02, 1.5)]
    points = np.concatenate(points)
    ids = Nearest(vectors, device="cuda").top(points, 1)[0]
    assert np.array_equal(ids, Nearest(vectors, device="blas").top(points, 1)[0])
    if kind in ("huge", "one outlier"):
        near = Nearest(vectors, device="cuda").fused.nearest(torch.from_numpy(points).cuda(), 1)
        assert near.undecided.float().mean() < 0.01, "long words make all bounds wide"


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_and_odd_sizes(metric):
    for size, dimension in ((4097, 3), (5000, 17), (6001, 333), (4500, 700)):
        vectors = vectors_of("lengths", size, dimension, seed=dimension)
        points = points_near(vectors, 100, 0.5)
        for k in (1, 3):
            ids, _ = Nearest(vectors, metric, device="cuda").top(points, k)
            assert np.array_equal(ids, Nearest(vectors, metric, device="blas").top(points, k)[0])


def test_both_kernels_find_the_same_peaks(monkeypatch):
    vectors = vectors_of("lengths", 30_000, 300)
    scan = FusedScan(with_half_norms(vectors), True)
    points = torch.from_numpy(points_near(vectors, 500, 1.7)).cuda()
    first = scan.nearest(points, 2)
    monkeypatch.setattr(fused_scan, "_hopper", lambda device: None)
    second = scan.nearest(points, 2)
    assert torch.equal(first.ids, second.ids)
    assert torch.equal(first.costs, second.costs)


def test_a_crowd_of_near_words_is_decided_all_the_same():
    rng = np.random.default_rng(0)
    vectors = np.tile(rng.standard_normal((1, 20)), (6000, 1)).astype(np.float32)
    vectors += 1e-7 * rng.standard_normal(vectors.shape).astype(np.float32)
    points = points_near(vectors, 40, 1.0)
    ids, _ = Nearest(vectors, device="cuda").top(points, 3)
    assert np.array_equal(ids, Nearest(vectors, device="blas").top(points, 3)[0])


def test_memory_is_bounded_by_the_block(monkeypatch):
    monkeypatch.setattr(fused_scan, "PEAKS_AT_ONCE", 1 << 20)
    vectors = vectors_of("plain", 50_000, 32)
    search = Nearest(vectors, device="cuda")
    points = torch.from_numpy(points_near(vectors, 60_000, 0.5)).cuda()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    near = search.fused.nearest(points, 1)
    assert torch.cuda.max_memory_allocated() - before < 64 << 20
    assert len(near.ids) == 60_000


# Noise


def test_the_keystream_is_that_of_another_implementation():
    from sottovoce.mechanisms import gpu_noise_kernels as kernels

    key = np.random.default_rng(4).bytes(32)
    out = torch.zeros((64, 16), dtype=torch.int32, device="cuda")
    on_device = torch.from_numpy(np.frombuffer(key, "<i4").copy()).cuda()
    nonce = (7, 0x12345678, 3)
    kernels.keystream_blocks[(1,)](on_device, out, *nonce, BLOCKS=64, num_warps=1)
    assert np.array_equal(out.cpu().numpy().view(np.uint32), keystream(key, nonce, 64))


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 50, 101, 300])
def test_noise_is_made_of_the_keystream(dimension):
    """Against the formulas in float64, for the first and the last row."""
    key = np.random.default_rng(dimension).bytes(32)
    rows, epsilon = 300, 2.5
    noise, uniforms = GpuNoise(dimension, epsilon).draw(rows, torch.device("cuda"), key)
    for row in (0, rows - 1):
        expected, uniform = expected_noise(key, row, dimension, epsilon)
        np.testing.assert_allclose(
            noise[row].cpu().numpy(), expected, atol=1e-6 * np.abs(expected).max()
        )
        assert uniforms[row].item() == uniform


@pytest.mark.parametrize("dimension", [1, 2, 5, 50, 300])
def test_the_law_of_the_noise(dimension):
    """Radius Gamma(d), direction uniform, and the two independent."""
    stats = pytest.importorskip("scipy.stats")
    epsilon, rows = 4.0, 200_000
    noise, uniforms = GpuNoise(dimension, epsilon).draw(rows, torch.device("cuda"))
    noise = noise.double().cpu().numpy()
    radius = np.linalg.norm(noise, axis=1)
    assert stats.kstest(radius * epsilon, stats.gamma(dimension).cdf).pvalue > 1e-5
    assert stats.kstest(uniforms.cpu().numpy(), "uniform").pvalue > 1e-5
    first = noise[:, 0] / radius
    if dimension == 1:
        assert abs((first > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(rows)
    else:
        law = stats.beta(0.5, (dimension - 1) / 2)
        for column in (0, dimension - 1):
            assert stats.kstest((noise[:, column] / radius) ** 2, law.cdf).pvalue > 1e-5
    assert abs(np.corrcoef(radius, first**2)[0, 1] if dimension > 1 else 0.0) < 0.02
    covariance = noise.T @ noise / rows * epsilon**2 / (dimension + 1)
    assert np.abs(covariance - np.eye(dimension)).max() < 0.05


def test_two_calls_never_share_their_noise():
    first = GpuNoise(20, 1.0).draw(100, torch.device("cuda"))[0]
    second = GpuNoise(20, 1.0).draw(100, torch.device("cuda"))[0]
    together = torch.cat([first, second])
    assert len(torch.unique(together, dim=0)) == 200


# Mechanisms


def space_of(vectors):
    size = len(vectors)
    return WordSpace(
        name="made up",
        folded=with_half_norms(vectors),
        words=b"w" * size,
        offsets=np.arange(size + 1),
        table=np.full(2, -1, dtype=np.int32),
        sha256=str(size),
    )


MECHANISMS = (CMP, Mahalanobis, VickreyCMP, VickreyMahalanobis)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_seeded_draws_are_those_of_the_cpu(kind, monkeypatch):
    from sottovoce import devices

    vectors = vectors_of("lengths", 5000, 40)
    ids = np.arange(0, 5000, 7)
    drawn = {}
    for name in ("cpu", "cuda"):
        monkeypatch.setattr(devices, "_choice", name)
        mechanism = kind(space_of(vectors), epsilon=12.0)
        assert mechanism.device == name
        drawn[name] = mechanism.sample(ids, 3, np.random.Generator(np.random.PCG64(5)))
    assert np.array_equal(drawn["cpu"], drawn["cuda"])


@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_law_of_the_released_words_is_that_of_the_cpu(kind, monkeypatch):
    """Two words, a hundred thousand draws on each device: no word comes more often by chance."""
    stats = pytest.importorskip("scipy.stats")
    from sottovoce import devices

    vectors = vectors_of("plain", 5000, 4)
    counts = []
    for name in ("cpu", "cuda"):
        monkeypatch.setattr(devices, "_choice", name)
        mechanism = kind(space_of(vectors), epsilon=40.0)
        drawn = mechanism.sample(np.array([3, 4000]), 100_000, secure_generator())
        counts.append([np.bincount(column, minlength=5000) for column in drawn.T])
    for on_cpu, on_gpu in zip(*counts, strict=True):
        common = (on_cpu + on_gpu) >= 50
        table = np.stack([on_cpu[common], on_gpu[common]])
        assert common.sum() > 5
        assert stats.chi2_contingency(table).pvalue > 1e-6


def test_words_read_off_one_point_differ_and_begin_with_the_winner(monkeypatch):
    from sottovoce import devices

    monkeypatch.setattr(devices, "_choice", "cuda")
    mechanism = VickreyCMP(space_of(vectors_of("plain", 5000, 10)), epsilon=30.0)
    ids = np.arange(4000)
    draws = Draws([(secure_generator(), len(ids))])
    words = mechanism.draw_once(ids, 12, draws)
    assert all(len(set(row)) == 12 for row in words.tolist())
    vectors = mechanism.space.vectors[ids]
    assert mechanism.draw_once_at(vectors, 5, draws).shape == (4000, 5)
    assert mechanism.draw_at(vectors, draws).shape == (4000,)


def test_an_output_vocabulary_is_kept_to(monkeypatch):
    from sottovoce import devices
    from sottovoce.spaces.output_vocabulary import OutputVocabulary

    monkeypatch.setattr(devices, "_choice", "cuda")
    allowed = np.arange(0, 10_000, 2)
    space = space_of(vectors_of("plain", 10_000, 10)).with_output(OutputVocabulary("even", allowed))
    drawn = CMP(space, epsilon=5.0).sample(np.arange(10_000), 2, secure_generator())
    assert np.isin(drawn, allowed).all()
    assert (drawn % 2 == 0).all()
