"""Kernels that do not run on somebody's GPU: slower ways give the same words, with a warning.

No GPU is needed: torch on the processor stands in for one, with kernels that fail.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")

from sottovoce import mechanisms  # noqa: E402
from sottovoce.mechanisms.vickrey import VickreyCMP  # noqa: E402
from sottovoce.randomness import secure_generator  # noqa: E402
from sottovoce.spaces import gpu  # noqa: E402
from sottovoce.spaces.gpu import fused_scan  # noqa: E402
from sottovoce.spaces.gpu.fallback import if_it_runs  # noqa: E402
from sottovoce.spaces.gpu.fused_scan import FusedScan  # noqa: E402
from sottovoce.spaces.nearest import Nearest  # noqa: E402
from sottovoce.spaces.space import WordSpace  # noqa: E402
from sottovoce.spaces.store import with_half_norms  # noqa: E402

SIZE, DIMENSION = 700, 12
SECRET = "melanoma"


class CompilationError(Exception):
    """As Triton's, with what must not be told."""


class Kernel:
    """Started as ``kernel[grid](…)``: writes its name down, then does what it was told to."""

    def __init__(self, name, launches, run):
        self.name, self.launches, self.run = name, launches, run

    def __getitem__(self, grid):
        def launch(*arguments, **constants):
            self.launches.append(self.name)
            self.run(*arguments)

        return launch


def fails(*arguments):
    raise CompilationError(SECRET)


def does_nothing(*arguments):
    pass


@pytest.fixture
def launches(monkeypatch):
    """Which kernels were started; all but those that only prepare fail."""
    started = []
    names = ("code_queries", "group_peaks", "near_groups", "group_costs", "pick")
    runs = {"code_queries": does_nothing}
    plain = {name: Kernel(name, started, runs.get(name, fails)) for name in names}
    described = {"descriptor": lambda *arguments: None}
    monkeypatch.setattr(gpu, "kernels", SimpleNamespace(**plain, **described), raising=False)
    hopper = SimpleNamespace(
        group_peaks=Kernel("hopper", started, fails),
        rows_in_shared_memory=lambda chunks, tile: 128,
        STAGES=4,
        WARPS=8,
        **described,
    )
    monkeypatch.setattr(fused_scan, "_hopper", lambda device: hopper)
    return started


@pytest.fixture
def vectors():
    return np.random.default_rng(1).standard_normal((SIZE, DIMENSION)).astype(np.float32)


@pytest.fixture
def space(vectors):
    """A space that is searched by a fused scan, on the processor."""
    made = WordSpace.from_arrays([f"word{place}" for place in range(SIZE)], vectors)
    made.nearest_output.scan = FusedScan(with_half_norms(vectors), True, "cpu")
    return made


@pytest.fixture
def noise_kernel(launches, monkeypatch):
    """Lets a test say what the kernel for noise does."""

    def set_to(run):
        kernel = Kernel("noise", launches, run)
        stub = SimpleNamespace(spherical_noise=kernel)
        monkeypatch.setattr(mechanisms, "gpu_noise_kernels", stub, raising=False)

    return set_to


def warned(action):
    """What an action answers, and the sentences that it warns with."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        answer = action()
    return answer, [str(warning.message) for warning in told]


@pytest.mark.parametrize("k", [1, 3])
def test_a_search_whose_kernels_fail_answers_like_the_processor(space, vectors, launches, k):
    points = vectors[:40] + np.float32(0.3)
    (ids, distances), told = warned(lambda: space.nearest_output.top(points, k))
    expected_ids, expected_distances = Nearest(vectors, device="blas").top(points, k)
    assert np.array_equal(ids, expected_ids)
    assert np.array_equal(distances, expected_distances)
    assert launches == ["code_queries", "hopper", "group_peaks"]
    assert [sentence.split(" (")[0] for sentence in told] == [
        "the kernel for Hopper does not run on this GPU",
        "the fused search does not run on this GPU",
    ]
    assert all("CompilationError" in sentence for sentence in told)
    assert SECRET not in "".join(told)


def test_what_failed_once_is_not_tried_again(space, vectors, launches):
    warned(lambda: space.nearest_output.top(vectors[:5], 1))
    launches.clear()
    ids, told = warned(lambda: space.nearest_output.top(vectors[:5], 2)[0][:, 0].tolist())
    assert (ids, told, launches) == ([0, 1, 2, 3, 4], [], [])


def test_without_noise_of_the_gpu_the_processor_draws(space, launches, noise_kernel):
    noise_kernel(fails)
    chosen = VickreyCMP(space, epsilon=3.0)
    on_gpu, told = warned(lambda: chosen.draws_on_gpu(secure=True))
    assert not on_gpu
    assert len(told) == 1
    assert told[0].startswith("the kernel for noise does not run on this GPU (CompilationError)")
    drawn, _ = warned(lambda: chosen.sample(np.arange(50), 4, secure_generator()))
    assert drawn.shape == (4, 50)
    assert (drawn != np.arange(50)).any()
    assert launches.count("noise") == 1


def test_noise_of_the_gpu_is_searched_for_elsewhere(space, launches, noise_kernel):
    """Without any noise each word is the nearest to itself."""

    def no_noise(key, noise, uniforms, epsilon):
        noise.zero_()
        uniforms.zero_()

    noise_kernel(no_noise)
    chosen = VickreyCMP(space, epsilon=3.0, weights=(1.0, 1.0))
    ids = np.arange(SIZE)
    drawn, told = warned(lambda: chosen.sample(ids, 1, secure_generator())[0])
    assert np.array_equal(drawn, ids)
    assert len(told) == 2
    assert launches.count("noise") == 2  # Tried once, then used.


def test_too_little_memory_is_no_reason_to_go_on():
    def too_large():
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        if_it_runs(too_large, "it", "something else runs")
