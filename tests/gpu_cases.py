"""Vocabularies that are hard for the search on a GPU, and what its kernels are compared with."""

from __future__ import annotations

import numpy as np

KINDS = (
    "plain",
    "lengths",
    "huge",
    "many huge",
    "duplicates",
    "near ties",
    "zeros",
    "lattice",
    "one outlier",
)
TIES = ("duplicates", "near ties", "zeros", "lattice")
"""Kinds in which some points have two nearest words at the same distance."""
SLOW = ("huge", "many huge", "one outlier", "zeros")
"""Kinds in which float32 tells too little apart: the CPU takes long."""


def vectors_of(kind, size, dimension, seed=0):
    """Vocabularies that are hard in one way or another."""
    rng = np.random.default_rng(seed)
    vectors = 0.4 * rng.standard_normal((size, dimension))
    if kind == "lengths":
        vectors *= rng.uniform(0.01, 3, (size, 1))
    elif kind == "huge":
        vectors[:: size // 3] *= 1e5
    elif kind == "many huge":  # In more groups than there is room for.
        vectors[:: size // 40] *= 1e5
    elif kind == "duplicates":
        vectors[-(size // 4) :] = vectors[: size // 4]
    elif kind == "near ties":  # Mirror images, of which every other one is a hair's breadth off.
        vectors[1::2] = vectors[: size - 1 : 2]
        vectors[1::2, -1] *= -1
        vectors[1::4, -1] *= 1 + 2.0**-20
    elif kind == "zeros":
        vectors[::3] = 0
    elif kind == "lattice":
        vectors = np.rint(2 * vectors) / 2
    elif kind == "one outlier":
        vectors[:, 3] *= 40
        vectors[17] *= 1000
    return vectors.astype(np.float32)


def points_near(vectors, count, scale, seed=1, kind="plain"):
    """Words with noise; where the kind has ties, at places where they occur."""
    rng = np.random.default_rng(seed)
    noise = scale * rng.standard_normal((count, vectors.shape[1]))
    points = vectors[rng.integers(0, len(vectors), count)] + noise
    if kind == "near ties":
        points[:, -1] = 0  # As far from a word as from its mirror image.
    elif kind == "lattice":
        points = np.rint(2 * points) / 2
    return points.astype(np.float32)


def keystream(key: bytes, nonce: tuple[int, int, int], blocks: int, first: int = 0) -> np.ndarray:
    """ChaCha20 as RFC 8439 writes it down, (blocks, 16)."""
    mask = 0xFFFFFFFF

    def quarter(x, a, b, c, d):
        for left, right, low, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[left] = (x[left] + x[right]) & mask
            mixed = x[low] ^ x[left]
            x[low] = (mixed << by | mixed >> (32 - by)) & mask

    out = []
    for counter in range(first, first + blocks):
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
        start += [*np.frombuffer(key, "<u4").tolist(), counter, *nonce]
        x = list(start)
        for _ in range(10):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
                quarter(x, a, b, c, d)
            for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                quarter(x, a, b, c, d)
        out.append([(i + s) & mask for i, s in zip(x, start, strict=True)])
    return np.array(out, dtype=np.uint32)


def expected_noise(key: bytes, row: int, dimension: int, epsilon: float):
    """Noise and uniform variate of a row, by the formulas in float64."""
    words = keystream(key, (row, 0, 0), max(2, -(-dimension // 6))).astype(np.float64)

    def minus_log(high, low):
        return -np.log((high * 2.0**32 + low + 0.5) * 2.0**-64)

    squares = np.stack([minus_log(words[:, 3 * i], words[:, 3 * i + 1]) for i in range(3)], 1)
    more = np.stack([minus_log(words[:, 9 + 2 * i], words[:, 10 + 2 * i]) for i in range(3)], 1)
    angles = (words[:, 2:9:3] + 0.5) / 2**32 * 2 * np.pi - np.pi / 4
    pairs = (dimension + 1) // 2
    lengths = np.sqrt(2 * squares)
    normal = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=2)
    normal = normal.ravel()[:dimension]
    radius = squares.ravel()[:pairs].sum() + more.ravel()[: dimension - pairs].sum()
    uniform = (words[0, 15] * 2**21 + np.floor(words[1, 15] / 2**11)) * 2.0**-53
    return normal / np.linalg.norm(normal) * radius / epsilon, uniform


def completed(search, near, points, k):
    """Ids and distances as they are released: what the device left over, the CPU decides.

    Beside them which rows the device was sure of.
    """
    sure = near.undecided.cpu().numpy() == 0
    ids, distances = near.ids.cpu().numpy().astype(np.int64), near.costs.sqrt().cpu().numpy()
    if not sure.all():
        ids[~sure], distances[~sure] = search.top(points[~sure], k)
    return ids, distances, sure


def assert_sure_where_it_should_be(kind, sure):
    """The device decides most points by itself, and no tie."""
    if kind != "many huge":
        assert sure.any(), "the kernels leave everything to the CPU"
    if kind in TIES:
        assert not sure.all(), "no tie was left to the CPU: none occurs, or none is noticed"
