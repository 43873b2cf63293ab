"""Files of ours that are not what they were: said so, in words that tell what to do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sottovoce.app.history import History
from sottovoce.arrays import read_array
from sottovoce.collections import Document
from sottovoce.engines.json_http import JsonHttp
from sottovoce.engines.stored import StoredBM25, make_index
from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.files import parse_json
from sottovoce.sanitizing.work import WorkLostError, open_work, work_folder
from sottovoce.search.vector_depth import DepthPromise
from sottovoce.spaces.formats import import_vectors
from sottovoce.spaces.space import WordSpace

WORDS = ["skin", "cancer", "doctor", "tax", "return", "divorce", "lawyer"]


@pytest.fixture
def space(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {place} 1\n" for place, word in enumerate(WORDS)))
    import_vectors(file, tmp_path / "space", name="small")
    return tmp_path / "space"


@pytest.fixture
def index(tmp_path):
    documents = [Document(str(place), "", word) for place, word in enumerate(WORDS)]
    make_index(documents, tmp_path / "index")
    return tmp_path / "index"


def searched(folder):
    return StoredBM25(folder).search(["skin tax"], 3)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\x93NUMPY\x01\0", b"PK\x03\x04", b"\x93NUMPY\x01\0\x0a\0{'descr': '"),
        b"\x93NUMPY\x01\0\x36\0{'descr': '<f4', 'fortran_order': False, 'shape': (1 0, }   \n",
        b"\x93NUMPY\x01\0\x36\0{'descr': '|O', 'fortran_order': False, 'shape': (1,), }    \n",
    ],
)
def test_what_is_no_array_is_one_kind_of_error(tmp_path, data):
    """numpy lets out whatever its parser happens to: a damaged header gave a TokenError."""
    file = tmp_path / "a.npy"
    file.write_bytes(data)
    for mapped in (True, False):
        with pytest.raises(ValueError, match="no array"):
            read_array(file, mapped=mapped)


def test_an_array_is_read_as_it_was_saved(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    for mapped in (True, False):
        assert read_array(tmp_path / "a.npy", mapped=mapped).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("table.npy", lambda table: np.full_like(table, 99)),
        ("table.npy", lambda table: np.zeros_like(table)),  # Every look-up would go round for ever.
        ("table.npy", lambda table: table[:-1]),
        ("table.npy", lambda table: table.astype(np.float64)),
        ("offsets.npy", lambda offsets: offsets[::-1].copy()),
        ("offsets.npy", lambda offsets: offsets - 1),
    ],
)
def test_a_space_whose_index_leads_nowhere_is_damaged(space, name, damage):
    np.save(space / name, damage(np.load(space / name)))
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(space)


def test_words_that_are_no_text_are_damaged(space):
    content = bytearray((space / "words.bin").read_bytes())
    content[0] = 0xFF
    (space / "words.bin").write_bytes(content)
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(space).words([0])


@pytest.mark.parametrize("change", [{"size": 10**400}, {"norms": {"median": 10**400}}])
def test_numbers_too_large_in_a_description_are_damage(space, change):
    description = json.loads((space / "space.json").read_text())
    (space / "space.json").write_text(json.dumps({**description, **change}))
    with pytest.raises(SpaceError, match="damaged"):
        WordSpace.open(space)


def test_every_file_of_an_index_may_be_damaged(index):
    whole = searched(index)
    files = sorted(file for file in index.iterdir() if file.name != "index.json")
    assert len(files) > 6
    for file in files:
        data = file.read_bytes()
        for damaged in (b"", data[: len(data) // 2], b"\xff" * len(data)):
            file.write_bytes(damaged)
            with pytest.raises(SottovoceError, match="make it anew"):
                searched(index)
        file.write_bytes(data)
    assert searched(index) == whole


@pytest.mark.parametrize("change", [{"language": "xx"}, {"k1": 10**400}, {"b": "a"}])
def test_facts_of_an_index_that_cannot_be_are_refused(index, change):
    facts = json.loads((index / "index.json").read_text())
    (index / "index.json").write_text(json.dumps({**facts, **change}))
    with pytest.raises(UsageError, match="no whole index"):
        searched(index)


def test_a_term_that_comes_twice_is_damage(index):
    terms = (index / "terms.txt").read_text().splitlines()
    (index / "terms.txt").write_text("\n".join([terms[0], terms[0], *terms[2:]]) + "\n")
    with pytest.raises(SottovoceError, match="make it anew"):
        searched(index)


DEEP = "[" * 100_000


def test_json_nested_too_deeply_is_no_json(tmp_path):
    """Python's own reader ends in a RecursionError."""
    with pytest.raises(ValueError, match="nested"):
        parse_json(DEEP)
    file = tmp_path / "a.json"
    file.write_text(DEEP)
    with pytest.raises(SottovoceError, match="wipe it"):
        History(file).state()
    with pytest.raises(UsageError, match="no promise"):
        DepthPromise.read(file)
    file.write_text('{"reaches": [' + "9" * 400 + "]}")
    with pytest.raises(UsageError, match="no promise"):
        DepthPromise.read(file)


def test_a_plan_of_work_nested_too_deeply_is_lost(tmp_path):
    out = tmp_path / "out.csv"
    work_folder(out).mkdir()
    (work_folder(out) / "plan.json").write_text(DEEP)
    with open_work(out, resume=True, overwrite=False) as work, pytest.raises(WorkLostError):
        work.plan()


def test_an_engine_whose_url_is_no_address_is_refused(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_text('name = "a"\nurl = "http://[::1/?q={query}"\nresults = "a"\nid = "b"\n')
    with pytest.raises(UsageError, match="no address"):
        JsonHttp.from_file(file)


def test_an_engine_file_nested_too_deeply_is_no_toml(tmp_path):
    file = tmp_path / "engine.toml"
    file.write_text("a = " + "[" * 5000)
    with pytest.raises(UsageError, match="not a TOML file"):
        JsonHttp.from_file(file)
