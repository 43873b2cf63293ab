"""A real Spark session on this machine: the same rows as anywhere else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings

import pytest
from cluster_data import HOSTILE, SECRET, make_space, rows, sanitizer, write_rows

from sottovoce.errors import SottovoceError, UnknownWordError, UsageError
from sottovoce.integrations import on_spark, sanitize_dataframe, spark
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer, arrow, open_source, sanitize_file, sources
from sottovoce.sanitizing.sources import START
from sottovoce.text import TextPipeline

pytest.importorskip("pyspark", reason="pip install 'sottovoce[spark]'")
pytest.importorskip("pyarrow")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "small")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where Spark keeps its files and its history."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(folder):
    (folder / "hostile.py").write_text(HOSTILE)
    (folder / "events").mkdir()
    settings = {
        **spark.SETTINGS,
        "spark.log.level": "INFO",
        "spark.local.dir": str(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.executorEnv.PYTHONPATH": str(folder),
    }
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.setattr(spark, "SETTINGS", settings)
        patched.syspath_prepend(str(folder))
        with spark._session(None, 2) as session:
            yield session


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Sanitise the same file by different executors, in many small blocks."""
    monkeypatch.setattr(sources, "ROWS_AT_A_TIME", 40)
    monkeypatch.setattr(arrow, "ROWS_AT_A_TIME", 40)

    def call(subject, source, out, **options):
        report = sanitize_file(subject, open_source(source, ("text",)), tmp_path / out, **options)
        return (tmp_path / out).read_bytes(), report.to_dict()

    return call


def test_spark_gives_what_this_machine_gives(session, space, files, tmp_path):
    source = write_rows(tmp_path / "in.parquet", 250)
    subject = sanitizer(space, deny=frozenset({"wordaa"}))
    here = files(subject, source, "here.parquet")
    assert files(subject, source, "there.parquet", executor=on_spark(session)) == here
    assert sorted(os.listdir(tmp_path)) == ["here.parquet", "in.parquet", "there.parquet"]


def test_few_blocks_are_in_memory_at_a_time(session, space, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROWS_AT_A_TIME", 10)
    source = open_source(write_rows(tmp_path / "in.csv", 120), ("text",))
    read = written = 0

    def blocks():
        nonlocal read
        for block in source.blocks(START):
            read += 1
            assert read - written <= 6
            yield block

    for _ in on_spark(session)(sanitizer(space), blocks(), 0):
        written += 1
    assert (read, written) == (12, 12)


def test_odd_characters_come_through(session, space, files, tmp_path):
    source = tmp_path / "in.jsonl"
    texts = ["\ud800 wordaa", "é😀 WORDAB\u2028", None, "", "\x00wordaa"]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    here = files(sanitizer(space), source, "here.jsonl")
    assert files(sanitizer(space), source, "there.jsonl", executor=on_spark(session)) == here


def test_a_dataframe_in_any_partitions_gives_what_this_machine_gives(session, space):
    data = rows(200)
    expected, _ = sanitizer(space).texts("text", [each["text"] for each in data], 0)
    frame = session.createDataFrame([(e["id"], e["text"]) for e in data], "id long, text string")
    for mixed in (frame.repartition(3), frame.coalesce(1)):
        new = sanitize_dataframe(sanitizer(space), mixed, row="id")
        assert new.schema == frame.schema
        assert {row["id"]: row["text"] for row in new.collect()} == dict(enumerate(expected))


def test_a_dataframe_without_a_seed_needs_no_row_numbers(session, space):
    frame = session.createDataFrame([("wordaa " * 20,)] * 4 + [(None,)], "text string")
    new = [row["text"] for row in sanitize_dataframe(sanitizer(space, None), frame).collect()]
    assert new.count(None) == 1
    assert len(set(new)) == 5, "workers draw the same"
    with pytest.raises(UsageError, match="row numbers"):
        sanitize_dataframe(sanitizer(space), frame)
    with pytest.raises(UsageError, match="lacks a column"):
        sanitize_dataframe(sanitizer(space), frame, row="nowhere")


def test_a_failing_batch_leaves_no_text_in_spark(session, space, files, folder, tmp_path, capfd):
    from hostile import Hostile, Worse

    source = tmp_path / "in.csv"
    source.write_text("text\n" + "wordaa\n" * 99 + f"{SECRET}\n" + "wordaa\n" * 99)
    frame = session.createDataFrame([("wordaa",), (SECRET,)], "text string")
    mechanism = sanitizer(space).obfuscator.mechanism
    strict = Obfuscator(mechanism, pipeline=TextPipeline(unknown="error"))
    for obfuscator, kind, says in (
        (strict, UnknownWordError, "row 100"),
        (Obfuscator(Hostile()), SottovoceError, "ValueError"),
        (Obfuscator(Worse()), SottovoceError, "KeyError"),
    ):
        subject = Sanitizer(obfuscator, ("text",))
        with pytest.raises(kind, match=says) as caught:
            files(subject, source, "out.csv", executor=on_spark(session), overwrite=True)
        assert SECRET not in str(caught.value)
        assert not (tmp_path / "out.csv").exists()
        with pytest.raises(Exception, match=r"SottovoceError|UnknownWordError") as caught:
            sanitize_dataframe(subject, frame).collect()
        assert SECRET not in str(caught.value)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    left = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert any(b"MapInArrow" in content for content in left), "nothing is seen here"
    assert not any(SECRET.encode() in content for content in left)


def test_the_command_starts_spark_itself(space, files, tmp_path):
    source = write_rows(tmp_path / "in.csv", 1500)
    here, report = files(sanitizer(space), source, "here.csv")
    options = ("--column", "text", "--space", space.folder, "--seed", "1", "-e", "1", "--json")
    ended = subprocess.run(
        [sys.executable, "-m", "sottovoce", "sanitize", "in.csv", "there.csv", *options,
         "--no-restore-case", "--on", "spark", "--workers", "2"],
        capture_output=True, text=True, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "there.csv").read_bytes() == here
    assert json.loads(ended.stdout) == report
