"""Measures the mechanisms on a GPU, from word ids to word ids, beside what the chip could do.

    python benchmarks/gpu.py                 all sizes, peers and the check of a million words
    python benchmarks/gpu.py --quick         fewer words, no check

Vocabularies are random vectors with the lengths of GloVe's, unless --vectors names a .npy file for
the smallest. Figures are medians of ten runs, of three for `once` and the peers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.mahalanobis import Mahalanobis
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.mechanisms.vickrey import VickreyCMP
from sottovoce.randomness import Draws, secure_generator
from sottovoce.spaces.nearest import Nearest
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import with_half_norms

RUNS = 10
EPSILON = 10.0
CHECKED = 1_000_000
MOST_SECONDS = 60
POINTS, COMPARED, MOST_COMPARED = 1 << 16, 1 << 13, 50_000
"""What a peer is asked that holds no scores; how many of its answers are compared with exact ones,
in a vocabulary of at most so many words."""


@dataclass(frozen=True)
class Size:
    """A vocabulary, how many words are released in a run, and the goal."""

    words: int
    dimension: int
    released: int
    goal: float


SIZES = (
    Size(33_849, 300, 2_000_000, 15e6),
    Size(341_479, 100, 1_000_000, 4e6),
    Size(2_196_017, 300, 100_000, 375e3),
)


def main() -> None:
    """Print tables in Markdown; progress goes to standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer words, no check")
    parser.add_argument("--unchecked", action="store_true", help="all words, no check")
    parser.add_argument("--vectors", type=Path, metavar="NPY", help="vectors of the smallest size")
    parser.add_argument("--only", type=int, metavar="N", help="the N-th size alone, from 1 on")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all raw numbers")
    given = parser.parse_args()
    numbers: dict[str, Any] = {"chip": torch.cuda.get_device_name(), "torch": torch.__version__}
    numbers["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
    numbers["ceiling"] = ceiling()
    print(f"{numbers['chip']}, {numbers['date']}, torch {numbers['torch']}")
    print(f"a product of 8192 x 8192 halves: {numbers['ceiling']:.0f} TFLOP/s\n")
    sizes = SIZES if given.only is None else SIZES[given.only - 1 : given.only]
    numbers["sizes"] = []
    for size in sizes:
        real = np.load(given.vectors) if given.vectors and size is SIZES[0] else None
        numbers["sizes"].append(measure(size, real, given, numbers["ceiling"]))
        if given.json:
            given.json.write_text(json.dumps(numbers, indent=1))


def ceiling() -> float:
    """TFLOP/s of the library's own product."""
    a = torch.randn(8192, 8192, device="cuda").half()
    out = torch.empty_like(a)
    return 2 * 8192**3 / seconds(lambda: torch.matmul(a, a, out=out)) / 1e12


def seconds(work: Callable[[], Any], runs: int = RUNS) -> float:
    """The median time of ``work``, with all that the device does for it."""
    work()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return median(times)


def random_vectors(size: Size) -> np.ndarray:
    """Vectors with about the lengths of GloVe's: median 6.6, a few much longer."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    shape = (size.words, size.dimension)
    vectors = torch.randn(shape, device="cuda", generator=generator)
    lengths = torch.randn((size.words, 1), device="cuda", generator=generator)
    vectors *= 6.6 / size.dimension**0.5 * (0.2 * lengths).exp()
    return vectors.cpu().numpy()


def space_of(vectors: np.ndarray) -> WordSpace:
    """A space whose words have no names: mechanisms work on ids."""
    size = len(vectors)
    return WordSpace(
        name="made up",
        folded=with_half_norms(vectors),
        words=b"w" * size,
        offsets=np.arange(size + 1),
        table=np.full(2, -1, dtype=np.int32),
        sha256=str(size),
    )


def measure(
    size: Size, real: np.ndarray | None, given: argparse.Namespace, best: float
) -> dict[str, Any]:
    """All figures of one vocabulary."""
    vectors = random_vectors(size) if real is None else real
    space = space_of(vectors)
    released = size.released // (10 if given.quick else 1)
    ids = np.random.default_rng(1).integers(0, len(vectors), released)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    scan = space.nearest_output.fused
    assert scan is not None, "the kernels cannot be used here"
    numbers: dict[str, Any] = {
        "words": len(vectors),
        "dimension": size.dimension,
        "goal": size.goal,
        "prepared": time.perf_counter() - start,
        "rates": {},
    }
    flops = 2.0 * len(vectors) * size.dimension
    mechanisms: dict[str, NoiseMechanism] = {
        "cmp": CMP(space, epsilon=EPSILON),
        "vickrey-cmp": VickreyCMP(space, epsilon=EPSILON),
    }
    if size.words < 1_000_000:
        mechanisms["mahalanobis"] = Mahalanobis(space, epsilon=EPSILON)
    for name, mechanism in mechanisms.items():
        rng = secure_generator()
        took = seconds(lambda made=mechanism, rng=rng: made.sample(ids, 1, rng))
        numbers["rates"][name] = released / took
    once = ids[: max(1024, len(ids) // 10)]
    draws = Draws([(secure_generator(), len(once))])
    cmp = mechanisms["cmp"]
    took = seconds(lambda: cmp.draw_once(once, 20, draws), 3)
    numbers["rates"]["cmp, 20 off one point"] = len(once) / took
    numbers["memory"] = torch.cuda.max_memory_allocated() / 2**30
    numbers["parts"] = parts(cmp, ids[: scan.queries_at_once])
    numbers["undecided"] = undecided(cmp, ids)
    numbers["peers"] = peers(scan, size)
    if not (given.quick or given.unchecked):
        numbers["checked"] = check(space, cmp, size)
    say(numbers, flops, best)
    return numbers


def parts(mechanism: NoiseMechanism, ids: np.ndarray) -> dict[str, float]:
    """Milliseconds of each kernel for one block of words."""
    from sottovoce.spaces.gpu import fused_scan

    scan = mechanism.space.nearest_output.fused
    noise = mechanism.gpu_noise
    assert scan is not None
    assert noise is not None
    device = scan.device
    words = torch.from_numpy(ids).to(device)
    points = scan.table[words, : scan.dimension] + noise.draw(len(ids), device)[0]
    padded = -(-len(ids) // fused_scan.ROWS) * fused_scan.ROWS
    halves = torch.zeros((padded, scan.words.width), dtype=torch.half, device=device)
    halves[: len(ids), : scan.dimension] = points
    groups = scan.words.tiles // scan.words.steps * 4
    peaks = torch.empty((groups, padded), device=device)
    timed = {
        "noise": lambda: noise.draw(len(ids), device),
        "vectors": lambda: scan.table[words, : scan.dimension] + points,
        "products": lambda: scan._peaks(halves, peaks),
        "search in all": lambda: scan.nearest(points, 1),
    }
    return {"block": len(ids)} | {name: 1e3 * seconds(work) for name, work in timed.items()}


def undecided(mechanism: NoiseMechanism, ids: np.ndarray) -> float:
    """The share of words that were left to the CPU."""
    scan, noise = mechanism.space.nearest_output.fused, mechanism.gpu_noise
    assert scan is not None
    assert noise is not None
    words = torch.from_numpy(ids).to(scan.device)
    points = scan.table[words, : scan.dimension] + noise.draw(len(ids), scan.device)[0]
    return float(scan.nearest(points, 1).undecided.float().mean())


def peers(scan: Any, size: Size) -> dict[str, float]:
    """Words a second of what torch offers, for points that are on the device already."""
    rows = max(256, min(8192, (1 << 31) // size.words // 256 * 256))
    vectors = scan.table[:, : scan.dimension]
    points = vectors[:rows] + torch.randn((rows, scan.dimension), device="cuda")
    # bf16 with the half norm as one more column: fast, and not exact. Both sides are padded to
    # shapes that the library is fast with; no word of the padding can win.
    shape = (-(-size.words // 64) * 64, -(-(scan.dimension + 1) // 16) * 16)
    table = torch.zeros(shape, dtype=torch.bfloat16, device="cuda")
    table[:, scan.dimension] = -1e30
    table[: len(vectors), : scan.dimension + 1] = scan.table.bfloat16()
    queries = torch.zeros((rows, shape[1]), dtype=torch.bfloat16, device="cuda")
    queries[:, : scan.dimension], queries[:, scan.dimension] = points.bfloat16(), 1.0
    contiguous = vectors.contiguous()
    works: dict[str, Callable[[], Any]] = {
        "torch.cdist + argmin (float32)": lambda: torch.cdist(points, contiguous).argmin(dim=1),
        "bf16 product + argmax (not exact)": lambda: (queries @ table.T).argmax(dim=1),
        "bf16 product alone": lambda: queries @ table.T,
    }
    rates = {}
    for name, work in works.items():
        try:
            rates[name] = rows / seconds(work, 3)
        except torch.OutOfMemoryError:
            print(f"{name}: not enough memory", file=sys.stderr)
    return rates | assignments(contiguous)


def assignments(vectors: torch.Tensor) -> dict[str, float]:
    """Words a second of the assignment step of flash-kmeans, where that is installed.

    It computes in the precision of what it is given, and decides by that. It holds no scores, so
    it gets enough points to fill the chip.
    """
    if importlib.util.find_spec("flash_kmeans") is None:
        print("flash-kmeans: not installed", file=sys.stderr)
        return {}
    import triton
    from flash_kmeans.assign_euclid_triton import euclid_assign_triton

    chosen = torch.arange(POINTS, device="cuda") % len(vectors)
    points = vectors[chosen] + torch.randn((POINTS, vectors.shape[1]), device="cuda")
    rates = {}
    for kind in (torch.float16, torch.float32):
        rows, words = points.to(kind)[None], vectors.to(kind)[None]
        squares, lengths = (part.float().square().sum(dim=2) for part in (rows, words))
        work = partial(euclid_assign_triton, rows, words, squares, c_sq=lengths)
        name = f"flash-kmeans, assignment ({str(kind).removeprefix('torch.')}, not exact)"
        try:
            rates[name] = POINTS / seconds(work, 3)
        except triton.runtime.OutOfResources:
            print(f"{name}: the blocks that it chooses do not fit into this chip")
            continue
        if len(vectors) <= MOST_COMPARED:
            some = slice(0, COMPARED)
            exact = torch.cdist(points[some].double(), vectors.double()).argmin(dim=1)
            others = int((work()[0, some] != exact).sum())
            print(f"{name}: {others} of {COMPARED} words are not the nearest")
    return rates


def check(space: WordSpace, mechanism: NoiseMechanism, size: Size) -> dict[str, float]:
    """How many ids differ from the CPU's, and from those of float64 on the device: none may."""
    scan, noise = space.nearest_output.fused, mechanism.gpu_noise
    assert scan is not None
    assert noise is not None
    counts = {"by float64": 0, "other by float64": 0, "by the CPU": 0, "other by the CPU": 0}
    on_cpu = CHECKED if size.words < 100_000 else int(1e13 / (size.words * size.dimension))
    cpu = Nearest.from_folded(space.folded, device="blas")
    rng = np.random.default_rng(3)
    table = scan.table[:, : scan.dimension].double()
    half_norms = table.square().sum(dim=1) / 2
    step = 1 << 14
    end = time.perf_counter() + MOST_SECONDS
    for start in range(0, CHECKED, step):
        count = min(step, CHECKED - start)
        words = torch.from_numpy(rng.integers(0, space.size, count)).to(scan.device)
        points = scan.table[words, : scan.dimension] + noise.draw(count, scan.device)[0]
        near = scan.nearest(points, 1)
        ids = near.ids[:, 0].long()
        left = near.undecided.nonzero()[:, 0]
        if len(left):
            exact = space.nearest_output.top(points[left].cpu().numpy(), 1)[0]
            ids[left] = torch.from_numpy(exact[:, 0]).to(ids.device)
        if start < on_cpu:
            part = min(count, on_cpu - start)
            expected = cpu.top(points[:part].cpu().numpy(), 1)[0][:, 0]
            counts["other by the CPU"] += int((ids[:part].cpu().numpy() != expected).sum())
            counts["by the CPU"] += part
        best = torch.full((count,), -torch.inf, dtype=torch.float64, device=scan.device)
        winner = torch.zeros((count,), dtype=torch.long, device=scan.device)
        wide = max(1024, (1 << 28) // count)
        for first in range(0, space.size, wide):
            scores = points.double() @ table[first : first + wide].T
            scores -= half_norms[first : first + wide]
            top, at = scores.max(dim=1)
            better = top > best
            best, winner = top.where(better, best), (at + first).where(better, winner)
        counts["other by float64"] += int((ids != winner).sum())
        counts["by float64"] += count
        if time.perf_counter() > end:
            break
    return counts


def say(numbers: dict[str, Any], flops: float, best: float) -> None:
    """One vocabulary as Markdown."""
    print(f"## {numbers['words']:,} x {numbers['dimension']}\n")
    print("| | words/s | TFLOP/s | of the library's product |\n|---|--:|--:|--:|")
    for name, rate in (numbers["rates"] | numbers["peers"]).items():
        reached = rate * flops / 1e12
        print(f"| {name} | {rate:,.0f} | {reached:.0f} | {reached / best:.0%} |")
    listed = ", ".join(f"{name} {value:.3g}" for name, value in numbers["parts"].items())
    print(f"\none block (ms): {listed}")
    print(
        f"goal {numbers['goal']:,.0f}; memory {numbers['memory']:.2f} GiB; prepared in "
        f"{numbers['prepared']:.1f} s; left to the CPU {numbers['undecided']:.2%}"
    )
    print(f"checked: {numbers.get('checked')}\n", flush=True)


if __name__ == "__main__":
    main()
