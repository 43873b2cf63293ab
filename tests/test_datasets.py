"""Hugging Face data sets: their cache never gives an earlier draw for a new one."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from cluster_data import SECRET, make_space, sanitizer
from integration_data import Hostile

from sottovoce import Obfuscator
from sottovoce.errors import SottovoceError
from sottovoce.integrations import dataset_function
from sottovoce.sanitizing import Sanitizer

datasets = pytest.importorskip("datasets")

HOW = {"batched": True, "with_indices": True, "batch_size": 4}


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """The ``map`` of data sets leaves a copy in the place of ``os.environ``, which others hold."""
    monkeypatch.setattr(os, "environ", os.environ)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets.disable_progress_bars()


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "small")


@pytest.fixture
def data(tmp_path):
    """A data set on disk: what is mapped from it is cached beside it."""
    texts = [f"wordaa wordab wordac {SECRET}"] * 12
    datasets.Dataset.from_dict({"text": texts}).save_to_disk(tmp_path / "data")
    return datasets.load_from_disk(tmp_path / "data")


def cached(data) -> set[Path]:
    return set(Path(data.cache_files[0]["filename"]).parent.glob("cache-*"))


def test_each_map_draws_anew_with_the_same_function_too(space, data):
    function = dataset_function(sanitizer(space, rng=None))
    mapped = [data.map(function, **HOW) for _ in range(3)]
    mapped.append(data.map(dataset_function(sanitizer(space, rng=None)), **HOW))
    assert len({new._fingerprint for new in mapped}) == 4
    assert len({tuple(new["text"]) for new in mapped}) == 4
    assert len(cached(data)) == 4
    assert not any(SECRET.encode() in file.read_bytes() for file in cached(data))


def test_with_a_seed_the_cache_serves(space, data):
    first = data.map(dataset_function(sanitizer(space)), **HOW)
    before = cached(data)
    again = data.map(dataset_function(sanitizer(space)), **HOW)
    assert first._fingerprint == again._fingerprint
    assert first["text"][:] == again["text"][:]
    assert cached(data) == before
    another = data.map(dataset_function(sanitizer(space, rng=2)), **HOW)
    assert another._fingerprint != first._fingerprint


def test_processes_do_not_share_their_draws(space, data):
    new = data.map(dataset_function(sanitizer(space, rng=None)), num_proc=2, **HOW)
    assert max(Counter(new["text"]).values()) < 4, "rows were drawn alike"


def test_a_failure_leaves_no_text_behind(data):
    hostile = Sanitizer(Obfuscator(Hostile()), ("text",))
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        data.map(dataset_function(hostile), **HOW)
    assert SECRET not in str(caught.value)
    assert cached(data) == set()
