"""Tests of what ``cover.py`` does in its own way because it is faster."""

# ruff: noqa: D103 - the names say it

from __future__ import annotations

import numpy as np
import pytest
from cover import Groups
from cover_bench import KnownVectors, chance_of_truth

from sottovoce import mechanism
from sottovoce.pools import Pool, load_pool


@pytest.fixture(scope="module")
def pool() -> Pool:
    return load_pool("demo", "light")


@pytest.mark.parametrize("m", [1, 3])
def test_groups_are_those_that_cover_sends(pool: Pool, m: int) -> None:
    cover = mechanism(f"cover:k=7,m={m}", pool=pool)
    sets = cover.release(["debt advice", "skin cancer"], rng=1)
    groups = Groups(cover, sets)
    for heads in sets:
        assert groups.places(heads).tolist() == sorted(cover.group(heads))


def test_known_vectors_are_the_encoder_s(pool: Pool) -> None:
    known = KnownVectors(pool.encoder, pool.strings[:100], pool.vectors[:100])
    texts = [pool.strings[7], "a text that no pool holds", pool.strings[3]]
    assert np.array_equal(known.encode(texts), pool.encoder.encode(texts))


def test_equals_are_drawn_by_lot() -> None:
    scores = np.array([1.0, 3.0, 3.0])
    assert chance_of_truth(scores, 2) == 0.5
    assert chance_of_truth(scores, 0) == chance_of_truth(scores, -1) == 0
