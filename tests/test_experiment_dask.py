"""An experiment on a real Dask cluster of this machine: the same bytes, whoever dies."""

from __future__ import annotations

import os
import signal

import pytest
from frail_runner import SECRET, FrailRunner, frail_plan

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments import executors
from sottovoce.experiments.run import run_experiment, staged, work_through
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.experiments.store import Store

distributed = pytest.importorskip("distributed", reason="pip install 'sottovoce[dask]'")

TABLES = [f"{name}.{end}" for name in ("results", "words", "tasks") for end in ("parquet", "csv")]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            dashboard_address="127.0.0.1:0",
            local_directory=tmp_path_factory.mktemp("dask"),
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def run(folder, stages, client=None, progress=None):
    store, runner = Store(folder), FrailRunner(folder)
    cells = staged(runner, stages)

    def executor():
        if client is None:
            return executors.in_this_process(runner)
        return executors.on_dask(FrailRunner, runner, store, client, 2)

    with store.alone():
        before = work_through(store, cells, executor, progress)
        store.assemble([cell for stage in cells for cell in stage])
    return before


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_a_cluster_gives_the_bytes_of_one_process(client, tmp_path):
    stages = frail_plan("a", "b")
    assert run(tmp_path / "here", stages) == 0
    seen = []
    assert run(tmp_path / "there", stages, client, lambda *each: seen.append(each)) == 0
    assert seen == [(done, 16) for done in range(17)]
    assert tables(tmp_path / "here") == tables(tmp_path / "there")
    assert run(tmp_path / "there", stages, client) == 16


def test_a_cell_whose_worker_is_killed_is_done_again(client, tmp_path):
    """A cell kills its own worker, the first time; then another worker is killed from outside."""
    stages = frail_plan("slow", "die", file=tmp_path / "mark")
    workers = client.run(os.getpid)
    killed = []

    def progress(done, total):
        if done == 10 and not killed:
            # A worker may be dying at this very moment.
            alive = client.run(os.getpid, on_error="ignore")
            killed.append(next(iter(alive.values())))
            os.kill(killed[0], signal.SIGKILL)

    run(tmp_path / "there", stages, client, progress)
    assert killed
    assert (tmp_path / "mark").exists()
    client.wait_for_workers(2, timeout=30)
    assert set(client.run(os.getpid).values()).isdisjoint(killed)
    assert set(client.run(os.getpid).values()) != set(workers.values())
    run(tmp_path / "here", stages)
    assert tables(tmp_path / "here") == tables(tmp_path / "there")


def test_an_error_on_a_worker_says_which_cell_and_no_text(client, tmp_path):
    with pytest.raises(UsageError, match=r"the search cell of .*fail.*no judgments.*are done"):
        run(tmp_path, frail_plan("fail"), client)
    with pytest.raises(SottovoceError, match="ValueError") as caught:
        run(tmp_path, frail_plan("crash"), client)
    assert SECRET not in str(caught.value)
    logs = repr((client.get_worker_logs(), client.get_scheduler_logs(), client.get_events()))
    assert SECRET not in logs


def test_files_that_a_worker_lacks_or_has_otherwise_are_noticed(client, tmp_path):
    for mechanism, reason in (("absent there", "no such collection"), ("other there", "content")):
        with pytest.raises(SottovoceError, match=f"{reason}.*must be on every worker"):
            run(tmp_path / "x", frail_plan(mechanism), client)


def test_a_cluster_with_another_version_gets_no_cell(client, tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "__version__", "0.0.1")
    with pytest.raises(SottovoceError, match="same version everywhere"):
        run(tmp_path, frail_plan("a"), client)
    assert not list((tmp_path / "variants").iterdir())


EXPERIMENT = """
name = "demo"
[grid]
collections = ["demo"]
engines = ["bm25"]
rerankers = ["light"]
mechanisms = ["cmp", "santext"]
epsilons = [5, 12.5]
n = [3]
[privacy]
similarity = ["jaccard"]
log = "demo"
attacks = ["mode"]
"""


@pytest.mark.thorough
def test_a_real_experiment_survives_a_killed_worker(client, default_space, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "demo.toml").write_text(EXPERIMENT)
    experiment = read_experiment(tmp_path / "demo.toml")
    killed = []

    def progress(done, total):
        if done == 6 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    there = run_experiment(
        experiment, tmp_path / "there", on="dask", scheduler=client, progress=progress
    )
    assert killed
    assert (there.cells, there.done_before) == (21, 0)
    run_experiment(experiment, tmp_path / "here")
    assert tables(tmp_path / "here") == tables(tmp_path / "there")
