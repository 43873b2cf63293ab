"""An index on disk answers as the engines in memory do, whatever the size of its runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.collections import Document, load_collection
from sottovoce.engines import BM25, choose_engine
from sottovoce.engines.dense import Dense
from sottovoce.engines.stored import (
    FACTS,
    FILES,
    LOCK,
    VECTORS,
    StoredBM25,
    StoredDense,
    make_index,
)
from sottovoce.engines.stored_documents import DocumentWriter, StoredDocuments
from sottovoce.engines.stored_postings import DOCS, PostingsWriter, write_postings
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import locked

QUERIES = ["skin cancer", "tax return", "skin skin cancer", "the", "", "xqzzy", "how to sleep well"]


@pytest.fixture(scope="module")
def documents():
    """A few thousand: the demo's, and mixtures of their sentences."""
    demo = load_collection("demo").documents
    rng = np.random.default_rng(1)
    sentences = np.array([line for document in demo for line in document.text.split(". ")])
    mixed = [
        Document(f"mixed {number}", "", ". ".join(rng.choice(sentences, size=3)))
        for number in range(1500)
    ]
    return [*demo, *mixed, Document("blank", "", " "), Document("ünï ", "Über", 'a "b"\n\u2028c')]


@pytest.fixture(scope="module")
def folder(documents, tmp_path_factory):
    made = tmp_path_factory.mktemp("index") / "new"
    make_index(iter(documents), made, encoder="light")
    return made


def queries():
    return [*QUERIES, *list(load_collection("demo").queries.values())]


@pytest.mark.parametrize("depth", [1, 10, 5000])
def test_bm25_on_disk_answers_as_in_memory(documents, folder, depth):
    stored, memory = choose_engine(f"stored:{folder}"), BM25(documents)
    assert isinstance(stored, StoredBM25)
    assert stored.search(queries(), depth) == memory.search(queries(), depth)
    assert (stored.uses_order, stored.remote) == (False, False)


def test_dense_search_on_disk_answers_as_in_memory(documents, folder):
    stored, memory = choose_engine(f"stored-dense:{folder}"), Dense(documents, "light")
    assert isinstance(stored, StoredDense)
    for depth in (1, 10, 5000):
        assert stored.search(queries(), depth) == memory.search(queries(), depth)


def test_dense_search_in_parts_finds_the_same(documents, folder, monkeypatch):
    whole = StoredDense(folder).search(queries(), 20)
    monkeypatch.setattr("sottovoce.engines.dense.DOCUMENTS_AT_A_TIME", 64)
    assert StoredDense(folder).search(queries(), 20) == whole


def test_ranks_are_those_in_memory(documents, folder):
    ids = [documents[place].doc_id for place in (0, 5, 700, 2000)]
    stored, memory = StoredBM25(folder), BM25(documents)
    assert np.array_equal(stored.ranks(queries(), ids, 900), memory.ranks(queries(), ids, 900))


@pytest.mark.parametrize("words", [1, 1000, 50_000])
def test_runs_of_any_size_make_the_same_postings(documents, folder, tmp_path, words):
    few = documents[:60] if words == 1 else documents
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    for made, size in ((parts, words), (whole, 1 << 22)):
        made.mkdir()
        writer = PostingsWriter(made, "en", size)
        assert write_postings(few, writer) == len(few)
        writer.finish(0.9, 0.4)
    names = sorted(path.name for path in whole.iterdir())
    assert names == sorted(path.name for path in parts.iterdir()), "no run is left"
    for name in names:
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
    assert len(np.load(whole / DOCS)) > len(few)


def test_documents_come_back_by_place_and_id(documents, folder):
    stored = StoredBM25(folder)
    assert len(stored) == len(documents)
    for document in (documents[0], documents[-1], documents[1234]):
        assert stored.text(document.doc_id) == BM25([document]).text(document.doc_id)
    assert list(stored._documents) == documents
    assert stored._documents.texts()[3:5] == [stored.text(each.doc_id) for each in documents[3:5]]
    with pytest.raises(UsageError, match="no document has this id"):
        stored.text("nobody")
    assert stored.fingerprint == StoredDense(folder).fingerprint
    assert documents[0].text[:20] not in repr((stored, StoredDense(folder), stored._documents))


def test_two_documents_of_one_id_are_refused(tmp_path):
    twice = [Document("1", "", "a"), Document("2", "", "b"), Document("1", "", "c")]
    with pytest.raises(UsageError, match="the same id"):
        make_index(twice, tmp_path / "new")
    with pytest.raises(UsageError, match="no whole index"):
        StoredBM25(tmp_path / "new")


def test_no_documents_find_nothing(tmp_path):
    make_index([], tmp_path / "new", encoder="light")
    for kind in (StoredBM25, StoredDense):
        assert kind(tmp_path / "new").search(["skin"], 5) == [[]]


def test_documents_are_read_once_and_not_held(tmp_path, monkeypatch):
    held = []

    def stream():
        for number in range(200):
            held.append(number)
            yield Document(str(number), "", f"river {number % 7} salmon")

    class Counting(DocumentWriter):
        def add(self, document):
            assert len(held) == int(document.doc_id) + 1, "each is written before the next is read"
            super().add(document)

    monkeypatch.setattr("sottovoce.engines.stored.DocumentWriter", Counting)
    assert make_index(stream(), tmp_path / "new").documents == 200


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layout": 0}, "another layout"),
        ({"encoder_fingerprint": "other"}, "changed since then"),
        ({"encoder": None}, "has no vectors"),
        ({"more": 1}, "no whole index"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path, change, says):
    make_index([Document("1", "", "a river")], tmp_path / "new", encoder="light")
    file = tmp_path / "new" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(SottovoceError, match=says):
        StoredDense(tmp_path / "new")


def test_the_command_makes_an_index_that_can_be_searched(tmp_path):
    made = str(tmp_path / "new")
    run = CliRunner().invoke(app, ["index", "demo", made, "--encoder", "light", "--json"])
    assert run.exit_code == 0, run.output
    facts = json.loads(run.stdout)
    assert facts["documents"] == len(load_collection("demo").documents)
    assert facts["disk_bytes"] == sum(path.stat().st_size for path in Path(made).iterdir())
    again = CliRunner().invoke(app, ["index", "demo", made])
    assert isinstance(again.exception, UsageError)
    hits = choose_engine(f"stored:{made}").search(["skin cancer"], 3)[0]
    assert hits == BM25(load_collection("demo").documents).search(["skin cancer"], 3)[0]


def test_stored_documents_need_no_memory_of_their_own(folder):
    assert isinstance(StoredDocuments(folder, "")._lines, np.memmap)


def test_vectors_that_a_killed_process_left_are_used_for_the_same_documents_only(tmp_path):
    """As many documents, and others: the answers are theirs."""
    mine = [Document(str(row), "", text) for row, text in enumerate(QUERIES) if text]
    others = [Document(one.doc_id, "", two.text) for one, two in zip(mine, mine[::-1], strict=True)]
    for name, left in (("whole", VECTORS), ("begun", ".vectors.growing")):
        folder = tmp_path / name
        make_index(others, folder, encoder="light")
        (folder / FACTS).unlink()
        (folder / VECTORS).rename(folder / left)
        make_index(mine, folder, encoder="light")
        found = StoredDense(folder).search(["tax return"], 1)
        assert found == Dense(mine, "light").search(["tax return"], 1)
        assert sorted(path.name for path in folder.iterdir()) == sorted((*FILES, FACTS))


@pytest.mark.parametrize("file", [DOCS, VECTORS, "documents.jsonl", "terms.txt"])
def test_an_index_that_lost_its_end_is_refused(folder, tmp_path, file):
    copy = shutil.copytree(folder, tmp_path / "copy")
    os.truncate(copy / file, (copy / file).stat().st_size - 1)
    for engine in (StoredBM25, StoredDense):
        with pytest.raises(SottovoceError, match="damaged: remove it"):
            engine(copy)


def test_two_processes_do_not_write_one_index(tmp_path, documents):
    folder = tmp_path / "index"
    folder.mkdir()
    with locked(folder / LOCK, wait=False), pytest.raises(UsageError, match="another process"):
        make_index(documents[:3], folder)
