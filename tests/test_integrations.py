"""Tables in memory, data sets of others, and what travels to workers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from itertools import pairwise

import pytest
from cluster_data import SECRET, make_space, sanitizer, write_rows
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SottovoceError, UnknownWordError, UsageError
from sottovoce.integrations import dataset_function, sanitize_frame, sanitize_table
from sottovoce.integrations.dask import _warn_if_in_clear
from sottovoce.integrations.jobs import Job, Rows, done
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer
from sottovoce.sanitizing.executor import ahead
from sottovoce.text import TextPipeline

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

TEXTS = ["wordaa Wordab, zzz", None, "", "wordbb wordbb"] * 5


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The ``map`` of data sets leaves a copy in the place of ``os.environ``, which others hold."""
    monkeypatch.setattr(os, "environ", os.environ)


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "small")


@pytest.fixture(scope="module")
def expected(space):
    return sanitizer(space).texts("text", TEXTS, 0)[0]


# Tables in memory


def test_no_chunks_of_a_table_change_the_result(space, expected):
    subject = sanitizer(space)
    schema = pa.schema([("id", pa.int8()), ("text", pa.large_string())], {"a": "b"})
    whole = pa.table({"id": range(20), "text": TEXTS}, schema)

    @given(st.lists(st.integers(0, 20), max_size=4))
    def for_all_chunks(places):
        edges = [0, *sorted(places), 20]
        table = pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(edges)])
        new, counts = sanitize_table(subject, table)
        assert new.schema.equals(schema, check_metadata=True)
        assert new["text"].to_pylist() == expected
        assert new["id"].to_pylist() == list(range(20))
        assert counts.rows == 20

    for_all_chunks()
    later, _ = sanitize_table(subject, whole.slice(4), first_row=4)
    assert later["text"].to_pylist() == expected[4:]
    assert sanitize_table(subject, schema.empty_table())[0].num_rows == 0


@pytest.mark.parametrize("kind", ["object", "str", "string", "string[pyarrow]", "category"])
def test_a_frame_keeps_index_kind_missing_cells_and_its_original(space, expected, kind):
    frame = pd.DataFrame({"text": pd.Series(TEXTS, dtype=kind), "id": range(20)})
    frame.index = pd.Index([7] * 20, name="same")
    before = frame.copy(deep=True)
    new, counts = sanitize_frame(sanitizer(space), frame)
    pd.testing.assert_frame_equal(frame, before)
    assert [None if pd.isna(each) else each for each in new["text"]] == expected
    assert list(new.columns) == ["text", "id"]
    assert new.index.equals(frame.index)
    if kind == "category":
        assert "wordbb wordbb" not in new["text"].cat.categories
    else:
        assert new["text"].dtype == frame["text"].dtype
    assert (new["id"] == frame["id"]).all()
    assert (counts.rows, counts.texts, counts.empty) == (20, 20, 10)
    assert sanitize_frame(sanitizer(space), frame[4:], 4)[0].equals(new[4:]) or kind == "category"


def test_frames_without_texts_there_are_refused(space):
    subject = sanitizer(space)
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    for frame in (pd.DataFrame({"other": [SECRET]}), twice, pd.DataFrame({"text": [SECRET, 1]})):
        with pytest.raises(UsageError) as caught:
            sanitize_frame(subject, frame)
        assert SECRET not in str(caught.value)


# Hugging Face


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 1000}, {"num_proc": 2}])
def test_a_data_set_is_mapped_with_any_batches(space, expected, options, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    data = datasets.Dataset.from_dict({"id": range(20), "text": TEXTS})
    new = data.map(dataset_function(sanitizer(space)), batched=True, with_indices=True, **options)
    assert new["text"][:] == expected
    assert new["id"][:] == list(range(20))


def test_rows_out_of_order_get_what_is_theirs(space, expected):
    order = [9, 4, 5, 6, 0, 19]
    function = dataset_function(sanitizer(space))
    assert function({"text": [TEXTS[i] for i in order]}, order) == {
        "text": [expected[i] for i in order]
    }
    with pytest.raises(UsageError, match="lacks a column"):
        function({"other": []}, [])
    with pytest.raises(UsageError, match="something else"):
        function({"text": [1]}, [0])


# What travels


@pytest.mark.parametrize("options", [{}, {"linkable": bytes(32)}, {"deny": frozenset({"anna"})}])
def test_a_job_is_small(default_space, options):
    """Without the rows themselves."""
    subject = sanitizer(default_space, **options)
    subject.texts("text", ["warm it up"], 0)
    assert len(pickle.dumps((Job(subject), Rows.of([], 0)))) < 10_000


def test_texts_lie_beside_the_pickle_and_come_back():
    texts = [["é\ud800\n", None, SECRET], ["", "x", None]]
    rows = Rows.of(texts, 7)
    beside = []
    content = pickle.dumps(rows, protocol=5, buffer_callback=beside.append)
    assert SECRET.encode() not in content
    assert SECRET not in repr(rows)
    for back in (pickle.loads(content, buffers=beside), pickle.loads(pickle.dumps(rows, 4))):
        assert (back.first, back.texts) == (7, texts)


def test_a_job_answers_as_the_sanitizer(space, expected):
    job = pickle.loads(pickle.dumps(Job(sanitizer(space))))
    texts, counts = done(job(Rows.of([TEXTS], 0)), 20)
    assert texts == [expected]
    assert counts.words == sanitizer(space).texts("text", TEXTS, 0)[1].words
    assert job.sanitizer() is pickle.loads(pickle.dumps(job)).sanitizer(), "opened twice"


def test_an_answer_for_other_rows_is_refused(space):
    answer = Job(sanitizer(space))(Rows.of([TEXTS], 0))
    with pytest.raises(SottovoceError, match="other rows"):
        done(answer, 19)


def test_a_failing_job_answers_with_a_kind_and_no_text(space, monkeypatch):
    pipeline = TextPipeline(unknown="error")
    subject = sanitizer(space)
    strict = Obfuscator(subject.obfuscator.mechanism, pipeline=pipeline, rng=1)
    job = Job(type(subject)(strict, ("text",)))
    with pytest.raises(UnknownWordError, match="row 6") as caught:
        done(job(Rows.of([["wordaa", SECRET]], 4)), 2)
    assert SECRET not in str(caught.value)

    def broken(*_):
        raise KeyError(SECRET)

    monkeypatch.setattr(Sanitizer, "rows", broken)
    answer = job(Rows.of([["wordaa", SECRET]], 4))
    assert SECRET not in answer.decode()
    with pytest.raises(SottovoceError, match="KeyError"):
        done(answer, 2)


def test_another_version_is_refused(space):
    job = Job(sanitizer(space))
    job.version = "0.0.1"
    assert "same version" in job.ready()
    with pytest.raises(SottovoceError, match="same version"):
        done(job(Rows.of([TEXTS], 0)), 20)


def test_a_space_that_a_worker_lacks_is_said(tmp_path):
    space = make_space(tmp_path / "small")
    job = Job(sanitizer(space))
    (tmp_path / "small").rename(tmp_path / "elsewhere")
    assert "no word space" in job.ready()


@given(st.integers(0, 5), st.integers(0, 12))
def test_only_so_much_is_begun_ahead(most, count):
    begun = 0

    def items():
        nonlocal begun
        for number in range(count):
            begun += 1
            yield number

    seen = []
    for number in ahead(items(), lambda: most):
        seen.append(number)
        assert begun <= len(seen) + most
    assert seen == list(range(count))


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "head:8786", "ws://head:8786"])
def test_text_in_clear_on_a_network_warns(address):
    with pytest.warns(UserWarning, match="without encryption") as caught:
        _warn_if_in_clear(address)
    assert "head" not in str(caught[0].message)


@pytest.mark.parametrize("address", ["tls://head:8786", "tcp://127.0.0.1:1", "localhost:8786"])
def test_encrypted_or_local_does_not(address):
    _warn_if_in_clear(address)


# The command


@pytest.fixture
def run(space, tmp_path):
    write_rows(tmp_path / "in.csv", 3)

    def call(*arguments, hide=""):
        code = (
            f"import sys\nfor name in {hide.split()}: sys.modules[name] = None\n"
            "sys.argv[0] = 'sottovoce'\nfrom sottovoce.cli import main; main()"
        )
        options = ("in.csv", "out.csv", "--column", "text", "--space", str(space.folder))
        return subprocess.run(
            [sys.executable, "-c", code, "sanitize", *options, *arguments],
            capture_output=True, text=True, cwd=tmp_path, timeout=120,
        )  # fmt: skip

    return call


@pytest.mark.parametrize(
    ("arguments", "hide", "code", "says"),
    [
        (["--scheduler", "tcp://secret:1"], "", 2, "--on dask"),
        (["--on", "dask", "--scheduler", "secret:1", "--workers", "2"], "", 2, "--workers"),
        (["--on", "secret"], "", 2, "spark"),
        (["--on", "dask"], "distributed", 1, "pip install 'sottovoce[dask]'"),
        (["--on", "spark"], "pyspark", 1, "pip install 'sottovoce[spark]'"),
        (["--on", "dask", "--scheduler", "secret"], "", 1, "no Dask scheduler answers"),
    ],
)
def test_wrong_use_says_what_to_do_and_leaves_nothing(run, tmp_path, arguments, hide, code, says):
    if "answers" in says:
        pytest.importorskip("distributed")
    ended = run(*arguments, hide=hide)
    assert ended.returncode == code, ended.stderr
    assert says in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert os.listdir(tmp_path) == ["in.csv"]


def test_importing_loads_no_engine():
    code = (
        "import sys, sottovoce.integrations\n"
        "print([n for n in ('dask', 'distributed', 'pyspark', 'pandas', 'pyarrow', 'datasets',"
        " 'pyterrier', 'presidio_anonymizer', 'spacy', 'sklearn', 'langchain_core')"
        " if n in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stdout == "[]\n", said.stderr
