"""Spaces that tests share. The default one is real; where it is missing, tests say so."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from sottovoce.collections import load_judged_queries
from sottovoce.errors import SottovoceError, SpaceError
from sottovoce.language.wordnet import WordNet, load_wordnet
from sottovoce.resources.local import load_space
from sottovoce.spaces.space import UNKNOWN, WordSpace
from sottovoce.spaces.store import SpaceWriter
from sottovoce.testing import toy_space
from sottovoce.text.words import words

settings.register_profile(
    "tests",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    # Continuous integration judges a change, not the luck of its examples.
    derandomize="CI" in os.environ,
)
settings.load_profile("tests")


@pytest.fixture
def memory_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where waiting for the disk takes no time; else one on disk."""
    if not os.access("/dev/shm", os.W_OK) or shutil.disk_usage("/dev/shm").free < 1 << 28:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="sottovoce-tests-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of their own for the tests of a file: vectors of made-up pools go there."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOTTOVOCE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def toy() -> WordSpace:
    return toy_space()


@pytest.fixture(scope="session")
def default_space() -> WordSpace:
    try:
        return load_space("glove-840b-34k")
    except SpaceError:
        pytest.skip("the word space is not here: sottovoce spaces add default")


@pytest.fixture(scope="session")
def everyday_words(default_space: WordSpace, tmp_path_factory: pytest.TempPathFactory) -> WordSpace:
    """A sixth of the default space, on disk: its most frequent words and those of demo queries.

    What takes all pairs of words takes 3 % of the time here.
    """
    asked = {word for query in load_judged_queries("demo").values() for word in words(query)}
    known = [place for place in default_space.ids(sorted(asked)).tolist() if place != UNKNOWN]
    ids = np.union1d(np.arange(6000), known)
    folder, dimension = tmp_path_factory.mktemp("spaces") / "everyday", default_space.dimension
    with SpaceWriter(folder, name="everyday", dimension=dimension, source={}) as writer:
        writer.append(default_space.words(ids), default_space.vectors[ids])
        writer.commit()
    return load_space(str(folder))


@pytest.fixture(scope="session")
def wordnet() -> WordNet:
    try:
        return load_wordnet()
    except SottovoceError:
        pytest.skip("WordNet is not here: sottovoce spaces add wordnet")


@pytest.fixture(scope="session")
def small_space() -> WordSpace:
    """Two thousand made-up words in twenty dimensions, more spread in some than in others."""
    vectors = np.random.default_rng(42).standard_normal((2000, 20)) * np.linspace(0.3, 2, 20)
    return WordSpace.from_arrays([f"word{i}" for i in range(2000)], vectors, name="small")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real collections for development; they are not part of the project."""
    folder = Path(os.environ.get("SOTTOVOCE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no folder of shared data; set SOTTOVOCE_DATA")
    return folder
