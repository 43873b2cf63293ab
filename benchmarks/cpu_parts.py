"""Where the time of a noise mechanism goes, by processor time, so also on a busy machine.

    python benchmarks/cpu_parts.py glove-840b-34k

Times are those of a block of words, in units of what the bound needs for it (``worker_bound.py``),
timed before and after each: medians. Then two threads: how much processor time a word takes next to
one thread, what two quiet cores could reach at most, given who has to wait for whom, and what is
reached by the clock, batches with one and with two threads taking turns, on a quiet machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from threading import get_ident
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

import sottovoce
from sottovoce.mechanisms import noise
from sottovoce.randomness import Draws, secure_generator
from sottovoce.spaces.scan import QUERIES, WORDS, BlasScan, Tracker
from sottovoce.threads import set_threads, single_threaded_blas

MECHANISMS = ("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis")
SIDE, ROUNDS, BATCH, EPSILON = 2048, 9, 1000, 10.0


def seconds(work: Callable[[], object]) -> float:
    """Processor time of a call."""
    begin = process_time()
    work()
    return process_time() - begin


def bound_seconds(space: Any) -> Callable[[], float]:
    """What the bound needs for a block of words, timed now."""
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((SIDE, SIDE), dtype=np.float32) for _ in range(2))
    product = np.empty_like(left)
    share = QUERIES * space.size * space.dimension / SIDE**3
    return lambda: share * seconds(lambda: np.matmul(left, right, out=product))


def multiply(scan: BlasScan, points: Any, then: Callable[[Any, int, int], object]) -> None:
    """The products of the scan in float32, a block of words at a time, and what follows."""
    queries = np.ascontiguousarray(scan.bound.queries(points).T)
    buffer = np.empty((WORDS, len(points)), dtype=np.float32)
    for start in range(0, len(scan.operand), WORDS):
        block = scan.operand[start : start + WORDS]
        np.matmul(block, queries, out=buffer[: len(block)])
        then(buffer, start, len(block))


def parts(space: Any) -> dict[str, Callable[[], object]]:
    """What is timed: each with all that comes before it in its own row."""
    rng = secure_generator()
    ids = np.random.default_rng(2).integers(0, space.size, QUERIES)
    mechanism = sottovoce.mechanism("cmp", space=space, epsilon=EPSILON)
    points = mechanism.perturb(ids, Draws([(rng, QUERIES)]))
    exact = points.astype(np.float64)
    search = space.nearest_output
    in_floats, coded = search.scan.first, search.scan.then

    def maxima(scores: Any, start: int, count: int) -> None:  # noqa: ARG001
        np.maximum.reduce(scores.reshape(-1, 64, QUERIES), axis=0)

    def tracked(k: int) -> None:
        tracker = Tracker(k, in_floats.bound.slack(points))
        multiply(in_floats, points, tracker.see)
        tracker.candidates()

    work: dict[str, Callable[[], object]] = {
        "noise": lambda: mechanism.perturb(ids, Draws([(rng, QUERIES)])),
        "float32: products": lambda: multiply(in_floats, points, lambda *_: None),
        "float32: products and maxima of lanes": lambda: multiply(in_floats, points, maxima),
    }
    for k in (1, 2, 20):
        near = in_floats.candidates(points, k)
        work[f"k = {k}, float32: candidates"] = lambda k=k: tracked(k)
        if coded is not in_floats:
            work[f"k = {k}, codes: candidates"] = lambda k=k: coded.candidates(points, k)
        work[f"k = {k}: decision"] = lambda k=k, near=near: search.decide(
            exact, near.rows, near.columns, k
        )
    return work


def two_threads(mechanism: Any, ids: Any) -> tuple[float, float, float]:
    """Processor time of a batch next to one thread; of twice the rate, the most that can be had.

    Then what is had by the clock.
    """
    rng, spent, real = secure_generator(), dict[int, float](), noise.parallel_map

    def watched(work: Callable[[Any], Any], items: Any) -> Any:
        def timed(item: Any) -> Any:
            begin = thread_time()
            answer = work(item)
            spent[get_ident()] = spent.get(get_ident(), 0.0) + thread_time() - begin
            return answer

        return real(timed, items)

    ratios, reached, clock = [], [], []
    for _ in range(ROUNDS):
        set_threads(1)
        start = perf_counter()
        alone = seconds(lambda: mechanism.sample(ids, 1, rng))
        alone_by_clock = perf_counter() - start
        set_threads(2)
        spent.clear()
        noise.parallel_map = watched
        start, begin = perf_counter(), thread_time()
        together = seconds(lambda: mechanism.sample(ids, 1, rng))
        serial = thread_time() - begin
        clock.append(alone_by_clock / 2 / (perf_counter() - start))
        noise.parallel_map = real
        ratios.append(together / alone)
        # No thread works while the first one prepares, and the last one is waited for.
        reached.append(alone / 2 / (serial + max(spent.values())))
    return median(ratios), median(reached), median(clock)


def main() -> None:
    """Measure and print."""
    space = sottovoce.load_space(sys.argv[1] if len(sys.argv) > 1 else "glove-840b-34k")
    space.nearest_output.warm_up()
    bound, work, times = bound_seconds(space), parts(space), dict[str, list[float]]()
    with single_threaded_blas():
        for _ in range(ROUNDS):
            for name, part in work.items():
                before, own = bound(), seconds(part)
                times.setdefault(name, []).append(2 * own / (before + bound()))
    print(f"{space.size:,} x {space.dimension}, a block of {QUERIES} words; the bound is 1")
    for name, shares in times.items():
        print(f"  {name:40} {median(shares):.3f}")
    print("two threads: processor time of a word next to one thread; of twice the rate, at most;")
    print("by the clock")
    ids = np.random.default_rng(3).integers(0, space.size, BATCH)
    for name in MECHANISMS:
        mechanism = sottovoce.mechanism(name, space=space, epsilon=EPSILON)
        growth, reached, clock = two_threads(mechanism, ids)
        print(f"  {name:40} {growth:.3f}  {reached:.0%}  {clock:.0%}")


if __name__ == "__main__":
    main()
