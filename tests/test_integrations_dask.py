"""A real Dask cluster on this machine: the same rows, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from cluster_data import HOSTILE, SECRET, make_space, sanitizer, write_rows
from command_line import as_text, run_command

from sottovoce.errors import SottovoceError, UnknownWordError
from sottovoce.integrations import dask, on_dask
from sottovoce.integrations.jobs import Rows
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer, arrow, open_source, sanitize_file, sources
from sottovoce.sanitizing.sources import START
from sottovoce.text import TextPipeline

distributed = pytest.importorskip("distributed", reason="pip install 'sottovoce[dask]'")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "small")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dask")
    (folder / "hostile.py").write_text(HOSTILE)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(folder)
    sys.path.append(str(folder))
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            dashboard_address="127.0.0.1:0",
            local_directory=folder,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    sys.path.remove(str(folder))
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Sanitise the same file by different executors, in many small blocks."""
    monkeypatch.setattr(sources, "ROWS_AT_A_TIME", 40)
    monkeypatch.setattr(arrow, "ROWS_AT_A_TIME", 40)

    def call(subject, source, out, **options):
        report = sanitize_file(subject, open_source(source, ("text",)), tmp_path / out, **options)
        return (tmp_path / out).read_bytes(), report.to_dict()

    return call


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_cluster_gives_what_this_machine_gives(client, space, files, tmp_path, ending):
    source = write_rows(tmp_path / f"in.{ending}", 410)
    subject = sanitizer(space, deny=frozenset({"wordaa"}))
    here = files(subject, source, f"here.{ending}")
    assert files(subject, source, f"there.{ending}", executor=on_dask(client)) == here
    names = {"in", "here", "there"}
    assert sorted(os.listdir(tmp_path)) == sorted(f"{name}.{ending}" for name in names)


def test_few_blocks_are_in_memory_at_a_time(client, space, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROWS_AT_A_TIME", 10)
    source = open_source(write_rows(tmp_path / "in.csv", 300), ("text",))
    read = written = 0

    def blocks():
        nonlocal read
        for block in source.blocks(START):
            read += 1
            assert read - written <= 9
            yield block

    for _ in on_dask(client)(sanitizer(space), blocks(), 0):
        written += 1
    assert (read, written) == (30, 30)


def test_linkable_words_are_linked_over_all_workers(client, space, files, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("text\n" + "wordaa zzz\n" * 400)
    subject = sanitizer(space, rng=None, linkable=os.urandom(32))
    content, _ = files(subject, source, "out.csv", executor=on_dask(client))
    assert len(set(content.splitlines()[1:])) == 1


@pytest.mark.parametrize("seed", [1, None])
def test_a_worker_killed_in_the_middle_changes_nothing(client, space, files, tmp_path, seed):
    """It is stopped first, so that its tasks cannot be done, and then killed with them."""
    source = write_rows(tmp_path / "in.csv", 2000)
    subject = sanitizer(space, rng=seed)
    here, report = files(subject, source, "here.csv")
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(1.5, os.kill, (victim, signal.SIGKILL))
    stopped_at = []

    def progress(done, _):
        if done >= 400 and not stopped_at:
            stopped_at.append(done)
            os.kill(victim, signal.SIGSTOP)
            killer.start()

    there, found = files(subject, source, "there.csv", executor=on_dask(client), progress=progress)
    killer.join()
    assert stopped_at == [400]
    client.wait_for_workers(2, timeout=30)
    assert victim not in client.run(os.getpid).values()
    rows = [line.split(b",") for line in there.splitlines()]
    assert [row[0] for row in rows] == [line.split(b",")[0] for line in here.splitlines()]
    assert found["rows"] == 2000
    if seed is not None:
        assert there == here
        assert found == report
    else:
        assert there != here


def test_a_cluster_that_lost_all_its_workers_is_not_waited_for_for_ever(
    space, files, tmp_path, monkeypatch
):
    source = write_rows(tmp_path / "in.csv", 2000)
    monkeypatch.setattr(dask, "SECONDS_TO_LOOK", 0.2)
    monkeypatch.setattr(dask, "SECONDS_WITHOUT_WORKERS", 0.5)
    options = {"processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as alone,
    ):

        def progress(done, _):
            if done >= 400 and alone.nthreads():
                cluster.sync(cluster.workers[0].close)

        there = {"executor": on_dask(alone), "progress": progress}
        with pytest.raises(SottovoceError, match=r"lost its workers.*rows are done and kept"):
            files(sanitizer(space), source, "there.csv", **there)


def test_a_run_that_stops_goes_on_elsewhere(client, space, files, tmp_path):
    source = write_rows(tmp_path / "in.csv", 600)
    subject = sanitizer(space)
    here, _ = files(subject, source, "here.csv")

    def breaks(sanitizer, blocks, first):
        for number, step in enumerate(on_dask(client)(sanitizer, blocks, first)):
            if number == 5:
                raise SottovoceError("the network is gone")
            yield step

    with pytest.raises(SottovoceError, match="200 rows are done and kept"):
        files(subject, source, "out.csv", executor=breaks)
    assert not (tmp_path / "out.csv").exists()
    there, _ = files(subject, source, "out.csv", executor=on_dask(client), resume=True)
    assert there == here


def logs(client):
    """All that workers and scheduler have said and noted."""
    return repr((client.get_worker_logs(), client.get_scheduler_logs(), client.get_events()))


def tell(text):
    raise ValueError(text)


def test_a_failing_batch_leaves_no_text_on_the_cluster(client, space, files, tmp_path, capfd):
    from hostile import Hostile, Worse

    source = tmp_path / "in.csv"
    source.write_text("text\n" + "wordaa\n" * 99 + f"{SECRET}\n" + "wordaa\n" * 99)
    pipeline = TextPipeline(unknown="error")
    strict = Obfuscator(sanitizer(space).obfuscator.mechanism, pipeline=pipeline)
    for obfuscator, kind, says in (
        (strict, UnknownWordError, "row 100"),
        (Obfuscator(Hostile()), SottovoceError, "ValueError"),
        (Obfuscator(Worse()), SottovoceError, "KeyError"),
    ):
        with pytest.raises(kind, match=says) as caught:
            files(
                Sanitizer(obfuscator, ("text",)),
                source,
                "out.csv",
                executor=on_dask(client),
                overwrite=True,
            )
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert not (tmp_path / "out.csv").exists()
    assert SECRET not in logs(client)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    # What a task that raises would have left there.
    with pytest.raises(ValueError, match="sarcoma"):
        client.submit(tell, "sarcoma").result()
    assert "sarcoma" in logs(client)


class Missing:
    """What one finds in a task who lacks a package."""

    def __reduce__(self):
        return __import__, ("no_such_package",)


def test_who_cannot_read_a_task_does_not_log_its_text(client, caplog):
    caplog.set_level("INFO")
    with pytest.raises((ImportError, RuntimeError)):
        client.submit(print, Missing(), Rows.of([[SECRET]], 0), pure=False).result()
    assert "Failed to deserialize" in caplog.text, "nothing is seen here"
    assert SECRET not in caplog.text + logs(client)


def test_a_cluster_that_cannot_do_it_gets_no_text(client, space, files, tmp_path, monkeypatch):
    from sottovoce.integrations import dask, jobs

    source = write_rows(tmp_path / "in.csv", 10)
    sent = []
    monkeypatch.setattr(dask.Rows, "of", lambda *rows: sent.append(rows))
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "__version__", "0.0.1")
        with pytest.raises(SottovoceError, match=r"no text was sent: .* same version"):
            files(sanitizer(space), source, "out.csv", executor=on_dask(client))
    assert not sent
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.slow
def test_the_command_on_a_cluster_of_its_own_and_on_one_that_is_there(space, tmp_path):
    write_rows(tmp_path / "in.csv", 1500)

    options = ("--column", "text", "--space", str(space.folder), "--seed", "1", "--json", "-e", "1")

    def run(out, *arguments):
        command = ("sanitize", "in.csv", out, *options, *arguments)
        ended = as_text(run_command(*command, home=tmp_path / "home", folder=tmp_path))
        assert ended.returncode == 0, ended.stderr
        return (tmp_path / out).read_bytes(), json.loads(ended.stdout)

    here = run("a.csv")
    alone = [sys.executable, "-m", "sottovoce", "sanitize", "in.csv", "b.csv", *options]
    ended = subprocess.run(
        [*alone, "--on", "dask", "--workers", "2"], capture_output=True, cwd=tmp_path, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert ((tmp_path / "b.csv").read_bytes(), json.loads(ended.stdout)) == here
    with distributed.LocalCluster(
        n_workers=1, dashboard_address="127.0.0.1:0", local_directory=tmp_path / "dask"
    ) as cluster:
        assert run("c.csv", "--on", "dask", "--scheduler", cluster.scheduler_address) == here
