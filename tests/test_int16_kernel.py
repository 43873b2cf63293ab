"""The compiled products of 16-bit codes: exact up to the longest rows that codes can have."""

from __future__ import annotations

import importlib.util
import inspect

import numpy as np
import pytest

from sottovoce.spaces.int16_scan import _packed, kernel

LONGEST = 1 << 15
"""The length that no row of codes exceeds."""


@pytest.fixture(scope="module")
def wide():
    if kernel() is None:
        pytest.skip("no numba (extra fast), or no AVX2 in this processor")
    return kernel()


@pytest.fixture(scope="module")
def narrow(wide, tmp_path_factory):
    """With vectors half as wide, as without AVX-512; in a file of its own, so kept by itself."""
    source = inspect.getsource(wide)
    file = tmp_path_factory.mktemp("kernel") / "narrow_kernel.py"
    file.write_text(source.replace('bool(_features.get("avx512bw"))', "False"))
    spec = importlib.util.spec_from_file_location("narrow_kernel", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.LANES == 8
    return module


@pytest.fixture(params=["wide", "narrow"])
def compiled(request):
    return request.getfixturevalue(request.param)


def longest_rows(rng, count, dimension):
    """Rows of codes as long as allowed: one column, two, equal ones, random ones; both signs."""
    rows = rng.standard_normal((count, dimension))
    rows[0::4] = np.eye(dimension)[rng.integers(0, dimension, len(rows[0::4]))]
    rows[1::4] = 0
    rows[1::4, -2:] = 1
    rows[2::4] = 1
    rows *= LONGEST / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.trunc(rows) * rng.choice([-1, 1], (count, 1))
    # 2^15 is no code, its negative is.
    return np.minimum(rows, LONGEST - 1)


def all_scores(compiled, words, queries, k=1, margin=1e10):
    """What the race keeps, as a table of scores; -inf where it kept nothing."""
    panel, together = compiled.PANEL, compiled.ROWS
    panels, groups = -(-len(words) // panel), -(-len(queries) // together)
    half_norms = np.full(panels * panel, np.inf, np.float32)
    half_norms[: len(words)] = 0
    bars = np.full(groups * together, np.inf, np.float32)
    bars[: len(queries)] = -np.inf
    room = 4 * panels * panel * groups * together
    rows, columns = np.empty((2, room), np.int32)
    scores = np.empty(room, np.float32)
    count = compiled.race(
        _packed(words, panel),
        half_norms,
        _packed(queries, together),
        np.ones(len(bars), np.float32),
        np.full(len(bars), margin, np.float32),
        np.full((len(bars), k), -np.inf, np.float32),
        bars,
        rows,
        columns,
        scores,
    )
    table = np.full((len(queries), len(words)), -np.inf, np.float32)
    table[rows[:count], columns[:count]] = scores[:count]
    assert (table > -np.inf).sum() == count, "no pair comes twice"
    return table


def exact_products(words, queries):
    return queries.astype(np.int64) @ words.astype(np.int64).T


@pytest.mark.parametrize("dimension", [2, 3, 100, 301])
def test_products_of_the_longest_rows_are_exact(compiled, dimension):
    rng = np.random.default_rng(dimension)
    words, queries = (longest_rows(rng, count, dimension) for count in (203, 61))
    exact = exact_products(words, queries)
    assert np.abs(exact).max() > 0.99 * LONGEST**2, "the case is too easy to prove anything"
    assert np.array_equal(all_scores(compiled, words, queries), exact.astype(np.float32))


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_exactly_what_comes_near_the_kth_best_is_kept(compiled, k):
    rng = np.random.default_rng(k)
    # Few different scores, so that there are masses of ties.
    words, queries = (rng.integers(-9, 10, (count, 12)).astype(float) for count in (500, 33))
    exact = exact_products(words, queries)
    bars = np.sort(exact, axis=1)[:, -k] - 30
    expected = np.where(exact >= bars[:, None], exact, -np.inf).astype(np.float32)
    assert np.array_equal(all_scores(compiled, words, queries, k, 30.0), expected)


def test_product_and_sum_are_one_instruction_where_the_processor_has_it(wide):
    """LLVM joins them."""
    from llvmlite import binding
    from numba import njit

    features = binding.get_host_cpu_features()
    if not (features.get("avx512vnni") if wide.IS_WIDE else features.get("avxvnni")):
        pytest.skip("no 16-bit dot products in this processor")
    all_scores(wide, np.ones((1, 2)), np.ones((1, 2)))
    race = njit(nogil=True)(wide.race.py_func)
    race.compile(wide.race.signatures[0])
    (code,) = race.inspect_asm().values()
    assert code.count("vpdpwssd") >= wide.ROWS * wide.VECTORS
    assert "vpmaddwd" not in code


def test_no_queries_have_no_candidates(compiled):
    assert all_scores(compiled, np.ones((3, 2)), np.ones((0, 2))).shape == (0, 3)
