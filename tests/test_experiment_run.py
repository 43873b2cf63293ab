"""Cells that are done once, whole or not at all, with any number of workers."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from frail_runner import SECRET, FrailRunner, frail_plan, pq

from sottovoce import devices
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.executors import in_processes, in_this_process
from sottovoce.experiments.naming import without_paths
from sottovoce.experiments.run import staged, work_through
from sottovoce.experiments.store import Store
from sottovoce.experiments.tables import make_table

TABLES = [f"{name}.{end}" for name in ("results", "words", "tasks") for end in ("parquet", "csv")]


def run(folder, stages, workers=1, progress=None):
    store, runner = Store(folder), FrailRunner(folder)
    cells = staged(runner, stages)
    executor = partial(in_this_process, runner)
    if workers > 1:
        executor = partial(in_processes, FrailRunner, folder, workers)
    with store.alone():
        before = work_through(store, cells, executor, progress)
        store.assemble([cell for stage in cells for cell in stage])
    return before, cells


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def stamps(folder):
    parts = ("variants", "cells", "runs")
    found = [file.stat() for part in parts for file in sorted((folder / part).iterdir())]
    return [(each.st_ino, each.st_mtime_ns) for each in found]


def left_over(folder):
    return [file.name for file in folder.rglob(".*") if file.name != ".lock"]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_done_is_not_done_again(tmp_path, workers):
    stages = frail_plan("a", "b")
    seen = []
    before, _ = run(tmp_path / "x", stages, workers, lambda *each: seen.append(each))
    assert before == 0
    assert seen == [(done, 16) for done in range(17)]
    first, whole = stamps(tmp_path / "x"), tables(tmp_path / "x")
    seen.clear()
    assert run(tmp_path / "x", stages, workers, lambda *each: seen.append(each))[0] == 16
    assert seen == [(16, 16)]
    assert stamps(tmp_path / "x") == first
    assert tables(tmp_path / "x") == whole
    assert not left_over(tmp_path / "x")


def test_two_workers_give_the_bytes_of_one(tmp_path):
    stages = frail_plan("a", "b", "c")
    run(tmp_path / "one", stages)
    run(tmp_path / "two", stages, workers=2)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")
    table = pq.read_table(tmp_path / "one" / "results.parquet")
    assert table.column("mechanism").to_pylist() == ["a"] * 12 + ["b"] * 12 + ["c"] * 12
    assert table.schema.metadata is None
    names = [sorted(os.listdir(tmp_path / each / "runs")) for each in ("one", "two")]
    assert names[0] == names[1]
    assert len(names[0]) == 12
    assert names[0][0].startswith("demo.bm25.light.a.epsilon=1.once.n=2.seed=0.")


class RunnerWithDevice(FrailRunner):
    """Its facts say which device its process was told to use."""

    def run(self, job):
        return replace(super().run(job), facts={"device": devices.device_choice()})


def test_workers_compute_on_the_device_that_was_chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "_choice", "cpu")
    store, runner = Store(tmp_path), RunnerWithDevice(tmp_path)
    stages = staged(runner, frail_plan("a", epsilons=(1.0,), seeds=(0,)))
    with store.alone():
        work_through(store, stages, partial(in_processes, RunnerWithDevice, tmp_path, 2))
    assert {store.about(cell).facts["device"] for stage in stages for cell in stage} == {"cpu"}


def test_the_csv_says_what_the_parquet_file_says(tmp_path):
    import csv

    run(tmp_path, frail_plan("a", epsilons=(None, 0.1)))
    table = pq.read_table(tmp_path / "results.parquet")
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == table.schema.names
    told = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert [float(row[-1]) for row in rows] == [row[-1] for row in told]
    assert [row[4] for row in rows] == ["" if row[4] is None else repr(row[4]) for row in told]
    assert (tmp_path / "words.csv").read_text() == ",".join(
        make_table("words", []).column_names
    ) + "\n"


def test_large_tables_are_written_in_parts(tmp_path, monkeypatch):
    run(tmp_path / "whole", frail_plan("a", "b"))
    monkeypatch.setattr("sottovoce.experiments.tables.ROWS_AT_A_TIME", 5)
    run(tmp_path / "parts", frail_plan("a", "b"))
    names = ["whole", "parts"]
    files = [pq.ParquetFile(tmp_path / name / "results.parquet") for name in names]
    assert [file.num_row_groups for file in files] == [1, 5]
    assert files[0].read() == files[1].read()
    texts = [(tmp_path / name / "results.csv").read_bytes() for name in names]
    assert texts[0] == texts[1]


def test_a_further_epsilon_runs_only_its_own_cells(tmp_path):
    few, more = frail_plan("a"), frail_plan("a", epsilons=(1.0, 2.5, 7.0))
    run(tmp_path, few)
    small, first = tables(tmp_path), set(stamps(tmp_path))
    assert run(tmp_path, more)[0] == 8
    assert first < set(stamps(tmp_path))
    assert pq.read_table(tmp_path / "results.parquet").num_rows == 18
    # The cells of the larger plan stay, and do not enter the tables of the smaller one.
    assert run(tmp_path, few)[0] == 8
    assert tables(tmp_path) == small


def damage(file, how):
    data = bytearray(file.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "empty":
        data.clear()
    else:
        data[20:60] = bytes(40)
    file.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "empty", "zeros"])
@pytest.mark.parametrize("part", ["cells", "variants"])
def test_a_damaged_cell_is_done_again(tmp_path, how, part):
    stages = frail_plan("a")
    run(tmp_path, stages)
    whole = tables(tmp_path)
    damage(sorted((tmp_path / part).iterdir())[1], how)
    assert run(tmp_path, stages)[0] == 7
    assert tables(tmp_path) == whole


def test_a_value_that_a_bad_disk_changed_gets_into_no_table(tmp_path):
    """Each page of a file has a checksum."""
    _, (_, (cell, *_)) = run(tmp_path, frail_plan("a"))
    store = Store(tmp_path)
    file, good = store.file(cell), store.file(cell).read_bytes()
    group = pq.read_metadata(file).row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        start = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)))
        data = bytearray(good)
        data[start + column.total_compressed_size - 1] ^= 0x01
        file.write_bytes(data)
        assert not store.is_done(cell)
    file.write_bytes(good)
    assert store.is_done(cell)


def test_a_run_that_is_gone_is_made_again(tmp_path):
    run(tmp_path, frail_plan("a"))
    names = sorted(os.listdir(tmp_path / "runs"))
    (tmp_path / "runs" / names[2]).unlink()
    assert run(tmp_path, frail_plan("a"))[0] == 7
    assert sorted(os.listdir(tmp_path / "runs")) == names


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    run(tmp_path, frail_plan("a"))
    for name in ("cells/.x.parquet.growing", "runs/.x.run.growing", ".results.csv.growing"):
        (tmp_path / name).write_bytes(b"half")
    run(tmp_path, frail_plan("a"))
    assert not left_over(tmp_path)


def test_a_second_process_is_told_to_wait(tmp_path):
    program = (
        "import sys; from pathlib import Path; from sottovoce.experiments.store import Store\n"
        "with Store(Path(sys.argv[1])).alone():\n    print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(UsageError, match="another process"):
            run(tmp_path, frail_plan("a"))
        other.kill()
    assert run(tmp_path, frail_plan("a"))[0] == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_says_which_cell_and_what_is_kept(tmp_path, workers):
    with pytest.raises(UsageError, match="no judgments") as caught:
        run(tmp_path, frail_plan("a", "fail"), workers)
    assert "the search cell of demo, bm25, light, fail, epsilon=1, once, n=2" in str(caught.value)
    assert "of 16 cells are done and kept" in str(caught.value)
    with pytest.raises(SottovoceError, match="ValueError") as caught:
        run(tmp_path, frail_plan("crash"), workers)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not (tmp_path / "results.parquet").exists()


def test_a_worker_that_dies_fails_the_run_and_leaves_what_is_done(tmp_path):
    stages = frail_plan("a", "die", file=tmp_path / "mark")
    with pytest.raises(
        SottovoceError, match="a worker process died in the search cell of"
    ) as caught:
        run(tmp_path / "x", stages, workers=2)
    assert "die" in str(caught.value)
    assert not left_over(tmp_path / "x")
    before, _ = run(tmp_path / "x", stages, workers=2)
    assert 8 <= before < 16
    run(tmp_path / "undisturbed", stages)
    assert tables(tmp_path / "x") == tables(tmp_path / "undisturbed")


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    """Files may not grow beyond a limit, as on a disk that is full."""
    stages = frail_plan("a", "b", "c", epsilons=(1.0, 2.0, 3.0, 4.0))
    run(tmp_path / "whole", stages)
    sizes = [file.stat().st_size for file in (tmp_path / "whole" / "cells").iterdir()]
    largest = (tmp_path / "whole" / "results.csv").stat().st_size
    assert max(sizes) < largest - 1
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    for number, limit in enumerate((100, min(sizes) - 1, largest - 1)):
        folder = tmp_path / str(number)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
        try:
            with pytest.raises(SottovoceError, match=r"cannot (be written|write)"):
                run(folder, stages)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        assert not left_over(folder)
        assert not (folder / "results.parquet").exists()
        for file in (*(folder / "cells").iterdir(), *(folder / "variants").iterdir()):
            assert pq.read_table(file).num_rows > 0
        run(folder, stages)
        assert tables(folder) == tables(tmp_path / "whole")


def test_a_table_of_another_shape_is_not_kept(tmp_path, monkeypatch):
    odd = make_table("words", [])
    monkeypatch.setattr("frail_runner.make_table", lambda *_: odd)
    with pytest.raises(SottovoceError, match="another shape"):
        run(tmp_path, frail_plan("a"))
    assert not list((tmp_path / "variants").iterdir())


def test_nothing_tells_on_whose_machine_it_was():
    said = {
        "collection": "/home/ann/data/msmarco pool",
        "engine": "dense:/home/ann/model",
        "output_vocabulary": "file:/home/ann lee/my words.txt",
        "reason": "one and/or the other, 3 /4",
        "files": ["ir_datasets:msmarco/passage", "https://example.org/x"],
    }
    assert without_paths(said) == {
        "collection": "msmarco pool",
        "engine": "dense:model",
        "output_vocabulary": "file:my words.txt",
        "reason": "one and/or the other, 3 /4",
        "files": ["ir_datasets:msmarco/passage", "https://example.org/x"],
    }
