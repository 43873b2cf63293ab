"""Dense search against plain float64 products, and the vectors that it keeps on disk."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sottovoce.collections import Document, load_collection
from sottovoce.encoders import base, corpus_vectors, load_encoder
from sottovoce.engines.dense import Dense
from sottovoce.errors import UsageError
from sottovoce.evaluation import effectiveness
from sottovoce.threads import set_threads

SUBJECTS = ["salmon", "river", "tax", "cancer", "bread", "violin", "engine", "garden", "moon"]
TEXTS = [f"{a} and {b}: what a {c} has to do with it" for a in SUBJECTS for b in SUBJECTS
         for c in SUBJECTS]  # fmt: skip
QUERIES = ["a loaf of bread", "music for strings", "night sky", "fish", "fishes in the water"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def light():
    return load_encoder("light")


def documents(texts: list[str]) -> list[Document]:
    return [Document(f"d{i}", "", text) for i, text in enumerate(texts)]


def oracle(encoder, texts, query, depth) -> list[tuple[str, float]]:
    rows = encoder.encode(texts).astype(np.float64)
    scores = rows @ encoder.encode([query])[0].astype(np.float64)
    order = sorted(range(len(texts)), key=lambda place: (-round(scores[place], 12), place))
    return [(f"d{place}", scores[place]) for place in order[:depth]]


@pytest.mark.parametrize("depth", [1, 10, 100, len(TEXTS), 10_000])
def test_answers_are_the_largest_inner_products(light, depth):
    engine = Dense(documents(TEXTS), light)
    for query, hits in zip(QUERIES, engine.search(QUERIES, depth), strict=True):
        expected = oracle(light, TEXTS, query, depth)
        assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected], abs=1e-9)
        assert {hit.doc_id for hit in hits} == {doc_id for doc_id, _ in expected}


class Table:
    """An encoder of numbers: the text "7" has row 7."""

    name, fingerprint = "table", "t"

    def __init__(self, rows) -> None:
        self.rows, self.dimension = rows, rows.shape[1]

    def encode(self, texts):
        return self.rows[[int(text) for text in texts]]


def test_documents_that_float32_cannot_tell_apart_are_told_apart():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal(256) + 1e-7 * rng.standard_normal((500, 256))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    engine = Dense(documents([str(i) for i in range(500)]), Table(rows))
    exact = rows.astype(np.float64) @ rows.astype(np.float64).T
    answers = engine.search([str(i) for i in range(100)], 3)
    for scores, hits in zip(exact, answers, strict=False):
        best = np.sort(scores)[::-1][:3]
        assert np.abs(best - [hit.score for hit in hits]).max() < 1e-14


def test_equal_documents_tie_in_document_order(light):
    engine = Dense(documents(["tax", "salmon", "tax", "river", "tax"]), light)
    for depth in (1, 2, 3):
        (hits,) = engine.search(["income tax"], depth)
        assert [hit.doc_id for hit in hits] == ["d0", "d2", "d4"][:depth]
        assert len({hit.score for hit in hits}) == 1


def test_batches_and_threads_change_nothing(light):
    engine = Dense(documents(TEXTS), light)
    queries = [f"{text} again" for text in TEXTS[:300]] + QUERIES + QUERIES
    together = engine.search(queries, 20)
    try:
        set_threads(1)
        assert [engine.search([query], 20)[0] for query in queries] == together
    finally:
        set_threads(None)


def test_blank_queries_no_documents_and_no_depth_find_nothing(light):
    engine = Dense(documents(TEXTS[:5]), light)
    assert engine.search(["", "  ", "fish"], 2)[:2] == [[], []]
    assert engine.search(["fish"], 0) == [[]]
    assert engine.search([], 5) == []
    assert Dense([], light).search(["fish"], 5) == [[]]


def test_hits_carry_title_and_a_snippet_of_bounded_length(light):
    engine = Dense([Document("a", "Fish", "salmon"), Document("b", "", "bread " * 100)], light)
    fish, bread = engine.search(["fish"], 2)[0]
    assert (fish.doc_id, fish.title, fish.snippet) == ("a", "Fish", "salmon")
    assert len(bread.snippet) <= 300
    assert ("bread " * 100).startswith(bread.snippet.removesuffix("…"))
    assert (engine.text("a"), engine.text("b")) == ("Fish\nsalmon", ("bread " * 100).strip())
    assert (engine.name, engine.remote, engine.pause) == ("dense:light", False, 0.0)


def test_errors_and_representations_hold_no_text(light):
    engine = Dense([Document("secret", "secret", "secret")], light)
    for call in (
        lambda: engine.text("another secret"),
        lambda: engine.search(["secret"], -1),
        lambda: Dense([Document("secret", "", ""), Document("secret", "", "")], light),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "secret" not in str(caught.value)
    assert "secret" not in repr(engine) + repr(engine.search(["secret"], 1))


class Counting:
    """The light encoder, counting the texts that it encodes."""

    def __init__(self, encoder, fingerprint="f") -> None:
        self.encoder, self.fingerprint = encoder, fingerprint
        self.name, self.dimension = "light", encoder.dimension
        self.count = 0

    def encode(self, texts):
        self.count += len(texts)
        return self.encoder.encode(texts)


def kept(home: Path) -> list[Path]:
    return sorted((home / "embeddings").iterdir())


def test_vectors_are_computed_once_and_mapped(light, home):
    first, second = Counting(light), Counting(light)
    done = []
    made = corpus_vectors(first, TEXTS, progress=lambda now, of: done.append((now, of)))
    again = corpus_vectors(second, TEXTS)
    assert (first.count, second.count) == (len(TEXTS), 0)
    assert done == [(len(TEXTS), len(TEXTS))]
    assert np.array_equal(again, light.encode(TEXTS))
    assert np.array_equal(again, made)
    assert not again.flags.writeable
    assert isinstance(again.base, np.memmap)


def test_other_texts_encoders_or_weights_have_vectors_of_their_own(light, home):
    corpus_vectors(Counting(light), ["ab", "c"])
    for encoder, texts in (
        (Counting(light), ["a", "bc"]),
        (Counting(light), ["ab", "c", ""]),
        (Counting(light, "g"), ["ab", "c"]),
    ):
        corpus_vectors(encoder, texts)
        assert encoder.count == len(texts)
    assert len(kept(home)) == 4


def test_files_are_private_and_their_names_hold_no_text(light, home):
    corpus_vectors(light, ["secret"])
    (file,) = kept(home)
    assert file.suffix == ".npy"
    assert len(file.stem) == 64
    assert "secret" not in file.name
    assert b"secret" not in file.read_bytes()
    assert file.parent.stat().st_mode & 0o077 == 0


def test_queries_are_never_written(light, home):
    engine = Dense(documents(TEXTS), light)
    before = [(file.name, file.stat().st_mtime_ns) for file in kept(home)]
    engine.search(QUERIES, 10)
    assert [(file.name, file.stat().st_mtime_ns) for file in kept(home)] == before


@pytest.mark.parametrize("keep", [0, 10, 500])
def test_a_damaged_file_is_made_again(light, home, keep):
    corpus_vectors(light, TEXTS)
    (file,) = kept(home)
    file.write_bytes(file.read_bytes()[:keep])
    assert np.array_equal(corpus_vectors(light, TEXTS), light.encode(TEXTS))
    assert kept(home) == [file]


class Interrupted(Counting):
    """Stops in the middle, as a person would."""

    def encode(self, texts):
        if self.count >= 2 * base.TEXTS_AT_A_TIME:
            raise KeyboardInterrupt
        return super().encode(texts)


@pytest.mark.parametrize("lost", [0, 1, 5000, 10_000_000])
def test_interrupted_work_goes_on_where_it_stopped(light, home, monkeypatch, lost):
    monkeypatch.setattr(base, "TEXTS_AT_A_TIME", 100)
    with pytest.raises(KeyboardInterrupt):
        corpus_vectors(Interrupted(light), TEXTS)
    growing = next(file for file in kept(home) if file.suffix == ".growing")
    size = max(0, growing.stat().st_size - lost)
    os.truncate(growing, size)
    again = Counting(light)
    assert np.array_equal(corpus_vectors(again, TEXTS), light.encode(TEXTS))
    # The last block may not have been on disk: it is made again.
    whole_blocks = max(0, (size - 128) // (4 * light.dimension) - 1) // 100
    assert again.count == len(TEXTS) - 100 * whole_blocks
    assert [file.suffix for file in kept(home)] == [".npy"]


SLOW = """
import sys, time
from sottovoce.encoders import base, corpus_vectors, load_encoder
base.TEXTS_AT_A_TIME = 50
def wait(done, of):
    print(done, flush=True)
    time.sleep(float(sys.argv[1]))
encoder = load_encoder("light")
print("ready", flush=True)
vectors = corpus_vectors(encoder, [f"text number {i}" for i in range(500)], wait)
print("sum", vectors.sum(), flush=True)
"""


def start(pause: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW, str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def test_killed_work_goes_on_and_two_processes_share_it(light, home):
    killed = start(30)
    assert [killed.stdout.readline() for _ in range(2)] == ["ready\n", "50\n"]
    waiting = [start(0.0), start(0.0)]
    assert [process.stdout.readline() for process in waiting] == ["ready\n", "ready\n"]
    time.sleep(0.5)
    assert [process.poll() for process in waiting] == [None, None]
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    said = [process.communicate(timeout=30)[0].split() for process in waiting]
    expected = str(corpus_vectors(light, [f"text number {i}" for i in range(500)]).sum())
    assert [words[-1] for words in said] == [expected, expected]
    counts = sorted(len(words) for words in said)
    assert counts == [2, 2 + 10]
    assert [file.suffix for file in kept(home)] == [".npy"]


@pytest.mark.skipif(os.name == "nt", reason="needs a file in the place of a folder")
def test_where_nothing_can_be_written_vectors_are_computed_in_memory(light, home):
    (home / "embeddings").write_text("in the way")
    assert np.array_equal(corpus_vectors(light, TEXTS), light.encode(TEXTS))


def test_no_texts_have_no_vectors_and_no_file(light, home):
    assert corpus_vectors(light, []).shape == (0, light.dimension)
    assert not (home / "embeddings").exists()


def test_effectiveness_and_pickling_on_the_demo_collection(light):
    demo = load_collection("demo")
    engine = Dense(demo.documents, light)
    queries = list(demo.queries.values())
    answers = engine.search(queries, 10)
    run = {q: [h.doc_id for h in hits] for q, hits in zip(demo.queries, answers, strict=True)}
    measured = effectiveness(run, demo.judgments, ["nDCG@10"])["nDCG@10"]
    assert measured.mean == pytest.approx(0.66, abs=0.03)
    assert pickle.loads(pickle.dumps(engine)).search(queries, 10) == answers
