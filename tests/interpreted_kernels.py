"""The kernels of the GPU in Triton's interpreter, on the processor: run by test_gpu_kernels.py.

Triton decides when it is imported whether it interprets: so this runs in a process of its own, with
TRITON_INTERPRET=1.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
triton = pytest.importorskip("triton", reason="triton is not installed (extra gpu)")

import triton.language as tl  # noqa: E402
from gpu_cases import (  # noqa: E402
    KINDS,
    assert_sure_where_it_should_be,
    completed,
    expected_noise,
    keystream,
    points_near,
    vectors_of,
)

from sottovoce.mechanisms import gpu_noise_kernels  # noqa: E402
from sottovoce.mechanisms.gpu_release import GpuNoise  # noqa: E402
from sottovoce.spaces.gpu import fused_scan, kernels  # noqa: E402
from sottovoce.spaces.gpu.fused_scan import TELLS_APART, FusedScan  # noqa: E402
from sottovoce.spaces.gpu.half_words import FINER, PIECES  # noqa: E402
from sottovoce.spaces.nearest import Nearest  # noqa: E402
from sottovoce.spaces.store import with_half_norms  # noqa: E402

CPU = torch.device("cpu")


@triton.jit
def _two_masks(out, count, SIZE: tl.constexpr):
    """What all kernels do: masks joined by &, loops to a number that is not known before."""
    place = tl.arange(0, SIZE)
    for _ in range(count):
        now = tl.load(out + place, mask=(place < SIZE) & (tl.program_id(0) < count), other=0)
        tl.store(out + place, now + 1)


class _WithMasksOfBool:
    """The interpreter's memory: Triton 3.9 wants masks of bool, and makes some of int32."""

    def __init__(self, native):
        self._native = native

    def __getattr__(self, name):
        return getattr(self._native, name)

    def load(self, places, mask, *more):
        return self._native.load(places, mask.astype(bool), *more)

    def store(self, places, values, mask):
        return self._native.store(places, values, mask.astype(bool))


@pytest.fixture(scope="module", autouse=True)
def _interpreter():
    with suppress(ImportError, AttributeError):
        interpreter = importlib.import_module("triton.runtime.interpreter")
        interpreter._interpreter = _WithMasksOfBool(interpreter._interpreter)
    out = torch.zeros(4, dtype=torch.int32)
    try:
        _two_masks[(1,)](out, 3, SIZE=4)
    except Exception as error:
        versions = f"Triton {triton.__version__} with numpy {np.__version__}"
        pytest.skip(f"the interpreter of {versions} fails ({type(error).__name__})")
    assert out.tolist() == [3] * 4


# Noise


def test_the_keystream_is_chacha20():
    key, nonce = np.random.default_rng(4).bytes(32), (7, 0x12345678, 3)
    out = torch.zeros((4, 16), dtype=torch.int32)
    on_device = torch.from_numpy(np.frombuffer(key, "<i4").copy())
    gpu_noise_kernels.keystream_blocks[(1,)](on_device, out, *nonce, BLOCKS=4, num_warps=1)
    assert np.array_equal(out.numpy().view(np.uint32), keystream(key, nonce, 4))


@pytest.mark.parametrize("dimension", [1, 7, 20])
def test_noise_is_made_of_the_keystream(dimension):
    key = np.random.default_rng(dimension).bytes(32)
    noise, uniforms = GpuNoise(dimension, 2.5).draw(2, CPU, key)
    for row in range(2):
        expected, uniform = expected_noise(key, row, dimension, 2.5)
        room = 1e-6 * np.abs(expected).max()
        np.testing.assert_allclose(noise[row].numpy(), expected, atol=room)
        assert uniforms[row].item() == uniform


# Search


@pytest.fixture
def small_blocks(monkeypatch):
    """Fewer rows of padding: the interpreter takes a while for each."""
    monkeypatch.setattr(fused_scan, "ROWS", 128)


def test_queries_are_coded_with_bounds_that_hold():
    points = points_near(vectors_of("lengths", 300, 13), 6, 2.0)
    points[5] = 0
    padded, width, dimension = 8, 16, 13
    halves = torch.zeros((padded, width), dtype=torch.half)
    facts = torch.zeros((3, padded))
    kernels.code_queries[(padded,)](
        torch.from_numpy(points),
        dimension,
        halves,
        facts,
        padded,
        len(points),
        -3,
        2.0**-18,
        DIMENSION=dimension,
        PIECES=PIECES,
        FINER=FINER,
        WIDTH=width,
        BLOCK=16,
    )
    lengths, errors, weights = (row[: len(points)] for row in facts.double().numpy())
    # What a row was multiplied by is a power of two, told by the weight of the half norms.
    powers = np.log2(weights) + 3
    assert np.array_equal(powers, np.rint(powers))
    scaled = points * 2.0 ** powers[:, None]
    coded = halves.double().numpy()[: len(points)]
    assert np.array_equal(coded[:, :dimension], scaled.astype(np.float16))
    finer = weights[:, None] * 2.0 ** (-FINER * np.arange(PIECES))
    assert np.array_equal(coded[:, dimension:], finer)
    assert (np.linalg.norm(scaled, axis=1) <= lengths).all()
    assert (np.linalg.norm(scaled - coded[:, :dimension], axis=1) <= errors).all()
    largest = np.abs(scaled[:5]).max(axis=1)
    assert ((largest >= 2.0**9) & (largest < 2.0**11)).all()


@pytest.mark.parametrize("k", [1, 3])
def test_groups_are_listed_that_may_hold_one_of_the_best(k):
    rng = np.random.default_rng(k)
    groups, rows, slots, room = 150, 32, 64, 16
    peaks = rng.uniform(0, 1000, (groups, rows)).astype(np.float32)
    peaks[:, -1] = 500  # All alike: more than there is room for.
    bounds = rng.uniform(0, 1, (3, groups)).astype(np.float32)
    facts = rng.uniform(1, 3, (3, rows)).astype(np.float32)
    lists = torch.full((rows, room), -1, dtype=torch.int32)
    counts = torch.zeros(rows, dtype=torch.int32)
    tables = [torch.from_numpy(table) for table in (peaks, facts, bounds)]
    kernels.near_groups[(1,)](
        tables[0], rows, *tables[1:], lists, counts, groups, k, ROOM=room, SLOTS=slots, ROWS=rows
    )
    doubts = np.einsum("bg,br->gr", bounds, facts)
    # The bar lies below the k-th best of what groups reach for sure: lanes may hide some of these.
    for row in range(rows - 1):
        reached = np.sort(peaks[:, row] - doubts[:, row])[::-1]
        must = np.flatnonzero(peaks[:, row] + doubts[:, row] >= reached[k - 1])
        listed = lists[row, : min(room, int(counts[row]))].tolist()
        assert counts[row] <= room
        assert set(must) <= set(listed)
        assert len(set(listed)) == counts[row]
        if k == 1:
            assert set(must) == set(listed)
    assert counts[-1] > room


def test_the_least_costs_are_picked_and_ties_left_alone():
    room, group, k = 4, 8, 2
    lists = torch.tensor([[5, 2, 0, 0]] * 5, dtype=torch.int32)
    counts = torch.tensor([2, 2, 2, 9, 2], dtype=torch.int32)
    costs = torch.full((5, room * group), 7.0, dtype=torch.float64)
    costs[:, :16] = torch.arange(100.0, 116.0)
    costs[0, [3, 9]] = torch.tensor([2.0, 1.0], dtype=torch.float64)
    costs[1, [3, 9]] = 1.0  # The best two are alike,
    costs[2, [3, 9, 10]] = torch.tensor([1.0, 2.0, 2.0 * (1 + 1e-13)], dtype=torch.float64)
    costs[4, [3, 9, 10]] = torch.tensor([1.0, 2.0, 2.0 * (1 + 1e-10)], dtype=torch.float64)
    ids = torch.zeros((5, k), dtype=torch.int32)
    values = torch.zeros((5, k), dtype=torch.float64)
    undecided = torch.zeros(5, dtype=torch.int8)
    kernels.pick[(5,)](
        costs,
        counts,
        lists,
        ids,
        values,
        undecided,
        k,
        TELLS_APART,
        ROOM=room,
        GROUP=group,
        BLOCK=room * group,
    )
    # A tie, the second beside a third, and more groups than there is room for are left over.
    assert undecided.tolist() == [0, 1, 1, 1, 0]
    assert ids[0].tolist() == [2 * group + 1, 5 * group + 3]
    assert ids[4].tolist() == [5 * group + 3, 2 * group + 1]
    assert values[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_decided_is_what_the_cpu_decides(kind, small_blocks):
    k = 1 if kind in ("duplicates", "many huge") else 2
    vectors = vectors_of(kind, 700, 18, seed=2)
    points = [points_near(vectors, 12, scale, kind=kind) for scale in (1e-3, 0.4, 30.0)]
    points = np.concatenate(points)
    on_cpu = Nearest(vectors, device="blas")
    scan = FusedScan(with_half_norms(vectors), True, "cpu")
    near = scan.nearest(torch.from_numpy(points), k)
    ids, distances, sure = completed(on_cpu, near, points, k)
    assert_sure_where_it_should_be(kind, sure)
    expected_ids, expected_distances = on_cpu.top(points, k)
    assert np.array_equal(ids, expected_ids)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-11)


def test_without_the_kernel_for_hopper_the_plain_one_is_used(small_blocks, monkeypatch):
    def fails(*arguments):
        raise RuntimeError

    hopper = SimpleNamespace(
        rows_in_shared_memory=lambda chunks, tile: 128, descriptor=fails, group_peaks=None
    )
    monkeypatch.setattr(fused_scan, "_hopper", lambda device: hopper)
    vectors = vectors_of("plain", 700, 18)
    points = points_near(vectors, 12, 0.4)
    scan = FusedScan(with_half_norms(vectors), True, "cpu")
    with pytest.warns(UserWarning, match="the kernel for Hopper does not run"):
        near = scan.nearest(torch.from_numpy(points), 1)
    assert (near.undecided == 0).all()
    assert np.array_equal(near.ids.numpy(), Nearest(vectors, device="blas").top(points, 1)[0])
