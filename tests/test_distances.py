"""Distances in tiles, and groups, against the obvious way to compute them."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce import WordSpace, mechanism
from sottovoce.mechanisms.custext import disjoint_groups
from sottovoce.spaces import distances
from sottovoce.spaces.distances import Distances, Ranges, smallest


def obvious(space, words, targets, measure):
    left, right = space.vectors[words].astype(float), space.vectors[targets].astype(float)
    euclidean = np.linalg.norm(left[:, None] - right, axis=2)
    norms = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)
    angle = 1 - np.divide(left @ right.T, norms, out=np.zeros_like(norms), where=norms > 0)
    angle[words[:, None] == targets] = 0
    return {"euclidean": euclidean, "angle": angle, "product": euclidean * angle}[measure]


@pytest.mark.parametrize("measure", ["euclidean", "angle", "product"])
def test_rows_and_pairs_are_exact(small_space, measure, monkeypatch):
    monkeypatch.setattr(distances, "WORDS_AT_A_TIME", 7)
    monkeypatch.setattr(distances, "TARGETS_AT_A_TIME", 300)
    words, targets = np.array([0, 3, 5, 8, 13, 21, 34, 55, 1999]), np.arange(1, 2000, 2)
    found = Distances(small_space, targets, measure)
    expected = obvious(small_space, words, targets, measure)
    assert found.rows(words) == pytest.approx(expected, abs=1e-12)
    pairs = found.pairs(np.repeat(words, 4), np.tile(targets[[0, 1, 500, 999]], 9))
    assert pairs == pytest.approx(expected[:, [0, 1, 500, 999]].ravel(), abs=1e-12)
    everything = Distances(small_space, np.arange(2000), measure).rows(words)
    assert (everything[np.arange(9), words] == 0).all()


@pytest.mark.parametrize("measure", ["euclidean", "angle"])
def test_words_that_nearly_coincide_keep_their_digits(measure):
    vectors = np.full((3, 50), 7.0, dtype=np.float32)
    vectors[1, 0] = np.nextafter(np.float32(7), np.float32(8))
    vectors[2] = 0
    space = WordSpace.from_arrays(["a", "b", "zero"], vectors)
    rows = Distances(space, np.arange(3), measure).rows(np.arange(3))
    if measure == "euclidean":
        gap = float(vectors[1, 0]) - 7
        assert rows[0, 1] == pytest.approx(gap, rel=1e-12)
    assert rows[2, 0] == (1 if measure == "angle" else pytest.approx(7 * np.sqrt(50)))
    assert rows[2, 2] == 0


def test_groups_are_those_of_the_plain_algorithm(small_space):
    words = np.arange(0, 2000, 3)
    for size in (2, 7, 20, 666, 5000):
        found = disjoint_groups(small_space, words, size, "euclidean")
        assert np.array_equal(found, plain_groups(small_space, words, size)), size


def plain_groups(space, words, size):
    vectors = space.vectors[words].astype(float)
    group, number = np.full(len(words), -1), 0
    for word in range(len(words)):
        if group[word] < 0:
            free = np.flatnonzero(group < 0)
            far = np.linalg.norm(vectors[free] - vectors[word], axis=1)
            group[free[np.argsort(far, kind="stable")[:size]]] = number
            number += 1
    return group


def test_smallest_breaks_ties_by_place():
    rows = np.array([[2.0, 1.0, 1.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    assert smallest(rows, 3).tolist() == [[4, 1, 2], [0, 1, 2]]
    assert smallest(rows, 5).tolist() == [[4, 1, 2, 0, 3], [0, 1, 2, 3, 4]]


def test_groups_are_kept_beside_a_space_on_disk(tmp_path, small_space, monkeypatch):
    from sottovoce.spaces.formats import import_vectors

    lines = [f"w{i} " + " ".join(map(str, row)) for i, row in enumerate(small_space.vectors[:200])]
    (tmp_path / "v.txt").write_text("\n".join(lines))
    import_vectors(tmp_path / "v.txt", tmp_path / "space", name="kept")
    ids = np.arange(200)
    law = mechanism("custext", space=WordSpace.open(tmp_path / "space")).log_probabilities(ids)
    (kept,) = (tmp_path / "space").glob("groups-*.npy")
    calls = []
    monkeypatch.setattr("sottovoce.mechanisms.custext.disjoint_groups", lambda *a: calls.append(a))
    again = mechanism("custext", space=WordSpace.open(tmp_path / "space"))
    assert np.array_equal(again.log_probabilities(ids), law)
    assert not calls
    monkeypatch.undo()
    kept.write_bytes(b"damaged")
    again = mechanism("custext", space=WordSpace.open(tmp_path / "space"))
    assert np.array_equal(again.log_probabilities(ids), law)
    assert kept.stat().st_size > 500


@pytest.mark.parametrize("expected", [10, 10_000])
def test_words_within_a_distance_are_all_found(small_space, expected):
    targets = np.arange(0, 2000, 2)
    words = np.array([4, 5, 1000, 1999])
    far = obvious(small_space, words, targets, "euclidean")
    # One reach lies exactly on a word.
    reaches = np.array([3.0, np.sort(far[1])[7], 0.0, 100.0])
    found = Ranges(small_space, targets).within(words, reaches, np.full(4, expected))
    for row, (places, distances_) in enumerate(found):
        inside = np.flatnonzero(far[row] <= reaches[row] + 1e-12)
        assert set(inside) - set(places) <= {np.argsort(far[1])[7]}
        assert set(places) <= set(inside)
        assert (np.diff(places) > 0).all()
        assert distances_ == pytest.approx(far[row][places], abs=1e-12)
    assert [len(places) for places, _ in found][2:] == [1, 1000]
